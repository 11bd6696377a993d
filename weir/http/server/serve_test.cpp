// Tests a whole server in memory: its connection limit, its drain, and its stop.
#include "weir/http/server/serve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::serve_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_slow = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";

Task<Response> slow() {
  const auto slept = co_await sleep(3s);
  co_return slept ? text("slow\n") : Response(Status::service_unavailable);
}
Task<Response> size_of_body(Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(std::to_string(body->size()));
}

void add_routes(Router& routes) {
  routes.get("/", [] { return text("hello\n"); });
  routes.get("/slow", slow);
  routes.post("/size", size_of_body);
  routes.get("/large", [] { return text(std::string(1'000'000, 'x')); });
}

class ServeTest : public HttpTest {
 protected:
  ServeTest() { add_routes(routes_); }

  void expect_closed_politely(MemoryPeer& peer) {
    EXPECT_FALSE(peer.was_reset());
    EXPECT_TRUE(peer.ended());
  }
  sim::HttpResponse only_answer(MemoryPeer& peer) {
    const auto answers = sim::parse_http_responses(peer.received());
    EXPECT_EQ(answers.size(), 1u) << sim::statuses_of(answers);
    return answers.empty() ? sim::HttpResponse() : answers[0];
  }
};

TEST_F(ServeTest, ConnectionBeyondTheLimitGets503) {
  serve({.connections_max = 2});
  MemoryPeer& first = connect();
  MemoryPeer& second = connect();
  settle();
  MemoryPeer& third = connect();
  third.send(get);
  settle();
  EXPECT_EQ(only_answer(third).status, 503);
  EXPECT_EQ(only_answer(third).header("Connection"), "close");
  expect_closed_politely(third);
  EXPECT_EQ(server_->counters().connections_rejected.value(), 1u);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(first, get))), "200");
  second.close();
  settle();
  EXPECT_EQ(statuses(get), "200");
}

TEST_F(ServeTest, PermitsAreTakenAndReturned) {
  serve({.connections_max = 2});
  {
    const auto first = server_->connections().try_acquire_permit();
    auto second = server_->connections().try_acquire_permit();
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(server_->connections().try_acquire_permit())
        << "also before any of them is served";
    second.reset();
    EXPECT_TRUE(server_->connections().try_acquire_permit());
    EXPECT_EQ(statuses(get), "200");
  }
  EXPECT_EQ(ServerConnections::of(*loop_).open.load(), 1u);
}

TEST_F(ServeTest, SilentConnectionIsClosedSoonerThanAnIdleOne) {
  serve();
  MemoryPeer& silent = connect();
  MemoryPeer& used = connect();
  talk(used, get);
  pass(14'999ms);
  EXPECT_FALSE(silent.ended());
  EXPECT_EQ(server_->counters().silent_connections.value(), 0u);
  pass(1ms);
  expect_closed_politely(silent);
  EXPECT_EQ(server_->counters().silent_connections.value(), 1u);
  EXPECT_NE(server_->counters().summary().find(", 1 without a request"), std::string::npos);
  EXPECT_FALSE(used.ended());
  pass(45s);
  expect_closed_politely(used);
  EXPECT_EQ(server_->counters().silent_connections.value(), 1u);
}

TEST_F(ServeTest, SilentConnectionStaysNoLongerThanTheIdleTimeout) {
  serve({.idle_timeout = 2s});
  MemoryPeer& silent = connect();
  pass(1999ms);
  EXPECT_FALSE(silent.ended());
  pass(1ms);
  expect_closed_politely(silent);
}

TEST_F(ServeTest, NewConnectionDuringADrainIsNotCountedAsSilent) {
  serve();
  MemoryPeer& fresh = connect();
  settle();
  drain();
  pass(2s);
  expect_closed_politely(fresh);
  EXPECT_EQ(server_->counters().silent_connections.value(), 0u);
}

TEST_F(ServeTest, AFloodBeyondTheLimitHoldsFewDescriptors) {
  serve({.connections_max = 1});
  connect();
  settle();
  for (int i = 0; i < 1000; ++i) connect();
  const std::size_t clients_and_listener = 1001 + 1;
  settle();
  EXPECT_EQ(server_->counters().connections_rejected.value(), 1000u);
  EXPECT_LE(platform_.open_descriptors(), clients_and_listener);
  EXPECT_LE(platform_.open_descriptors(), 1u + 1 + 32);
}

TEST_F(ServeTest, DrainClosesIdleConnections) {
  serve();
  MemoryPeer& used = connect();
  MemoryPeer& fresh = connect();
  talk(used, get);
  drain();
  pass(99ms);
  EXPECT_FALSE(used.ended());
  pass(1ms);
  expect_closed_politely(used);
  EXPECT_EQ(only_answer(used).header("Connection"), "");
  EXPECT_FALSE(fresh.ended());
  pass(900ms);
  expect_closed_politely(fresh);
  pass(1s);
  EXPECT_TRUE(stopped());
}

TEST_F(ServeTest, RequestInTransitDuringADrainIsAnswered) {
  serve();
  MemoryPeer& used = connect();
  MemoryPeer& fresh = connect();
  talk(used, get);
  used.take();
  drain();
  for (MemoryPeer* each : {&used, &fresh}) {
    const auto answers = sim::parse_http_responses(talk(*each, get));
    ASSERT_EQ(sim::statuses_of(answers), "200");
    EXPECT_EQ(answers[0].header("Connection"), "close");
    expect_closed_politely(*each);
    each->close();
  }
  pass(1s);
  EXPECT_TRUE(stopped());
}

TEST_F(ServeTest, DrainFinishesRequestsInFlight) {
  serve();
  MemoryPeer& in_head = connect();
  MemoryPeer& in_body = connect();
  MemoryPeer& in_handler = connect();
  MemoryPeer& reading = connect();
  talk(in_head, get.substr(0, 10));
  talk(in_body, "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  talk(in_handler, get_slow);
  reading.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  drain();
  pass(1s);
  talk(in_head, get.substr(10));
  talk(in_body, "cd");
  while (reading.read(1'000'000) != 0) settle();
  pass(2s);
  for (MemoryPeer* each : {&in_head, &in_body, &in_handler}) {
    EXPECT_EQ(only_answer(*each).status, 200);
    EXPECT_EQ(only_answer(*each).header("Connection"), "close");
    expect_closed_politely(*each);
  }
  EXPECT_EQ(only_answer(reading).body.size(), 1'000'000u);
  expect_closed_politely(reading);
  pass(1s);
  EXPECT_TRUE(stopped());
}

// A client must not wait at a socket that no server accepts from, and another process may need
// the port.
TEST_F(ServeTest, LateConnectionIsRefusedWhileADrainFinishesOthers) {
  serve();
  MemoryPeer& slow = connect();
  talk(slow, get_slow);
  drain();
  pass(100ms);
  const auto late = platform_.network().open_stream();
  EXPECT_EQ(platform_.network().connect(*late, address_), MemoryNetwork::ConnectResult::refused);
  EXPECT_FALSE(stopped());
  pass(3s);
  EXPECT_EQ(only_answer(slow).status, 200);
  expect_closed_politely(slow);
  pass(1s);
  EXPECT_TRUE(stopped());
}

TEST_F(ServeTest, HalfAHeadDoesNotHoldADrainUp) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get.substr(0, 10));
  drain();
  pass(2s);
  EXPECT_EQ(only_answer(peer).status, 408);
  peer.close();
  pass(100ms);
  EXPECT_TRUE(stopped());
}

TEST_F(ServeTest, ConnectionDuringADrainSeesNoReset) {
  serve();
  MemoryPeer& waiting = connect();  // in the listener's queue, not yet accepted
  drain();
  waiting.send(get);
  settle();
  EXPECT_EQ(only_answer(waiting).header("Connection"), "close");
  expect_closed_politely(waiting);
  MemoryPeer& late = connect();
  pass(2s);
  EXPECT_FALSE(late.connected()) << "its handshake is dropped: TCP finds another server";
  EXPECT_TRUE(stopped());
}

TEST_F(ServeTest, StopCancelsEverythingImmediately) {
  serve();
  MemoryPeer& idle = connect();
  MemoryPeer& in_handler = connect();
  MemoryPeer& reading = connect();
  talk(idle, get);
  talk(in_handler, std::string(get_slow) + std::string(get));
  reading.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  stop();
  settle();
  EXPECT_TRUE(stopped());
  EXPECT_EQ(server_->counters().connections_open.value(), 0u);
  EXPECT_EQ(server_->counters().requests.value(), 3u) << "no new request is started";
}

TEST_F(ServeTest, ARouterWithConflictsIsNotServed) {
  routes_.get("/", [] { return text("again\n"); });
  serve();
  EXPECT_TRUE(stopped());
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_NE(platform_.logged()[0].find("GET /"), std::string::npos);
}

/// A runtime in memory, with peers that act at given moments.
class ServeOnCoresTest : public testing::Test {
 protected:
  ServeOnCoresTest() { add_routes(routes_); }

  int run(Duration drain_timeout = 10s) {
    Runtime runtime(platform_, {.cores = 4, .drain_timeout = drain_timeout});
    return runtime.run_on_each_core(serve, std::cref(routes_),
                                    ServeOptions{Endpoint::loopback(80)});
  }
  void at(Duration moment, MemoryClock::Event event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }

  MemoryPlatform platform_{{.cores = 4}};
  Router routes_;
};

TEST_F(ServeOnCoresTest, EveryCoreServesAndDrains) {
  std::vector<std::unique_ptr<MemoryPeer>> peers;
  at(1s, [&] {
    for (int i = 0; i < 16; ++i) {
      peers.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80)));
      peers.back()->send(i % 2 == 0 ? get : get_slow);
    }
  });
  at(2s, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(run(), 0);
  for (const auto& peer : peers) {
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer->received())), "200");
    EXPECT_TRUE(peer->ended());
  }
  peers.clear();
  EXPECT_EQ(platform_.open_descriptors(), 0u);
}

TEST_F(ServeOnCoresTest, DrainTimeoutAndSecondSignalCancelRunningRequests) {
  for (const bool second_signal : {false, true}) {
    std::unique_ptr<MemoryPeer> peer;
    at(1s, [&] {
      peer = std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80));
      peer->send(get_slow);
    });
    at(2s, [&] { platform_.raise(loop::Signal::interrupt); });
    if (second_signal) at(2500ms, [&] { platform_.raise(loop::Signal::interrupt); });
    const Instant begun = platform_.now();
    EXPECT_EQ(run(1s), 0);
    EXPECT_EQ(platform_.now() - begun, second_signal ? 2500ms : 3s);
    peer.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0u);
  }
}

TEST_F(ServeOnCoresTest, EachCoreLogsItsCounters) {
  std::vector<std::unique_ptr<MemoryPeer>> peers;
  at(1s, [&] {
    for (int i = 0; i < 4; ++i) {
      peers.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80)));
      peers.back()->send(get);
    }
  });
  at(2s, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(run(), 0);
  std::vector<std::string> lines;
  for (const std::string& each : platform_.logged()) {
    if (each.contains(" connections, ")) lines.push_back(each);
  }
  std::ranges::sort(lines);
  const std::vector<std::string> expected{
      "weir: core 0: 1 connections, 1 requests", "weir: core 1: 1 connections, 1 requests",
      "weir: core 2: 1 connections, 1 requests", "weir: core 3: 1 connections, 1 requests"};
  EXPECT_EQ(lines, expected);
}

/// Runs serve() as a task on one loop.
class ServeTaskTest : public testing::Test,
                      TestHeap::AllocationFailure,
                      Continuation,
                      loop::Runnable {
 protected:
  ServeTaskTest() : Continuation(root_kind<&ended>), loop::Runnable(&begin) {}
  void TearDown() override {
    cancel_.cancel();
    settle();
  }

  void start(ServeOptions options) {
    task_.emplace(with_scope(OnFailure::isolate, &serve, std::cref(routes_), std::move(options)));
    loop_->ready(static_cast<loop::Runnable&>(*this));
    settle();
  }
  void settle() { platform_.run_until_idle(*loop_); }
  bool finished() const noexcept { return finished_; }
  std::error_code error() {
    const Result<> result = task_->handle().promise().take();
    return result ? std::error_code() : result.error();
  }
  /// Makes every allocation on the heap fail from the moment when the listener is closed.
  void fail_allocations_after_the_listener() { platform_.failure_after_close = this; }

  struct FailingPlatform : MemoryPlatform {
    void write_line(std::string_view line) noexcept override {
      const TestHeap::NoAllocationFailure no_failure;
      MemoryPlatform::write_line(line);
    }
    void close(int descriptor) noexcept override {
      MemoryPlatform::close(descriptor);
      if (failure_after_close != nullptr) TestHeap::allocation_failure = failure_after_close;
    }
    TestHeap::AllocationFailure* failure_after_close = nullptr;
  };
  FailingPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  Router routes_;
  CancelSource cancel_;

 private:
  bool now() noexcept override { return true; }
  static void begin(loop::Runnable& self) {
    auto& test = static_cast<ServeTaskTest&>(self);
    test.task_->start(Context{test.loop_.get(), &test.cancel_}, test);
  }
  static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
    static_cast<ServeTaskTest&>(self).finished_ = true;
    return std::noop_coroutine();
  }

  std::optional<Task<Result<>>> task_;
  bool finished_ = false;
};

TEST_F(ServeTaskTest, ListensOnPort8080ByDefault) {
  EXPECT_EQ(ServeOptions().endpoint, Endpoint::any(8080));
}

TEST_F(ServeTaskTest, ReturnsClosedAfterADrain) {
  start({.endpoint = Endpoint::loopback(80)});
  EXPECT_FALSE(finished());
  loop_->drain();
  platform_.advance(*loop_, 1s);
  ASSERT_TRUE(finished());
  EXPECT_EQ(error(), Errc::closed);
}

TEST_F(ServeTaskTest, ReturnsCancelledAfterACancellation) {
  start({.endpoint = Endpoint::loopback(80)});
  cancel_.cancel();
  settle();
  ASSERT_TRUE(finished());
  EXPECT_EQ(error(), Errc::cancelled);
}

TEST_F(ServeTaskTest, ReturnsCancelledIfAConnectionArrivesWithTheCancellation) {
  start({.endpoint = Endpoint::loopback(80)});
  MemoryPeer peer(platform_, os::Address::loopback(80));
  loop_->turn(platform_.now());
  cancel_.cancel();
  settle();
  ASSERT_TRUE(finished());
  EXPECT_EQ(error(), Errc::cancelled);
}

TEST_F(ServeTaskTest, ReturnsTheErrorOfTheListener) {
  const auto taken = platform_.listen(os::Address::loopback(80), {});
  ASSERT_TRUE(taken);
  start({.endpoint = Endpoint::loopback(80)});
  for (int second = 0; second < 600 && !finished(); ++second) platform_.advance(*loop_, 1s);
  ASSERT_TRUE(finished());
  EXPECT_EQ(error(), system_error(EADDRINUSE));
}

TEST_F(ServeTaskTest, ReturnsConflictForARouterWithConflicts) {
  routes_.get("/", [] { return text("one"); });
  routes_.get("/", [] { return text("two"); });
  start({.endpoint = Endpoint::loopback(80)});
  ASSERT_TRUE(finished());
  EXPECT_EQ(error(), Errc::conflict);
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /: conflicts with /");
  EXPECT_EQ(platform_.logged()[1], "weir: core 0: 0 connections, 0 requests");
}

TEST_F(ServeTaskTest, LogsEachConflictOnceForAllCores) {
  routes_.get("/", [] { return text("one"); });
  routes_.get("/", [] { return text("two"); });
  routes_.get("/slow", [] { return text("three"); });
  routes_.get("/slow", [] { return text("four"); });
  const auto body = [this](Scope& scope) { return serve(scope, routes_, {}); };
  EXPECT_NE(Runtime(platform_, {.cores = 3, .announce = false}).run_on_each_core(body), 0);
  for (const std::string_view path : {"/", "/slow"}) {
    const std::string line =
        "weir: GET " + std::string(path) + ": conflicts with " + std::string(path);
    EXPECT_EQ(std::ranges::count(platform_.logged(), line), 1) << path;
  }
  EXPECT_EQ(std::ranges::count(platform_.logged(), "weir: "), 0);
}

TEST_F(ServeTaskTest, LogsThatItStopsAlsoWithoutMemory) {
  if (!TestHeap::replaced) GTEST_SKIP() << "the heap cannot fail here";
  start({.endpoint = Endpoint::loopback(80)});
  fail_allocations_after_the_listener();
  cancel_.cancel();
  while (!finished() && loop_->turn(platform_.now())) {
  }
  TestHeap::allocation_failure = nullptr;
  platform_.failure_after_close = nullptr;
  ASSERT_TRUE(finished());
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0], "weir: server stopped, counters unknown (out of memory)");
}

TEST_F(ServeTaskTest, AppliesTheGivenLimits) {
  start({.endpoint = Endpoint::loopback(80),
         .limits = {.first_request_timeout = 2s, .connections_max = 1}});
  MemoryPeer first(platform_, os::Address::loopback(80));
  settle();
  MemoryPeer second(platform_, os::Address::loopback(80));
  settle();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(second.received())), "503");
  platform_.advance(*loop_, 1999ms);
  EXPECT_FALSE(first.ended());
  platform_.advance(*loop_, 1ms);
  EXPECT_TRUE(first.ended());
}

}  // namespace
}  // namespace weir::http::serve_test
