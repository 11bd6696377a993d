#include "weir/runtime/report.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/messaging/detail/broadcast_ring.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::report_test {
namespace {

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.announce = false;
  return options;
}

/// Counts on its core, like a server.
class Counting final : public MetricSource {
 public:
  explicit Counting(Loop& loop) { loop.metrics().add(*this); }
  ~Counting() { detach(); }
  detail::Counter things;

 private:
  void collect(MetricSnapshot& sum) const override { sum.add({"things", things.value()}); }
};

std::vector<Buffer> buffers(unsigned count) {
  std::vector<Buffer> some;
  while (some.size() < count) some.push_back(Buffer::with_capacity(100));
  return some;
}

class ReportInMemory : public testing::Test {
 protected:
  MemoryPlatform platform_{{.cores = 3}};
  Runtime runtime_{platform_, quiet()};
};

TEST_F(ReportInMemory, IsEmptyBeforeTheFirstRun) {
  const RuntimeReport report = runtime_.report();
  EXPECT_FALSE(report.running);
  EXPECT_TRUE(report.cores.empty());
  EXPECT_EQ(report.to_text(), "no core has run yet\n");
}

TEST_F(ReportInMemory, ReportsEachCoreDuringAndAfterTheRun) {
  std::vector<RuntimeReport> inside;
  const auto body = [&](Scope& scope) -> Task<> {
    Counting counting(scope.loop());
    counting.things.add(scope.loop().core() + 1);
    const std::vector<Buffer> held = buffers(scope.loop().core());
    std::ignore = co_await sleep(4s);
    if (scope.loop().core() == 0) inside.push_back(runtime_.report());
    std::ignore = co_await sleep(1s);
  };
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);

  ASSERT_EQ(inside.size(), 1U);
  const RuntimeReport& during = inside.front();
  EXPECT_TRUE(during.running);
  EXPECT_EQ(during.up, 4s);
  ASSERT_EQ(during.cores.size(), 3U);
  for (unsigned core = 0; core < 3; ++core) {
    EXPECT_EQ(during.cores[core].core, core);
    EXPECT_EQ(during.cores[core].backend, "memory");
    EXPECT_GT(during.cores[core].turns, 0U);
    EXPECT_GT(during.cores[core].frames_in_use, 0U) << "frames of the waiting tasks";
    EXPECT_EQ(during.cores[core].buffers_in_use, core);
    EXPECT_GE(during.cores[core].blocks_in_use, during.cores[core].frames_in_use + core);
    ASSERT_EQ(during.cores[core].metrics.size(), 1U);
    EXPECT_EQ(during.cores[core].metrics[0].value, core + 1);
  }
  EXPECT_EQ(during.total().metrics[0].value, 6U);

  const RuntimeReport end = runtime_.report();
  EXPECT_FALSE(end.running);
  EXPECT_EQ(end.up, 5s);
  ASSERT_EQ(end.cores.size(), 3U);
  EXPECT_GT(end.total().turns, during.total().turns);
  EXPECT_EQ(end.total().frames_in_use, 0U);
  EXPECT_EQ(end.total().buffers_in_use, 0U);
  EXPECT_EQ(end.total().blocks_in_use, 0U);
  EXPECT_EQ(end.total().metrics[0].value, 6U) << "counts outlive the counting object";
}

Task<> computes_for_long(MemoryPlatform& platform) {
  for (int i = 0; i < 10; ++i) {
    std::ignore = co_await sleep(1ms);
    platform.clock().move_to(platform.now() + 80ms);
  }
}

TEST_F(ReportInMemory, NamesTheCauseOfSlowTurnsOnAllCores) {
  EXPECT_EQ(runtime_.run_on_each_core([&](Scope&) { return computes_for_long(platform_); }), 0);
  const RuntimeReport report = runtime_.report();
  EXPECT_EQ(report.total().slow_turns, 30U);
  ASSERT_EQ(report.stalls.size(), 1U);
  EXPECT_NE(report.stalls[0].name.find("computes_for_long"), std::string::npos)
      << report.stalls[0].name;
  EXPECT_EQ(report.stalls[0].turns, 30U);
  EXPECT_EQ(report.stalls[0].longest, 80ms);
  EXPECT_EQ(report.total().run_time, 30 * 80ms);
  EXPECT_EQ(report.total().cpu_time, Duration(0)) << "a simulation has none";
  EXPECT_EQ(platform_.logged().size(), 1U) << "one line for all cores";
}

TEST_F(ReportInMemory, ReportsTheInboxDepthOfABusyCore) {
  int ran = 0;
  CallProbe one([&] { ++ran; });
  CallProbe two([&] { ++ran; });
  std::uint64_t waiting = 0;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    Loop& loop = scope.loop();
    loop.post(one);
    loop.post(two);
    waiting = runtime_.report().cores[0].inbox_depth;
    while (ran < 2) co_await yield();
    EXPECT_EQ(runtime_.report().cores[0].inbox_depth, 0U);
  };
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);
  EXPECT_EQ(waiting, 2U);
}

TEST_F(ReportInMemory, ReportsTheOpenConnectionsOfTheServers) {
  RuntimeReport inside;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 1) co_return;
    ServerConnections::of(scope.loop()).open += 3;
    inside = runtime_.report();
    ServerConnections::of(scope.loop()).open -= 1;
  };
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);
  EXPECT_EQ(inside.connections, 3U);
  EXPECT_EQ(runtime_.report().connections, 2U);
  for (const CoreReport& core : inside.cores) EXPECT_EQ(core.up, inside.up);
}

TEST_F(ReportInMemory, ReportsTheSharedPoolOnceItIsUsed) {
  bool before = true;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    before = runtime_.report().pool.has_value();
    std::ignore = co_await shared_pool(scope.loop()).pool().run([] {});
  };
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);
  EXPECT_FALSE(before);
  ASSERT_TRUE(runtime_.report().pool);
  EXPECT_EQ(runtime_.report().pool->lanes.front().finished, 1U);
}

TEST(Report, CoversOneRun) {
  MemoryPlatform platform({.cores = 1});
  Runtime runtime(platform, quiet());
  const auto body = [](Scope&) -> Task<> { std::ignore = co_await sleep(1s); };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  const std::uint64_t turns = runtime.report().total().turns;
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  const RuntimeReport second = runtime.report();
  EXPECT_EQ(second.total().turns, turns);
  EXPECT_EQ(second.up, 1s);
  EXPECT_EQ(second.cores.at(0).up, 1s);
}

CoreReport core_of(unsigned number) {
  CoreReport core;
  core.core = number;
  core.backend = "uring";
  core.up = 10s;
  core.cpu_time = (number + 1) * 2s;
  core.run_time = (number + 1) * 1500ms;
  core.turns = 1'234'567 * (number + 1);
  std::uint64_t each = 100 * number;
  for (const auto counter :
       {&CoreReport::slow_turns, &CoreReport::runs, &CoreReport::received,
        &CoreReport::system_calls, &CoreReport::bytes_received, &CoreReport::bytes_sent,
        &CoreReport::accepts, &CoreReport::connections, &CoreReport::handed_over,
        &CoreReport::taken_over, &CoreReport::accept_pauses, &CoreReport::connections_dropped,
        &CoreReport::exceptions_dropped, &CoreReport::values_missed, &CoreReport::frames_in_use,
        &CoreReport::buffers_in_use, &CoreReport::blocks_in_use, &CoreReport::cached_bytes}) {
    core.*counter = ++each;
  }
  core.inbox_depth = 4 - 3 * number;
  core.inbox_depth_max = 3 - number;
  core.metrics = {{"http requests", 5}};
  if (number == 1) core.metrics.push_back({"http rejected: bad_host", 2});
  return core;
}

TEST(Report, IsPrintedAsATable) {
  RuntimeReport report;
  report.running = true;
  report.up = 10s;
  report.connections = 12;
  report.cores = {core_of(0), core_of(1)};
  report.stalls = {{"GET /slow", 10, 82ms}, {"serve_client", 1, 60ms}};
  report.pool.emplace();
  report.pool->size = 4;
  report.pool->running = 3;
  report.pool->queued = 1234;
  PoolLaneReport& lane = report.pool->lanes.emplace_back();
  lane.name = "files";
  lane.finished = 7;
  lane.rejected = 1;
  lane.cancelled = 5;
  const std::string expected =
      "2 cores, uring, up 10.000 s, 12 connections open\n"
      "                              total     core 0     core 1\n"
      "busy                         30.0 %     20.0 %     40.0 %\n"
      "CPU time                    6.000 s    2.000 s    4.000 s\n"
      "run time                    4.500 s    1.500 s    3.000 s\n"
      "turns                     3,703,701  1,234,567  2,469,134\n"
      "slow turns                      102          1        101\n"
      "runs                            104          2        102\n"
      "posts from other threads        106          3        103\n"
      "inbox depth                       5          4          1\n"
      "inbox depth, maximum              3          3          2\n"
      "system calls                    108          4        104\n"
      "bytes received                  110          5        105\n"
      "bytes sent                      112          6        106\n"
      "accepts                         114          7        107\n"
      "open streams                    116          8        108\n"
      "handed over                     118          9        109\n"
      "taken over                      120         10        110\n"
      "accept pauses                   122         11        111\n"
      "connections dropped             124         12        112\n"
      "exceptions dropped              126         13        113\n"
      "broadcasts missed               128         14        114\n"
      "frames in use                   130         15        115\n"
      "buffers in use                  132         16        116\n"
      "blocks in use                   134         17        117\n"
      "cached bytes                    136         18        118\n"
      "http requests                    10          5          5\n"
      "http rejected: bad_host           2          0          2\n"
      "slow turns: 10, longest 82 ms: GET /slow\n"
      "slow turns: 1, longest 60 ms: serve_client\n"
      "pool: 3 of 4 threads busy, 1,234 queued\n"
      "pool lane files: 7 finished, 1 rejected, 5 cancelled\n";
  EXPECT_EQ(report.to_text(), expected);
  std::ostringstream out;
  out << report;
  EXPECT_EQ(out.str(), expected);
}

TEST(Report, OfManyCoresShowsTheLeastAndTheMost) {
  RuntimeReport report;
  for (unsigned number = 0; number < 9; ++number) {
    report.cores.push_back(core_of(0));
    report.cores.back().turns = 100 + number;
  }
  const std::string text = report.to_text();
  EXPECT_EQ(text.find("core 0"), text.npos) << text;
  const auto line = text.find("\nturns ");
  ASSERT_NE(line, text.npos) << text;
  std::istringstream words(text.substr(line));
  std::string name;
  std::string total;
  std::string least;
  std::string most;
  words >> name >> total >> least >> most;
  EXPECT_EQ(total, "936");
  EXPECT_EQ(least, "100");
  EXPECT_EQ(most, "108");
}

TEST(Report, ShowsEachCoreUpToEight) {
  RuntimeReport report;
  for (unsigned number = 0; number < 8; ++number) report.cores.push_back(core_of(number % 2));
  const std::string eight = report.to_text();
  EXPECT_EQ(eight.find("least"), eight.npos) << eight;
  EXPECT_NE(eight.find("     core 0     core 1     core 0"), eight.npos) << eight;
  report.cores.push_back(core_of(1));
  const std::string nine = report.to_text();
  EXPECT_NE(nine.find("      least       most\n"), nine.npos) << nine;
  EXPECT_NE(nine.find("9 cores, "), nine.npos) << nine;
}

TEST(Report, OfAnEndedRunOnOneCore) {
  RuntimeReport report;
  report.up = 2500ms;
  report.connections = 1000;
  report.cores = {core_of(0)};
  report.cores[0].bytes_received = 999;
  report.cores[0].bytes_sent = 1000;
  report.cores[0].system_calls = 1'000'000;
  const std::string text = report.to_text();
  EXPECT_TRUE(text.starts_with("1 core, uring, ended after 2.500 s, 1,000 connections open\n"))
      << text;
  EXPECT_NE(text.find("system calls              1,000,000  1,000,000\n"), text.npos) << text;
  EXPECT_NE(text.find("bytes received                  999        999\n"), text.npos) << text;
  EXPECT_NE(text.find("bytes sent                    1,000      1,000\n"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("http requests                     5          5\n")) << text;
}

TEST(Report, BusyIsTheShareOfTimeWithWork) {
  struct Case {
    Duration up, cpu_time, run_time;
    double busy;
  };
  const std::vector<Case> cases = {{0s, 1s, 1s, 0},       {1ns, 0s, 0s, 0},   {10s, 4s, 9s, 0.4},
                                   {10s, 1ns, 9s, 1e-10}, {10s, 0s, 9s, 0.9}, {10s, 11s, 0s, 1},
                                   {1ns, 1ns, 0s, 1}};
  for (const Case& each : cases) {
    CoreReport core;
    core.up = each.up;
    core.cpu_time = each.cpu_time;
    core.run_time = each.run_time;
    EXPECT_DOUBLE_EQ(core.busy(), each.busy);
  }
}

TEST(Report, StartsWithNothing) {
  const RuntimeReport report;
  EXPECT_FALSE(report.running);
  EXPECT_EQ(report.up, Duration(0));
  EXPECT_EQ(report.connections, 0U);
  EXPECT_FALSE(report.pool);
  EXPECT_EQ(CoreReport().cpu, -1);
  const CoreReport sum = report.total();
  EXPECT_EQ(sum.turns + sum.runs + sum.connections + sum.cached_bytes, 0U);
}

TEST(Report, TheTotalAddsUpTimes) {
  RuntimeReport report;
  for (const Duration unit : {1s, 10s, 100s}) {
    CoreReport& core = report.cores.emplace_back();
    core.up = 2 * unit;
    core.cpu_time = 3 * unit;
    core.run_time = 4 * unit;
    core.wait_time = 5 * unit;
  }
  EXPECT_EQ(report.total().up, 222s);
  EXPECT_EQ(report.total().cpu_time, 333s);
  EXPECT_EQ(report.total().run_time, 444s);
  EXPECT_EQ(report.total().wait_time, 555s);
}

/// A backend with a different number in each counter. Each wait takes 3 ms.
class CountedBackend final : public loop::Backend {
 public:
  explicit CountedBackend(MemoryPlatform& platform) : platform_(platform) {
    counters_.system_calls.add(21);
    counters_.bytes_received.add(22);
    counters_.bytes_sent.add(23);
    counters_.accepts.add(24);
    counters_.accept_pauses.add(25);
  }
  std::string_view name() const noexcept override { return "counted"; }
  Result<loop::Socket*> adopt(loop::Descriptor, loop::SocketOptions) override {
    return fail(Errc::unsupported);
  }
  void close(loop::Socket&) override {}
  bool receive(loop::Socket&, loop::ReceiveOperation& operation) override {
    return refuse(operation);
  }
  bool send(loop::Socket&, loop::SendOperation& operation) override { return refuse(operation); }
  bool accept(loop::Socket&, loop::AcceptOperation& operation) override {
    return refuse(operation);
  }
  bool connect(loop::Socket&, loop::ConnectOperation& operation) override {
    return refuse(operation);
  }
  void stop_accepting(loop::Socket&) override {}
  void cancel(loop::Operation&) override {}
  Result<> shut_down_sending(loop::Socket&) override { return fail(Errc::unsupported); }
  void observe_hangup(loop::Socket&, loop::HangupObserver*) override {}
  void wait(Instant) override { platform_.clock().move_to(platform_.now() + 3ms); }
  void wake() noexcept override {}

 private:
  static bool refuse(loop::Operation& operation) {
    operation.finish(Errc::unsupported);
    return true;
  }
  MemoryPlatform& platform_;
};

class CountedPlatform final : public MemoryPlatform {
 public:
  Result<loop::ChosenBackend> make_backend(BackendChoice, loop::RunQueue&) override {
    return loop::ChosenBackend{std::make_unique<CountedBackend>(*this), "for a test"};
  }
};

/// Makes each counter of `loop` differ from the others.
void count_events(Loop& loop) {
  ConnectionCounters& connections = ConnectionCounters::of(loop);
  connections.open.add(8);
  connections.handed_over.add(11);
  connections.taken_over.add(12);
  connections.dropped.add(13);
  detail::DroppedExceptions::of(loop).count.add(14);
  detail::MissedValues::of(loop).count.add(15);
}

TEST(ReportOfALoop, CopiesItsCounters) {
  CountedPlatform platform;
  const auto loop = Loop::make(platform, {.core = 6}).value();
  count_events(*loop);
  CallProbe slow([&] { platform.clock().move_to(platform.now() + 60ms); });
  CallProbe ready([] {});
  CallProbe posted([] {});
  CallProbe another([] {});
  loop->post(slow);
  loop->post(posted);
  loop->post(another);
  loop->ready(ready);
  for (int turn = 0; turn < 5; ++turn) loop->turn();
  const CoreReport report = report_on(*loop);
  EXPECT_EQ(report.core, 6U);
  EXPECT_EQ(report.cpu, -1);
  EXPECT_EQ(report.backend, "counted");
  EXPECT_EQ(report.run_time, 60ms);
  EXPECT_EQ(report.wait_time, 15ms);
  EXPECT_EQ(report.turns, 5U);
  EXPECT_EQ(report.slow_turns, 1U);
  EXPECT_EQ(report.runs, 4U);
  EXPECT_EQ(report.received, 3U);
  EXPECT_EQ(report.inbox_depth, 0U);
  EXPECT_EQ(report.inbox_depth_max, 3U);
  EXPECT_EQ(report.system_calls, 21U);
  EXPECT_EQ(report.bytes_received, 22U);
  EXPECT_EQ(report.bytes_sent, 23U);
  EXPECT_EQ(report.accepts, 24U);
  EXPECT_EQ(report.accept_pauses, 25U);
  EXPECT_EQ(report.connections, 8U);
  EXPECT_EQ(report.handed_over, 11U);
  EXPECT_EQ(report.taken_over, 12U);
  EXPECT_EQ(report.connections_dropped, 13U);
  EXPECT_EQ(report.exceptions_dropped, 14U);
  EXPECT_EQ(report.values_missed, 15U);
}

TEST(ReportOfALoop, CopiesItsMemoryAndItsMetrics) {
  CountedPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  Counting counting(*loop);
  counting.things.add(7);
  const ScopedBlockPool current(loop->blocks());
  std::vector<void*> blocks{BlockPool::allocate(10, BlockUse::frame)};
  for (int i = 0; i < 2; ++i) blocks.push_back(BlockPool::allocate(10, BlockUse::buffer));
  for (int i = 0; i < 4; ++i) blocks.push_back(BlockPool::allocate(10, BlockUse::other));
  BlockPool::release(BlockPool::allocate(1000));
  const CoreReport report = report_on(*loop);
  EXPECT_EQ(report.frames_in_use, 1U);
  EXPECT_EQ(report.buffers_in_use, 2U);
  EXPECT_EQ(report.blocks_in_use, 7U);
  EXPECT_EQ(report.cached_bytes, loop->blocks().cached_bytes());
  EXPECT_EQ(report.cached_bytes != 0, BlockPool::caches_free_blocks);
  ASSERT_EQ(report.metrics.size(), 1U);
  EXPECT_EQ(report.metrics[0].name, "things");
  EXPECT_EQ(report.metrics[0].value, 7U);
  for (void* const block : blocks) BlockPool::release(block);
}

TEST(ReportOfALoop, CopiesTheCpuTimeOfItsThread) {
  CountedPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  EXPECT_EQ(report_on(*loop).cpu_time, Duration(0));
  loop->metrics().on_thread_start();
  while (loop->metrics().cpu_time() == Duration(0)) {
  }
  loop->metrics().on_thread_end();
  EXPECT_GT(report_on(*loop).cpu_time, Duration(0));
  EXPECT_EQ(report_on(*loop).cpu_time, loop->metrics().cpu_time());
}

TEST(ReportOfThreads, MayBeReadByAnyThreadAtAnyTime) {
  OsPlatform platform;
  RuntimeOptions options = quiet();
  options.cores = 2;
  options.pin = false;
  options.handle_signals = false;
  Runtime runtime(platform, options);
  std::atomic<bool> done{false};
  std::atomic<unsigned> seen_running{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const RuntimeReport report = runtime.report();
        if (report.running && !report.to_text().empty()) ++seen_running;
      }
    });
  }
  const auto body = [&](Scope& scope) -> Task<> {
    Counting counting(scope.loop());
    const unsigned before = seen_running;
    while (seen_running < before + 20) {
      counting.things.add();
      co_await yield();
    }
  };
  for (int run = 0; run < 3; ++run) EXPECT_EQ(runtime.run_on_each_core(body), 0);
  done = true;
  for (std::thread& reader : readers) reader.join();
  const CoreReport total = runtime.report().total();
  EXPECT_GT(total.cpu_time, Duration(0)) << "CPU time is kept after the threads have ended";
  EXPECT_GT(total.metrics.front().value, 0U);
}

}  // namespace
}  // namespace weir::report_test
