// Tests of what a runtime asks of its platform in a run, and of its log lines and statuses.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/lock_probe.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/detail/background_tasks.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::runtime_run_test {
namespace {

using Lines = std::vector<std::string>;

/// A platform that records the arguments of run(), and the state of the run at each log line.
class RecordingPlatform final : public MemoryPlatform {
 public:
  using MemoryPlatform::MemoryPlatform;
  Result<> run(std::span<const loop::LoopPlacement> loops, loop::RunControl* of) override {
    placements.assign(loops.begin(), loops.end());
    ++runs;
    control = of;
    controlled = of != nullptr;
    if (before) before();
    Result<> ran = refusal ? fail(refusal) : MemoryPlatform::run(loops, of);
    control = nullptr;
    return ran;
  }
  Instant now() noexcept override {
    if (on_now) std::exchange(on_now, nullptr)();
    return MemoryPlatform::now();
  }
  void write_line(std::string_view line) noexcept override {
    if (on_log) on_log();
    if (control != nullptr) abandon_at_line.push_back(control->abandon_at());
    MemoryPlatform::write_line(line);
  }

  std::vector<loop::LoopPlacement> placements;
  loop::RunControl* control = nullptr;  // during a run
  bool controlled = false;
  int runs = 0;
  std::function<void()> before;
  std::function<void()> on_log;
  std::function<void()> on_now;  // called once
  std::error_code refusal;
  std::vector<Instant> abandon_at_line;
};

class RuntimeRun : public testing::Test {
 protected:
  RuntimeRun() { options_.announce = false; }
  using Body = std::function<Task<Result<>>(Scope&)>;
  int run(const Body& body) {
    runtime_ = std::make_unique<Runtime>(platform_, options_);
    return run_again(body);
  }
  int run_again(const Body& body) {
    began_ = platform_.now();
    const int status = runtime_->run_on_each_core(body);
    took_ = platform_.now() - began_;
    return status;
  }
  static Task<Result<>> nothing(Scope&) { co_return {}; }
  /// Sleeps for 100 seconds unless it is cancelled.
  static Task<Result<>> sleeps(Scope&) { co_return co_await sleep(100s); }
  /// Returns a body that fails on core 1 after a second. The body of core 0 is sleeps().
  static Body failing_on_core_1(std::error_code error) {
    return [error](Scope& scope) -> Task<Result<>> {
      if (scope.loop().core() == 0) co_return co_await sleep(100s);
      WEIR_CO_TRY(co_await sleep(1s));
      co_return fail(error);
    };
  }
  void at(Duration moment, std::function<void()> event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }
  std::vector<int> cpus() const {
    std::vector<int> all;
    for (const loop::LoopPlacement& each : platform_.placements) all.push_back(each.cpu);
    return all;
  }

  RecordingPlatform platform_{{.cores = 2}};
  RuntimeOptions options_;
  std::unique_ptr<Runtime> runtime_;
  Instant began_{};
  Duration took_{};
};

TEST_F(RuntimeRun, PinsEachLoopToACpuOfItsOwn) {
  options_.cores = 3;
  EXPECT_EQ(run(nothing), 0);
  EXPECT_EQ(cpus(), (std::vector<int>{0, 1, -1})) << "there are two CPUs";
  const RuntimeReport report = runtime_->report();
  for (std::size_t core = 0; core < 3; ++core) {
    EXPECT_EQ(report.cores.at(core).cpu, cpus()[core]);
  }
  options_.pin = false;
  EXPECT_EQ(run(nothing), 0);
  EXPECT_EQ(cpus(), (std::vector<int>{-1, -1, -1}));
}

TEST(RuntimeRunUnderAQuota, PinsNothing) {
  RecordingPlatform platform({.cores = 1, .limited_by_quota = true});
  RuntimeOptions options;
  options.announce = false;
  EXPECT_EQ(Runtime(platform, options).run_on_each_core([](Scope&) -> Task<> { co_return; }), 0);
  ASSERT_EQ(platform.placements.size(), 1U);
  EXPECT_EQ(platform.placements[0].cpu, -1);
}

TEST_F(RuntimeRun, SchedulesTheLoopsAsOrdered) {
  EXPECT_EQ(run(nothing), 0);
  ASSERT_EQ(platform_.placements.size(), 2U);
  const loop::LoopSchedule usual = platform_.placements[1].schedule;
  EXPECT_EQ(usual.fifo_priority, 0);
  EXPECT_FALSE(usual.fifo_required);
  EXPECT_FALSE(usual.busy_poll);
  EXPECT_EQ(usual.busy_wait, Duration(0));
  EXPECT_TRUE(platform_.controlled);

  options_.busy_poll = true;
  options_.busy_wait = 70us;
  options_.real_time = RealTime{.priority = 7, .required = true};
  options_.handle_signals = false;
  EXPECT_EQ(run(nothing), 0);
  for (const loop::LoopPlacement& each : platform_.placements) {
    EXPECT_EQ(each.schedule.fifo_priority, 7);
    EXPECT_TRUE(each.schedule.fifo_required);
    EXPECT_TRUE(each.schedule.busy_poll);
    EXPECT_EQ(each.schedule.busy_wait, 70us);
  }
  EXPECT_FALSE(platform_.controlled) << "the program handles its signals";
}

TEST_F(RuntimeRun, LoopsAreAbandonedAfterTheDrainTimeout) {
  options_.drain_timeout = 5s;
  int changes = 0;
  platform_.before = [&] {
    EXPECT_EQ(platform_.control->abandon_at(), never);
    platform_.control->on_abandon_change([&] { ++changes; });
  };
  at(1s, [&] {
    runtime_->drain();
    EXPECT_EQ(platform_.control->abandon_at(), began_ + 6s);
    EXPECT_EQ(changes, 1);
  });
  at(2s, [&] {
    runtime_->drain();
    EXPECT_EQ(platform_.control->abandon_at(), began_ + 6s) << "a second drain extends nothing";
    EXPECT_EQ(changes, 1);
  });
  at(3s, [&] {
    runtime_->stop();
    EXPECT_EQ(platform_.control->abandon_at(), began_ + 3s);
    EXPECT_EQ(changes, 2);
  });
  EXPECT_EQ(run(sleeps), 0);
  EXPECT_EQ(took_, 3s);
  EXPECT_EQ(run_again(nothing), 0) << "the next run begins without a time limit";
}

TEST_F(RuntimeRun, AFirstSignalDoesNotCutADrainThatHasBegun) {
  at(1s, [&] { runtime_->drain(); });
  at(2s, [&] { platform_.raise(loop::Signal::terminate); });
  at(4s, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(run(sleeps), 0);
  EXPECT_EQ(took_, 4s);
  EXPECT_EQ(platform_.logged(), Lines({"weir: SIGTERM: draining already",
                                       "weir: SIGTERM again: stopping immediately"}));
}

TEST_F(RuntimeRun, ASignalIsObeyedBeforeItIsLogged) {
  at(1s, [&] { platform_.raise(loop::Signal::interrupt); });
  at(2s, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(run(sleeps), 0);
  EXPECT_EQ(took_, 2s);
  EXPECT_EQ(platform_.logged(),
            Lines({"weir: SIGINT: draining", "weir: SIGTERM again: stopping immediately"}));
  EXPECT_EQ(platform_.abandon_at_line,
            (std::vector<Instant>{began_ + 1s + options_.drain_timeout, began_ + 2s}));
}

TEST_F(RuntimeRun, EachCoreLogsThatItsDrainTimedOut) {
  options_.drain_timeout = 5s;
  at(1s, [&] { runtime_->drain(); });
  const Scope* busy = nullptr;
  const auto one_ends = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 1) busy = &scope;
    const Duration length = scope.loop().core() == 0 ? 2s : 100s;
    const auto slept = co_await sleep(length);
    co_return slept;
  };
  platform_.on_log = [&] { EXPECT_TRUE(busy->cancelled()) << "a log may block"; };
  EXPECT_EQ(run(one_ends), 0);
  EXPECT_EQ(took_, 6s);
  EXPECT_EQ(platform_.logged(),
            Lines{"weir: core 1: drain timed out: cancelling the remaining work"});
}

/// Spawns a background task that runs until it is cancelled. It adds 1 to `ended` at its end.
void spawn_in_background(Scope& scope, int& ended) {
  const auto task = [](int& count) -> Task<> {
    const auto slept = co_await sleep_until(never);
    EXPECT_EQ(slept.error(), Errc::cancelled);
    ++count;
  };
  BackgroundTasks* const tasks = BackgroundTasks::find(scope.loop());
  ASSERT_NE(tasks, nullptr);
  tasks->spawn(task(ended));
}

TEST_F(RuntimeRun, BackgroundTasksEndAfterTheBodiesOfAllCores) {
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    const unsigned core = scope.loop().core();
    if (core == 0) spawn_in_background(scope, ended);
    if (core == 0) spawn_in_background(scope, ended);
    const Duration length = core == 0 ? 1s : 3s;
    std::ignore = co_await sleep(length);
    EXPECT_EQ(ended, 0);
    co_return {};
  };
  for (int round = 0; round < 2; ++round) {
    ended = 0;
    EXPECT_EQ(round == 0 ? run(body) : run_again(body), 0);
    EXPECT_EQ(ended, 2);
    EXPECT_EQ(took_, 3s) << "they hold nothing up";
  }
}

TEST_F(RuntimeRun, BackgroundTasksRunUntilTheEndOfADrain) {
  options_.drain_timeout = 5s;
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    spawn_in_background(scope, ended);
    if (scope.loop().core() == 1) co_return {};
    co_return co_await sleep(100s);
  };
  at(1s, [&] { runtime_->drain(); });
  at(5s, [&] { EXPECT_EQ(ended, 0) << "core 0 still drains"; });
  EXPECT_EQ(run(body), 0);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(took_, 6s) << "the drain times out";
}

TEST_F(RuntimeRun, BackgroundTasksDoNotDelayAStop) {
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    spawn_in_background(scope, ended);
    co_return co_await sleep(100s);
  };
  at(2s, [&] { runtime_->stop(); });
  EXPECT_EQ(run(body), 0);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(took_, 2s);
}

TEST_F(RuntimeRun, ACoreWithBackgroundTasksDrainsThoughItsBodyHasEnded) {
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) co_return co_await sleep(2s);
    spawn_in_background(scope, ended);
    Loop& loop = scope.loop();
    at(1500ms, [&loop] { EXPECT_TRUE(loop.draining()); });
    co_return {};
  };
  at(1s, [&] { runtime_->drain(); });
  EXPECT_EQ(run(body), 0);
  EXPECT_EQ(ended, 1);
}

TEST(BackgroundTasksOfALoop, NeedARuntime) {
  MemoryPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  EXPECT_EQ(BackgroundTasks::find(*loop), nullptr);
}

TEST_F(RuntimeRun, ARefusedRunLogsTheReasonAndStartsNoBody) {
  platform_.refusal = system_error(EPERM);
  int begun = 0;
  const auto body = [&](Scope&) -> Task<Result<>> {
    ++begun;
    co_return {};
  };
  EXPECT_EQ(run(body), 1);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(platform_.runs, 1);
  EXPECT_EQ(platform_.logged(), Lines{"weir: cannot run: " + system_error(EPERM).message()});
  platform_.refusal = {};
  EXPECT_EQ(run_again(body), 0);
  EXPECT_EQ(begun, 2);
}

TEST_F(RuntimeRun, BodiesThatWaitForNothingAreCancelled) {
  int cancelled = 0;
  const auto waits = [&](Scope&) -> Task<Result<>> {
    const auto slept = co_await sleep_until(never);
    if (!slept && slept.error() == Errc::cancelled) ++cancelled;
    co_return slept;
  };
  EXPECT_EQ(run(waits), 1);
  EXPECT_EQ(cancelled, 2);
  EXPECT_EQ(platform_.runs, 2) << "the second time to end them";
  EXPECT_EQ(platform_.logged().back(), "weir: cannot run: " + system_error(EDEADLK).message());
}

TEST_F(RuntimeRun, TheTimeOfAnEarlyRequestIsThatOfTheRun) {
  for (const bool stops : {false, true}) {
    runtime_ = std::make_unique<Runtime>(platform_, options_);
    stops ? runtime_->stop() : runtime_->drain();
    platform_.clock().move_to(platform_.now() + 1h);
    Instant abandon_at{};
    const auto body = [&](Scope& scope) -> Task<Result<>> {
      if (scope.loop().core() == 0) abandon_at = platform_.control->abandon_at();
      co_return {};
    };
    EXPECT_EQ(run_again(body), 0);
    EXPECT_EQ(abandon_at, stops ? began_ : began_ + options_.drain_timeout);
  }
}

TEST_F(RuntimeRun, AMissingBackendLogsTheReason) {
  options_.backend = BackendChoice::epoll;
  EXPECT_EQ(run(nothing), 1);
  EXPECT_EQ(platform_.logged(), Lines{"weir: cannot create an event loop: " +
                                      make_error_code(Errc::unsupported).message()});
}

TEST_F(RuntimeRun, OnlyARequestedEndIsNoFailure) {
  const auto status_of = [this](std::error_code error) { return run(failing_on_core_1(error)); };
  options_.drain_timeout = 3s;
  for (const Errc error : {Errc::closed, Errc::cancelled, Errc::timed_out, Errc::conflict}) {
    EXPECT_EQ(status_of(error), 1);
    EXPECT_EQ(took_, 4s) << "the other core is cancelled after the drain timeout";
    EXPECT_EQ(platform_.logged().back(), "weir: " + make_error_code(error).message());
  }
  const auto status_while = [&](const std::function<void()>& end, Errc error) {
    at(500ms, end);
    const auto ends = [error](Scope& scope) -> Task<Result<>> {
      if (scope.loop().core() == 0) co_return {};
      std::ignore = co_await sleep(1s);
      co_return fail(error);
    };
    return run(ends);
  };
  const auto drain = [this] { runtime_->drain(); };
  EXPECT_EQ(status_while(drain, Errc::closed), 0);
  EXPECT_EQ(status_while(drain, Errc::cancelled), 1);
  EXPECT_EQ(status_while(drain, Errc::limit_reached), 1);
  const auto stop = [this] { runtime_->stop(); };
  EXPECT_EQ(status_while(stop, Errc::cancelled), 0);
  EXPECT_EQ(status_while(stop, Errc::timed_out), 1);
  EXPECT_EQ(status_while(stop, Errc::closed), 1);
}

TEST_F(RuntimeRun, TheFirstFailureIsLogged) {
  const auto body = [](Scope& scope) -> Task<Result<>> {
    const bool first = scope.loop().core() == 1;
    const Duration length = first ? 1s : 2s;
    std::ignore = co_await sleep(length);
    co_return fail(first ? Errc::conflict : Errc::not_found);
  };
  EXPECT_EQ(run(body), 1);
  EXPECT_EQ(platform_.logged(), Lines{"weir: " + make_error_code(Errc::conflict).message()});
  EXPECT_EQ(run_again(nothing), 0) << "a failure ends one run";
}

TEST_F(RuntimeRun, AFailedListenerNamesItsAddress) {
  const auto body = [](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) co_return {};
    const std::error_code error = system_error(EACCES);
    scope.loop().group().listener_registry().record_failure("listen on", Endpoint::loopback(80),
                                                            error);
    co_return fail(error);
  };
  EXPECT_EQ(run(body), 1);
  EXPECT_EQ(platform_.logged(),
            Lines{"weir: cannot listen on 127.0.0.1:80: " + system_error(EACCES).message()});
}

TEST_F(RuntimeRun, AFailedChildEndsNoSibling) {
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn([]() -> Task<Result<>> { co_return fail(Errc::not_found); }());
    scope.spawn([](int& count) -> Task<> {
      const auto slept = co_await sleep(1s);
      if (slept) ++count;
    }(ended));
    co_return co_await sleep(2s);
  };
  EXPECT_EQ(run(body), 0);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(took_, 2s);
}

TEST_F(RuntimeRun, ACoreWithoutMemoryForItsBodyFails) {
  platform_.before = [&] { platform_.placements[1].loop->blocks().fail_after(0); };
  EXPECT_EQ(run([](Scope& scope) -> Task<Result<>> {
              for (int second = 0; second < 9 && !scope.loop().draining(); ++second) {
                std::ignore = co_await sleep(1s);
              }
              co_return {};
            }),
            1);
  EXPECT_EQ(took_, 1s) << "the other core drains";
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_NE(platform_.logged()[0].find("bad_alloc"), std::string::npos);
}

TEST_F(RuntimeRun, AReportWaitsUntilARequestIsComplete) {
  const auto requested = [this](void (Runtime::*request)()) {
    LockProbe probe([this] { EXPECT_TRUE(runtime_->report().running); });
    platform_.on_now = [&] { probe.probe(); };
    (*runtime_.*request)();
    EXPECT_TRUE(probe.was_blocked());
  };
  at(1s, [&] { requested(&Runtime::drain); });
  at(2s, [&] { requested(&Runtime::stop); });
  EXPECT_EQ(run(sleeps), 0);
  EXPECT_EQ(took_, 2s);
}

// --- log lines ---------------------------------------------------------------------------------

TEST_F(RuntimeRun, LogsItsConfigurationInThisOrder) {
  options_.announce = true;
  options_.busy_poll = true;
  options_.real_time = RealTime{.priority = 7};
  platform_.set_descriptors_max(1000);
  EXPECT_EQ(run(nothing), 0);
  EXPECT_EQ(
      platform_.logged(),
      Lines({"weir: 2 event loops (2 simulated)", "weir: backend memory (simulated platform)",
             "weir: at most 1000 descriptors (simulated)", "weir: busy polling: loops never sleep",
             "weir: real time: requesting SCHED_FIFO with priority 7"}));
}

// The number of connections is that of each server. The runtime names none, because a server with
// another limit would contradict it.
TEST_F(RuntimeRun, LogsTheLimitOfDescriptors) {
  options_.announce = true;
  options_.cores = 1;
  std::size_t line = 0;
  for (const std::size_t descriptors : {63U, 64U, 80U}) {
    platform_.set_descriptors_max(descriptors);
    EXPECT_EQ(run(nothing), 0);
    ASSERT_EQ(platform_.logged().size(), line + 3);
    EXPECT_EQ(platform_.logged()[line], "weir: 1 event loop (2 simulated)");
    EXPECT_EQ(platform_.logged()[line + 2],
              "weir: at most " + std::to_string(descriptors) + " descriptors (simulated)");
    line += 3;
  }
}

TEST_F(RuntimeRun, LogsEachAddressThatItListensOn) {
  const auto listens = [this](Scope& scope) -> Task<Result<>> {
    const auto opened =
        scope.loop().group().listener_registry().listen(platform_, Endpoint::loopback(80), {});
    co_return opened ? Result<>() : fail(opened.error());
  };
  EXPECT_EQ(run(listens), 0);
  EXPECT_TRUE(platform_.logged().empty());
  options_.announce = true;
  EXPECT_EQ(run(listens), 0);
  ASSERT_EQ(platform_.logged().size(), 4U);
  EXPECT_EQ(platform_.logged()[3], "weir: listening on 127.0.0.1:80");
}

}  // namespace
}  // namespace weir::runtime_run_test
