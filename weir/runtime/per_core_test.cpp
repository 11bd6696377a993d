#include "weir/runtime/per_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::per_core_test {
namespace {

TEST(PerCore, MakesOneForEachCore) {
  PerCore<std::string> names(3, [](unsigned core) { return "core " + std::to_string(core); });
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names.on(0), "core 0");
  EXPECT_EQ(names.on(2), "core 2");
  PerCore<int> zeros(2);
  EXPECT_EQ(zeros.on(0) + zeros.on(1), 0);
}

TEST(PerCore, HoldsImmovableValues) {
  struct Fixed {
    explicit Fixed(unsigned core) : of(core) {}
    Fixed(const Fixed&) = delete;
    Fixed& operator=(const Fixed&) = delete;
    unsigned of;
  };
  PerCore<Fixed> fixed(4, [](unsigned core) { return Fixed(core); });
  for (unsigned core = 0; core < 4; ++core) EXPECT_EQ(fixed.on(core).of, core);
}

TEST(PerCore, SharesNoCacheLine) {
  PerCore<char> values(4);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const auto one = reinterpret_cast<std::uintptr_t>(&values.on(a));
      const auto two = reinterpret_cast<std::uintptr_t>(&values.on(b));
      EXPECT_NE(one / 64, two / 64);
    }
  }
}

TEST(PerCore, LocalReturnsTheValueOfTheCore) {
  for (const bool simulated : {true, false}) {
    MemoryPlatform platform({.cores = 3});
    RuntimeOptions options;
    options.announce = false;
    options.cores = 3;
    options.pin = false;
    const auto count = [](Scope& scope, PerCore<long>& counts) -> Task<> {
      for (int i = 0; i < 1000; ++i) {
        counts.local(scope.loop()) += scope.loop().core() + 1;
        co_await yield();
      }
    };
    PerCore<long> counts(3);
    if (simulated) {
      EXPECT_EQ(Runtime(platform, options).run_on_each_core(count, std::ref(counts)), 0);
    } else {
      EXPECT_EQ(Runtime(options).run_on_each_core(count, std::ref(counts)), 0);
    }
    for (std::size_t core = 0; core < 3; ++core) {
      EXPECT_EQ(counts.on(core), 1000 * (static_cast<long>(core) + 1));
    }
  }
}

// --- over all cores ------------------------------------------------------------------------------

// Each core gets a copy of the function, and the function is called with the core's value.
template <class Fn>
concept Mappable = requires(PerCore<int>& values, Fn fn) { values.map(std::move(fn)); };
struct MoveOnly {
  std::unique_ptr<int> own;
  int operator()(int& number) const { return number; }
};
static_assert(Mappable<int (*)(int&)> && !Mappable<int (*)(std::string&)> && !Mappable<MoveOnly>);

/// Runs the body of a test on core 0 of three, with a number for each core.
class PerCoreMap : public testing::Test {
 protected:
  template <class Body>
  void run(Body body) {
    const auto on_first = [&](Scope& scope) -> Task<Result<>> {
      if (scope.loop().core() != 0) co_return {};
      co_await body(scope);
      for (Loop* const loop : scope.loop().group().loops()) {
        EXPECT_EQ(loop->timers().armed(), 0U);
      }
      co_return {};
    };
    RuntimeOptions options;
    options.announce = false;
    EXPECT_EQ(Runtime(platform_, options).run_on_each_core(on_first), 0);
  }
  MemoryPlatform platform_{{.cores = 3}};
  PerCore<int> numbers_{3, [](unsigned core) { return static_cast<int>(core) * 10; }};
};

TEST_F(PerCoreMap, CallsOnEachCoreAndCollectsTheResults) {
  run([this](Scope& scope) -> Task<> {
    std::vector<unsigned> cores;
    const auto add = [&](int& number) {
      cores.push_back(Loop::current()->core());
      return ++number;
    };
    const std::vector<int> found = co_await numbers_.map(add);
    EXPECT_EQ(found, (std::vector<int>{1, 11, 21}));
    EXPECT_EQ(cores.size(), 3U);
    std::ranges::sort(cores);
    EXPECT_EQ(cores, (std::vector<unsigned>{0, 1, 2}));
    EXPECT_EQ(Loop::current(), &scope.loop());
    const auto nothing = [](int& number) { number = -1; };
    co_await numbers_.map(nothing);
    EXPECT_EQ(numbers_.on(2), -1);
  });
}

TEST_F(PerCoreMap, EachCoreCallsItsOwnCopyOfTheFunction) {
  run([this](Scope&) -> Task<> {
    const auto count = [calls = 0](int&) mutable { return ++calls; };
    const std::vector<int> counts = co_await numbers_.map(count);
    EXPECT_EQ(counts, (std::vector<int>{1, 1, 1}));
  });
}

TEST_F(PerCoreMap, TasksRunOnAllCoresAtTheSameTime) {
  run([this](Scope&) -> Task<> {
    const Instant began = platform_.now();
    const auto later = [suffix = std::string("!")](int& number) -> Task<std::string> {
      EXPECT_TRUE(co_await sleep(1s));
      co_return std::to_string(number) + suffix;
    };
    const auto found = co_await numbers_.map(later);
    EXPECT_EQ(found, (std::vector<std::string>{"0!", "10!", "20!"}));
    EXPECT_EQ(platform_.now() - began, 1s);
  });
}

TEST_F(PerCoreMap, ReducesInTheOrderOfTheCores) {
  run([this](Scope&) -> Task<> {
    const auto text = [](const int& number) { return std::to_string(number); };
    const auto join = [](std::string to, const std::string& what) { return to + "," + what; };
    EXPECT_EQ(co_await numbers_.reduce(text, std::string("all"), join), "all,0,10,20");
    const auto same = [](int& number) { return number; };
    EXPECT_EQ(co_await numbers_.reduce(same, 0L, std::plus<>()), 30);
  });
}

TEST_F(PerCoreMap, TheFirstErrorCancelsTheOthers) {
  run([this](Scope&) -> Task<> {
    const Instant began = platform_.now();
    int cancelled = 0;
    const auto fail_on_second = [&cancelled](int& number) -> Task<Result<int>> {
      const Duration length = number == 10 ? Duration(1s) : Duration(1h);
      const auto slept = co_await sleep(length);
      if (number == 10) co_return fail(Errc::not_found);
      if (!slept) ++cancelled;
      co_return number;
    };
    const Result<std::vector<int>> found = co_await numbers_.map(fail_on_second);
    EXPECT_EQ(found.error(), Errc::not_found);
    EXPECT_EQ(cancelled, 2);
    EXPECT_EQ(platform_.now() - began, 1s);
    const Result<int> sum = co_await numbers_.reduce(fail_on_second, 0, std::plus<>());
    EXPECT_EQ(sum.error(), Errc::not_found);
    const auto good = [](int& number) -> Result<int> { return number; };
    EXPECT_EQ((co_await numbers_.reduce(good, 0, std::plus<>())).value(), 30);
  });
}

TEST_F(PerCoreMap, RethrowsRemoteExceptionsHere) {
  run([this](Scope&) -> Task<> {
    const auto broken = [](int& number) -> int {
      if (number == 20) throw std::runtime_error("broken");
      return number;
    };
    std::string caught;
    try {
      std::ignore = co_await numbers_.map(broken);
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "broken");
  });
}

TEST_F(PerCoreMap, ThrowsIfThereAreMoreValuesThanCores) {
  run([](Scope&) -> Task<> {
    PerCore<int> four(4);
    const auto same = [](int& number) { return number; };
    bool thrown = false;
    try {
      std::ignore = co_await four.map(same);
    } catch (const std::out_of_range&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_F(PerCoreMap, CancellationIsPassedOnAndAwaited) {
  run([this](Scope&) -> Task<> {
    const Instant began = platform_.now();
    int ended = 0;
    const auto endless = [&ended](int&) -> Task<Result<int>> {
      const auto slept = co_await sleep_until(never);
      ++ended;
      co_return fail(slept.error());
    };
    EXPECT_EQ((co_await timeout(1s, numbers_.map(endless))).error(), Errc::timed_out);
    EXPECT_EQ(ended, 3);
    EXPECT_EQ(platform_.now() - began, 1s);
  });
}

/// Scenario of a map from core 1 that is cancelled at each possible point. The map is awaited,
/// and each core counts once.
struct Counting {
  explicit Counting(CancelInjector& of) : injector(of) {}
  Task<> on(unsigned core) {
    if (core == 1) co_await injector.as_target(0, count());
  }
  Task<> count() {
    const auto steps = [this](int& number) -> Task<Result<int>> {
      ++running;
      for (int i = 0; i < 3; ++i) {
        const auto slept = co_await sleep(0s);
        injector.checkpoint();
        if (!slept) {
          --running;
          co_return fail(slept.error());
        }
      }
      --running;
      co_return ++number;
    };
    const Result<int> sum = co_await numbers.reduce(steps, 0, std::plus<>());
    EXPECT_EQ(running, 0);
    EXPECT_TRUE(sum ? *sum == 3 : sum.error() == Errc::cancelled);
    (sum ? finished : cancelled) = true;
  }
  bool outside() const { return false; }
  void check() const { EXPECT_NE(finished, cancelled); }

  CancelInjector& injector;
  PerCore<int> numbers{3};
  int running = 0;
  bool finished = false;
  bool cancelled = false;
};

using PerCoreCancelSweep = MultiCoreTest;

TEST_F(PerCoreCancelSweep, MapSurvivesCancellationAtEveryStep) {
  EXPECT_GT(sweep<Counting>(1), 20U);
}

TEST(PerCoreOnThreads, EachCoreMapsOverAllCores) {
  constexpr std::size_t cores = 3;
  RuntimeOptions options;
  options.announce = false;
  options.cores = cores;
  options.pin = false;
  PerCore<long> counts(cores);
  const auto body = [&](Scope&) -> Task<> {
    const auto count = [](long& number) { return ++number; };
    const auto count_later = [](long& number) -> Task<Result<long>> {
      co_await yield();
      co_return ++number;
    };
    for (int i = 0; i < 200; ++i) {
      co_await counts.map(count);
      const auto sum = co_await counts.reduce(count_later, 0L, std::plus<>());
      EXPECT_TRUE(sum);
    }
  };
  EXPECT_EQ(Runtime(options).run_on_each_core(body), 0);
  for (std::size_t core = 0; core < cores; ++core) {
    EXPECT_EQ(counts.on(core), 200L * 2 * static_cast<long>(cores));
  }
}

}  // namespace
}  // namespace weir::per_core_test
