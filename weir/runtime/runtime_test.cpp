#include "weir/runtime/runtime.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::runtime_test {
namespace {

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.announce = false;
  return options;
}

/// Waits until its loop drains, like a listener.
class Drained : Waiter, DrainObserver {
 public:
  Drained() noexcept
      : DrainObserver([](DrainObserver& self) { static_cast<Drained&>(self).resume_later(); }) {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    set_coroutine(handle);
    if (context().loop->draining()) return false;
    context().loop->observe_drain(*this);
    return true;
  }
  void await_resume() const noexcept {}
};

Task<Result<>> until_drained(Scope&) {
  co_await Drained();
  co_return fail(Errc::closed);
}

Task<Result<>> for_ever(Scope&) {
  co_return co_await sleep_until(never);
}

class RuntimeInMemory : public testing::Test {
 protected:
  bool logged(std::string_view text) const {
    return std::ranges::any_of(platform_.logged(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  MemoryPlatform platform_{{.cores = 3}};
};

/// A part of a program that outlives its tasks, such as the client of a proxy.
struct Kept : DrainObserver {
  Kept() noexcept
      : DrainObserver([](DrainObserver& self) { static_cast<Kept&>(self).drained = true; }) {}
  bool drained = false;
};

TEST_F(RuntimeInMemory, DrainsEachLoopAfterTheLastTask) {
  for (const bool drains_early : {false, true}) {
    std::vector<Kept> kept(3);
    Runtime runtime(platform_, quiet());
    const auto body = [&](Scope& scope) -> Task<> {
      const unsigned core = scope.loop().core();
      scope.loop().observe_drain(kept.at(core));
      // The other cores have no task any more when this one drains them.
      if (core == 0) std::ignore = co_await sleep(std::chrono::seconds(1));
      if (core == 0 && drains_early) runtime.drain();
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
    for (const Kept& each : kept) EXPECT_TRUE(each.drained);
  }
}

TEST_F(RuntimeInMemory, RunsTheBodyOnEachCore) {
  std::vector<unsigned> cores;
  const auto body = [](Scope& scope, std::vector<unsigned>& seen) -> Task<> {
    seen.push_back(scope.loop().core());
    EXPECT_EQ(scope.loop().group().loops().size(), 3U);
    EXPECT_EQ(scope.loop().group().loops()[scope.loop().core()], &scope.loop());
    co_return;
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.core_count(), 3U);
  EXPECT_EQ(runtime.run_on_each_core(body, std::ref(cores)), 0);
  std::ranges::sort(cores);
  EXPECT_EQ(cores, (std::vector<unsigned>{0, 1, 2}));
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(RuntimeInMemory, EachCoreHasItsOwnArguments) {
  const auto body = [](Scope& scope, std::string text, std::vector<int>& own) -> Task<Result<>> {
    EXPECT_EQ(text, "given");
    text += "changed";
    EXPECT_TRUE(own.empty());
    own.push_back(1);
    // The body's arguments outlive the body as long as there are children.
    scope.spawn([](const std::string& of) -> Task<> {
      std::ignore = co_await sleep(1s);
      EXPECT_EQ(of, "givenchanged");
    }(text));
    co_return {};
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body, std::string("given"), std::vector<int>()), 0);
}

TEST_F(RuntimeInMemory, WaitsForTheChildren) {
  int ended = 0;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](int& count) -> Task<> {
      std::ignore = co_await sleep(5s);
      ++count;
    }(ended));
    co_return;
  };
  const Instant began = platform_.now();
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(platform_.now() - began, 5s);
}

TEST_F(RuntimeInMemory, AFailureDrainsTheOtherCoresAndLogsOneLine) {
  const auto body = [](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 1) co_return fail(Errc::limit_reached);
    co_return co_await until_drained(scope);
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_EQ(platform_.logged(), std::vector<std::string>{"weir: limit reached"});
}

TEST_F(RuntimeInMemory, AnExceptionCountsAsAFailure) {
  const auto body = [](Scope& scope) -> Task<> {
    std::ignore = co_await sleep(1s);
    if (scope.loop().core() == 2) throw std::runtime_error("no disk");
    co_await Drained();
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_EQ(platform_.logged(), std::vector<std::string>{"weir: exception: no disk"});
}

TEST_F(RuntimeInMemory, APlainFunctionAsBodyMayThrow) {
  const auto body = [](Scope&) -> Task<> { throw std::runtime_error("at once"); };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_TRUE(logged("at once"));
}

// A core whose body has failed drains its children instead of waiting for them.
TEST_F(RuntimeInMemory, ChildrenOfAFailedBodyAreDrainedToo) {
  const auto body = [](Scope& scope) -> Task<Result<>> {
    scope.spawn([]() -> Task<> { co_await Drained(); }());
    if (scope.loop().core() == 0) co_return fail(Errc::conflict);
    co_return {};
  };
  const Instant began = platform_.now();
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_EQ(platform_.now(), began) << "before the drain timeout";
}

TEST_F(RuntimeInMemory, TheFirstSignalDrains) {
  platform_.at(platform_.now() + 3s, [&] { platform_.raise(loop::Signal::interrupt); });
  const Instant began = platform_.now();
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(until_drained), 0);
  EXPECT_EQ(platform_.now() - began, 3s);
  EXPECT_TRUE(logged("SIGINT: draining"));
}

TEST_F(RuntimeInMemory, TheSecondSignalStops) {
  platform_.at(platform_.now() + 3s, [&] { platform_.raise(loop::Signal::terminate); });
  platform_.at(platform_.now() + 4s, [&] { platform_.raise(loop::Signal::terminate); });
  const Instant began = platform_.now();
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(for_ever), 0) << "a requested end is no failure";
  EXPECT_EQ(platform_.now() - began, 4s);
}

TEST_F(RuntimeInMemory, TheDrainTimeoutCancelsRemainingWork) {
  platform_.at(platform_.now() + 3s, [&] { platform_.raise(loop::Signal::interrupt); });
  const Instant began = platform_.now();
  RuntimeOptions options = quiet();
  options.drain_timeout = 7s;
  Runtime runtime(platform_, options);
  EXPECT_EQ(runtime.run_on_each_core(for_ever), 0);
  EXPECT_EQ(platform_.now() - began, 10s);
  EXPECT_TRUE(logged("drain timed out: cancelling the remaining work"));
}

TEST_F(RuntimeInMemory, AnUnusedDrainTimeoutLeavesNoTimer) {
  RuntimeOptions options = quiet();
  options.drain_timeout = 100h;
  const auto body = [](Scope& scope) -> Task<Result<>> {
    scope.spawn([]() -> Task<> { std::ignore = co_await sleep(5s); }());
    co_return co_await until_drained(scope);
  };
  const Instant began = platform_.now();
  Runtime runtime(platform_, options);
  runtime.drain();
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_EQ(platform_.now() - began, 5s);
}

TEST_F(RuntimeInMemory, DrainAndStopBeforeARunApplyToThatRun) {
  Runtime runtime(platform_, quiet());
  runtime.drain();
  EXPECT_EQ(runtime.run_on_each_core(until_drained), 0);
  runtime.stop();
  EXPECT_EQ(runtime.run_on_each_core(for_ever), 0);
  // A request applies to one run.
  bool draining = false, cancelled = false;
  const auto look = [&](Scope& scope) -> Task<> {
    draining = draining || scope.loop().draining();
    cancelled = cancelled || scope.cancelled();
    co_return;
  };
  EXPECT_EQ(runtime.run_on_each_core(look), 0);
  EXPECT_FALSE(draining || cancelled);
}

TEST_F(RuntimeInMemory, DrainAndStopMayBeCalledFromABody) {
  Runtime runtime(platform_, quiet());
  const auto drains = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 1) {
      std::ignore = co_await sleep(1s);
      runtime.drain();
      runtime.drain();
    }
    co_return co_await until_drained(scope);
  };
  EXPECT_EQ(runtime.run_on_each_core(drains), 0);
  const auto stops = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 1) runtime.stop();
    co_return co_await for_ever(scope);
  };
  EXPECT_EQ(runtime.run_on_each_core(stops), 0);
}

TEST_F(RuntimeInMemory, ADeadlockIsAnError) {
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(for_ever), 1);
  EXPECT_TRUE(logged("deadlock"));
  EXPECT_TRUE(logged("cannot run"));
}

TEST_F(RuntimeInMemory, StartsAndStopsAHundredTimes) {
  Runtime runtime(platform_, quiet());
  for (int i = 0; i < 100; ++i) {
    platform_.at(platform_.now() + 1s, [&] { runtime.drain(); });
    ASSERT_EQ(runtime.run_on_each_core(until_drained), 0);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
}

TEST_F(RuntimeInMemory, LogsItsConfiguration) {
  RuntimeOptions options;
  options.cores = 2;
  Runtime runtime(platform_, options);
  EXPECT_EQ(runtime.run_on_each_core([](Scope&) -> Task<> { co_return; }), 0);
  EXPECT_TRUE(logged("2 event loops"));
  EXPECT_TRUE(logged("simulated platform"));
  EXPECT_TRUE(logged("at most "));
}

TEST_F(RuntimeInMemory, AnUnavailableBackendLogsOneLine) {
  RuntimeOptions options = quiet();
  options.backend = BackendChoice::uring;
  Runtime runtime(platform_, options);
  EXPECT_EQ(runtime.run_on_each_core(for_ever), 1);
  EXPECT_EQ(platform_.logged().size(), 1U);
}

TEST(RuntimeAnnounces, LoopsUnderAQuotaAreNotPinned) {
  const auto announced = [](bool limited_by_quota, bool pin) {
    MemoryPlatform platform({.cores = 2, .limited_by_quota = limited_by_quota});
    RuntimeOptions options;
    options.pin = pin;
    const auto nothing = [](Scope&) -> Task<> { co_return; };
    EXPECT_EQ(Runtime(platform, options).run_on_each_core(nothing), 0);
    return platform.logged().empty() ? std::string() : platform.logged().front();
  };
  EXPECT_EQ(announced(false, true), "weir: 2 event loops (2 simulated)");
  EXPECT_EQ(announced(true, false), "weir: 2 event loops (2 simulated)");
  EXPECT_EQ(announced(true, true),
            "weir: 2 event loops (2 simulated; not pinned: the quota names no CPUs)");
}

// --- on threads ---------------------------------------------------------------------------------

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// Waits until at most `count` threads exist: the kernel removes a joined thread after a delay.
bool threads_come_down_to(std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (entries_of("/proc/self/task") > count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

RuntimeOptions on_threads(BackendChoice backend, unsigned cores = 3) {
  RuntimeOptions options = quiet();
  options.backend = backend;
  options.cores = cores;
  options.pin = false;
  return options;
}

bool can_have(BackendChoice backend) {
  OsPlatform platform;
  loop::RunQueue ready;
  return platform.make_backend(backend, ready).has_value();
}

constexpr BackendChoice every_backend[] = {BackendChoice::uring, BackendChoice::epoll,
                                           BackendChoice::poll};

TEST(RuntimeOnThreads, RunsTheBodyOnAThreadForEachCore) {
  for (const BackendChoice backend : every_backend) {
    if (!can_have(backend)) continue;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    const auto body = [&](Scope&) -> Task<> {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      co_return;
    };
    Runtime runtime(on_threads(backend));
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
    EXPECT_EQ(threads.size(), 3U);
    EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  }
}

TEST(RuntimeOnThreads, LeavesNoDescriptorAndNoThreadBehind) {
  for (const BackendChoice backend : every_backend) {
    if (!can_have(backend)) continue;
    const auto once = [&] {
      Runtime runtime(on_threads(backend));
      runtime.drain();
      EXPECT_EQ(runtime.run_on_each_core(until_drained), 0);
    };
    once();
    const std::size_t descriptors = entries_of("/proc/self/fd");
    const std::size_t threads = entries_of("/proc/self/task");
    for (int i = 0; i < 20; ++i) once();
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
    EXPECT_TRUE(threads_come_down_to(threads));
  }
}

TEST(RuntimeOnThreads, TwoRuntimesRunAtTheSameTime) {
  RuntimeOptions options = on_threads(BackendChoice::epoll, 2);
  options.handle_signals = false;
  for (int i = 0; i < 10; ++i) {
    Runtime one(options), two(options);
    std::atomic<int> begun = 0;
    const auto body = [&](Scope& scope) -> Task<Result<>> {
      if (begun.fetch_add(1) == 3) {
        one.drain();
        two.drain();
      }
      co_return co_await until_drained(scope);
    };
    std::thread other([&] { EXPECT_EQ(two.run_on_each_core(body), 0); });
    EXPECT_EQ(one.run_on_each_core(body), 0);
    other.join();
  }
}

TEST(RuntimeOnThreads, AnyThreadMayStopItAtAnyTime) {
  RuntimeOptions options = on_threads(BackendChoice::epoll, 2);
  options.handle_signals = false;
  for (int i = 0; i < 50; ++i) {
    Runtime runtime(options);
    std::thread stopper([&] {
      for (int spin = 0; spin < i * 20; ++spin) std::this_thread::yield();
      i % 2 == 0 ? runtime.stop() : runtime.drain();
    });
    EXPECT_EQ(runtime.run_on_each_core(i % 2 == 0 ? for_ever : until_drained), 0);
    stopper.join();
  }
}

TEST(RuntimeOnThreads, ASignalDrainsAndASecondOneStops) {
  const auto body = [](Scope& scope, bool stubborn) -> Task<Result<>> {
    if (scope.loop().core() == 0) ::kill(::getpid(), SIGTERM);
    co_await Drained();
    if (!stubborn) co_return {};
    if (scope.loop().core() == 0) ::kill(::getpid(), SIGINT);
    co_return co_await sleep_until(never);
  };
  Runtime runtime(on_threads(BackendChoice::epoll));
  testing::internal::CaptureStderr();
  EXPECT_EQ(runtime.run_on_each_core(body, false), 0);
  EXPECT_EQ(runtime.run_on_each_core(body, true), 0);
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("SIGTERM: draining"), std::string::npos);
  EXPECT_NE(logged.find("SIGINT again: stopping"), std::string::npos);
}

// volatile: the compiler may otherwise assume that the loop ends.
void never_yield() {
  volatile bool for_ever = true;
  while (for_ever) {
  }
}

Task<> hangs_after(Scope& scope, int signals) {
  if (scope.loop().core() == 0) {
    for (int i = 0; i < signals; ++i) {
      ::kill(::getpid(), i == 0 ? SIGTERM : SIGINT);
    }
    never_yield();
  }
  co_return;
}

TEST(RuntimeDeathTest, ABlockedHandlerEndsWithTheDrainTimeout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RuntimeOptions options = on_threads(BackendChoice::epoll, 2);
  options.drain_timeout = 100ms;
  EXPECT_EXIT(std::exit(Runtime(options).run_on_each_core(hangs_after, 1)),
              testing::ExitedWithCode(1), "does not return");
}

TEST(RuntimeDeathTest, ABlockedHandlerEndsWithTheSecondSignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RuntimeOptions options = on_threads(BackendChoice::epoll, 2);
  options.drain_timeout = 1000h;
  EXPECT_EXIT(std::exit(Runtime(options).run_on_each_core(hangs_after, 2)),
              testing::ExitedWithCode(1), "does not return");
}

Task<> drains_and_hangs(Scope&, Runtime& runtime) {
  runtime.drain();
  never_yield();
  co_return;
}

void run_what_drains_and_hangs() {
  RuntimeOptions options = on_threads(BackendChoice::epoll, 1);
  options.drain_timeout = 100ms;
  Runtime runtime(options);
  std::exit(runtime.run_on_each_core(drains_and_hangs, std::ref(runtime)));
}

TEST(RuntimeDeathTest, ABlockedHandlerEndsWithADrainOfTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_what_drains_and_hangs(), testing::ExitedWithCode(1), "does not return");
}

Task<> waits_for_ever(Scope& scope) {
  if (scope.loop().core() == 0) ::kill(::getpid(), SIGTERM);
  co_await std::suspend_always();
}

TEST(RuntimeDeathTest, AnEndlessWaitEndsWithTheDrainTimeout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RuntimeOptions options = on_threads(BackendChoice::epoll, 2);
  options.drain_timeout = 100ms;
  EXPECT_EXIT(std::exit(Runtime(options).run_on_each_core(waits_for_ever)),
              testing::ExitedWithCode(1), "does not return");
}

// One core is busy long after the time limit, as when 19,000 handlers clean up; the other is
// idle.
Task<> cleans_up(Scope& scope, Runtime& runtime, Duration length) {
  if (scope.loop().core() != 0) co_return;
  runtime.stop();
  const Instant end = after(scope.loop().now(), length);
  while (scope.loop().now() < end) co_await yield();
}

TEST(RuntimeOnThreads, LoopsThatMakeProgressAreNotAbandoned) {
  Runtime runtime(on_threads(BackendChoice::epoll, 2));
  EXPECT_EQ(runtime.run_on_each_core(cleans_up, std::ref(runtime), Duration(2500ms)), 0);
}

}  // namespace
}  // namespace weir::runtime_test
