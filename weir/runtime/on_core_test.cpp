#include "weir/runtime/on_core.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/records_its_end.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::on_core_test {
namespace {

unsigned here() {
  return Loop::current()->core();
}

Task<Result<int>> nap_there(Duration length, int value) {
  WEIR_CO_TRY(co_await sleep(length));
  co_return value;
}

/// Runs the body of a test on core 0 of three.
class OnCore : public testing::Test {
 protected:
  template <class Body>
  void run(Body body) {
    bool ran = false;
    const auto on_first = [&](Scope& scope) -> Task<Result<>> {
      if (scope.loop().core() != 0) co_return {};
      loops_ = scope.loop().group().loops();
      ran = true;
      co_await body(scope);
      for (Loop* const loop : loops_) {
        loop->blocks().collect();
        if (loop != &scope.loop()) {
          EXPECT_EQ(loop->blocks().blocks_in_use(), 0U);
        }
        EXPECT_EQ(loop->timers().armed(), 0U);
      }
      co_return {};
    };
    RuntimeOptions options;
    options.announce = false;
    Runtime runtime(platform_, options);
    EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
    EXPECT_TRUE(ran);
  }
  MemoryPlatform platform_{{.cores = 3}};
  std::span<Loop* const> loops_;
};

TEST_F(OnCore, CallsFunctionsOnTheOtherCore) {
  run([](Scope&) -> Task<> {
    for (unsigned core = 0; core < 3; ++core) {
      EXPECT_EQ(co_await on_core(core, here), core);
      EXPECT_EQ(here(), 0U);
    }
  });
}

struct Job final : TraceContext {
  std::string_view kind() const noexcept override { return "job"; }
  std::string_view id(IdBuffer) const noexcept override { return "7"; }
};

TEST_F(OnCore, KeepsTheTraceContextOnTheOtherCore) {
  run([](Scope& scope) -> Task<> {
    const Job job;
    CancelSource source(scope.context().cancel);
    source.set_trace(&job);
    const auto trace = [] { return loop::CurrentActivity::trace(); };
    const auto task = []() -> Task<const TraceContext*> {
      const TraceContext* const before = loop::CurrentActivity::trace();
      std::ignore = co_await sleep(1s);
      EXPECT_EQ(loop::CurrentActivity::trace(), before);
      co_return before;
    };
    const auto job_of = [&](Task<const TraceContext*> working) -> Task<> {
      EXPECT_EQ(co_await std::move(working), &job);
      EXPECT_EQ(loop::CurrentActivity::trace(), &job);
    };
    for (unsigned core = 0; core < 3; ++core) {
      auto called = in_context({&scope.loop(), &source}, job_of(as_task(on_core(core, trace))));
      co_await std::move(called);
      auto awaited = in_context({&scope.loop(), &source}, job_of(as_task(on_core(core, task))));
      co_await std::move(awaited);
      EXPECT_EQ(loop::CurrentActivity::trace(), nullptr) << "outside the call there is no trace";
      EXPECT_EQ(co_await on_core(core, trace), nullptr);
    }
  });
}

TEST_F(OnCore, RunsTasksOnTheOtherCore) {
  run([this](Scope&) -> Task<> {
    const auto task = []() -> Task<unsigned> {
      const Context context = co_await this_context();
      EXPECT_TRUE(co_await sleep(1s));
      EXPECT_EQ(Loop::current(), context.loop);
      co_return here();
    };
    const Instant began = platform_.now();
    EXPECT_EQ(co_await on_core(2, task), 2U);
    EXPECT_EQ(here(), 0U);
    EXPECT_EQ(platform_.now() - began, 1s);
  });
}

TEST_F(OnCore, MovesArgumentsOutAndValuesBack) {
  run([](Scope&) -> Task<> {
    const auto add = [](std::unique_ptr<int> to, int amount) {
      *to += amount;
      return to;
    };
    auto sum = co_await on_core(1, add, std::make_unique<int>(2), 3);
    EXPECT_EQ(*sum, 5);
    const auto later = [](std::unique_ptr<int> to) -> Task<std::unique_ptr<int>> {
      co_await yield();
      ++*to;
      co_return to;
    };
    sum = co_await on_core(1, later, std::move(sum));
    EXPECT_EQ(*sum, 6);
    int called = 0;
    const auto nothing = [](int& count) { ++count; };
    co_await on_core(2, nothing, std::ref(called));
    const auto nothing_later = [](int& count) -> Task<> {
      co_await yield();
      ++count;
    };
    co_await on_core(2, nothing_later, std::ref(called));
    EXPECT_EQ(called, 2);
  });
}

TEST_F(OnCore, FunctionsAndArgumentsLiveOnTheCallersCore) {
  run([](Scope&) -> Task<> {
    std::vector<unsigned> ends;
    RecordsItsEnd function(ends, here);
    EXPECT_EQ(co_await on_core(1, std::move(function)), 1U);
    EXPECT_EQ(ends, (std::vector<unsigned>{0}));
    const auto call = [](const RecordsItsEnd<unsigned>& argument) { return argument(); };
    RecordsItsEnd argument(ends, here);
    EXPECT_EQ(co_await on_core(2, call, std::move(argument)), 2U);
    EXPECT_EQ(ends, (std::vector<unsigned>{0, 0}));
  });
}

TEST_F(OnCore, RethrowsRemoteExceptionsHere) {
  run([](Scope&) -> Task<> {
    const auto plain = []() -> int { throw std::runtime_error("plain"); };
    const auto task = []() -> Task<int> {
      co_await yield();
      throw std::runtime_error("task");
    };
    const auto maker = []() -> Task<> { throw std::runtime_error("maker"); };
    std::vector<std::string> caught;
    try {
      std::ignore = co_await on_core(1, plain);
    } catch (const std::runtime_error& error) {
      caught.emplace_back(error.what());
    }
    try {
      std::ignore = co_await on_core(1, task);
    } catch (const std::runtime_error& error) {
      caught.emplace_back(error.what());
    }
    try {
      co_await on_core(1, maker);
    } catch (const std::runtime_error& error) {
      caught.emplace_back(error.what());
    }
    EXPECT_EQ(caught, (std::vector<std::string>{"plain", "task", "maker"}));
  });
}

TEST_F(OnCore, AMissingCoreThrowsOutOfRange) {
  run([](Scope&) -> Task<> {
    std::string thrown;
    try {
      std::ignore = co_await on_core(3, here);
    } catch (const std::out_of_range& error) {
      thrown = error.what();
    }
    EXPECT_EQ(thrown, "on_core(3): there are 3 cores");
  });
}

TEST_F(OnCore, CancellationIsPassedOnAndAwaited) {
  run([this](Scope&) -> Task<> {
    Instant began = platform_.now();
    const auto late = co_await timeout(1s, on_core(1, nap_there, 1h, 5));
    EXPECT_EQ(late.error(), Errc::timed_out);
    EXPECT_EQ(platform_.now() - began, 1s);
    EXPECT_EQ((co_await timeout(2s, on_core(1, nap_there, 1s, 5))).value(), 5);

    const auto slow_to_end = [](Duration more) -> Task<Result<int>> {
      const Context own = co_await this_context();
      EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
      std::ignore = co_await in_context(Context{own.loop, nullptr}, nap_there(more, 0));
      co_return fail(Errc::cancelled);
    };
    began = platform_.now();
    EXPECT_EQ((co_await timeout(1s, on_core(1, slow_to_end, Duration(3s)))).error(),
              Errc::timed_out);
    EXPECT_EQ(platform_.now() - began, 4s);
  });
}

TEST_F(OnCore, ACallOfACancelledTaskRunsCancelled) {
  run([](Scope& scope) -> Task<> {
    scope.cancel();
    EXPECT_EQ((co_await on_core(1, nap_there, 1h, 5)).error(), Errc::cancelled);
    EXPECT_EQ(co_await on_core(1, here), 1U) << "a call without a wait is not stopped";
  });
}

TEST_F(OnCore, SurvivesCancellationAtEveryStep) {
  run([](Scope&) -> Task<> {
    const auto chain = [](int turns) -> Task<Result<int>> {
      for (int i = 0; i < turns; ++i) {
        WEIR_CO_TRY(co_await sleep(0s));
      }
      co_return turns;
    };
    int finished = 0;
    for (int step = 0; step < 20; ++step) {
      CancelSource cancel;
      const auto give_up = [](CancelSource& source, int turns) -> Task<> {
        for (int i = 0; i < turns; ++i) std::ignore = co_await sleep(0s);
        source.cancel();
      };
      const auto call = [](CancelSource& source, auto& work) -> Task<bool> {
        const Context own = co_await this_context();
        const auto value =
            co_await in_context(Context{own.loop, &source}, on_core(2, std::ref(work), 4));
        EXPECT_TRUE(value || value.error() == Errc::cancelled);
        co_return value.has_value();
      };
      const auto both = co_await all(call(cancel, chain), give_up(cancel, step));
      finished += std::get<0>(*both) ? 1 : 0;
    }
    EXPECT_GT(finished, 5);
    EXPECT_LT(finished, 18);
  });
}

/// A value that cancels a source whenever it is moved on core 0, the caller's core.
class CancelsWhenReturned {
 public:
  explicit CancelsWhenReturned(CancelSource& source) noexcept : source_(source) {}
  CancelsWhenReturned(CancelsWhenReturned&& other) noexcept : source_(other.source_) {
    if (here() == 0) source_.cancel();
  }

 private:
  CancelSource& source_;
};

TEST_F(OnCore, ACancellationWhileTheValueReturnsHasNoEffect) {
  run([](Scope& scope) -> Task<> {
    const auto value = [](CancelSource& source) { return CancelsWhenReturned(source); };
    const auto task = [](CancelSource& source) -> Task<CancelsWhenReturned> {
      co_await yield();
      co_return CancelsWhenReturned(source);
    };
    const auto call = [&](auto& function) -> Task<> {
      CancelSource source;
      const Context context{&scope.loop(), &source};
      auto calling = in_context(context, on_core(1, std::ref(function), std::ref(source)));
      std::ignore = co_await std::move(calling);
      EXPECT_TRUE(source.cancelled());
      co_await on_core(1, here);  // everything that was posted to core 1 before has run
    };
    co_await call(value);
    co_await call(task);
  });
}

TEST_F(OnCore, RunsManyNestedCallsAtTheSameTime) {
  run([](Scope&) -> Task<> {
    struct Bounce {
      static Task<int> play(int left) {
        if (left == 0) co_return 0;
        co_return 1 + co_await on_core((here() + 1) % 3, &Bounce::play, left - 1);
      }
    };
    std::vector<Task<int>> games;
    for (int i = 0; i < 50; ++i) games.push_back(Bounce::play(i));
    const auto counts = co_await all(std::move(games));
    for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ((*counts)[i], static_cast<int>(i));
  });
}

TEST(OnCoreAlone, ALoopWithoutARuntimeIsCore0) {
  MemoryPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  EXPECT_EQ(weir::run(*loop, on_core(0, here)), 0U);
  EXPECT_THROW(weir::run(*loop, on_core(1, here)), std::out_of_range);
}

// --- on threads, for the thread sanitizer
// -------------------------------------------------------

TEST(OnCoreOnThreads, EachCoreCallsEachCore) {
  constexpr unsigned cores = 3;
  for (const BackendChoice backend : {BackendChoice::epoll, BackendChoice::automatic}) {
    RuntimeOptions options;
    options.announce = false;
    options.backend = backend;
    options.cores = cores;
    options.pin = false;
    PerCore<long> calls(cores);
    Runtime runtime(options);
    const auto count = [&calls](std::string text, unsigned core) {
      ++calls.on(core);
      return text + "!";
    };
    const auto count_later = [&calls](std::unique_ptr<Duration> nap) -> Task<Result<Duration>> {
      ++calls.local(*(co_await this_context()).loop);
      co_await yield();
      WEIR_CO_TRY(co_await sleep(*nap));
      co_return *nap;
    };
    std::atomic<int> timed_out = 0;
    const auto body = [&](Scope& scope) -> Task<Result<>> {
      const unsigned own = scope.loop().core();
      for (int i = 0; i < 500; ++i) {
        const unsigned other = (own + static_cast<unsigned>(i)) % cores;
        const std::string text(static_cast<std::size_t>(i % 40), 'x');
        const std::string answer = co_await on_core(other, std::ref(count), text, other);
        if (answer != text + "!") co_return fail(Errc::bad_input);
        // Most calls may end either way; some can only be cancelled.
        const Duration length = i % 10 == 9 ? Duration(1h) : Duration(i * 100);
        auto nap = std::make_unique<Duration>(length);
        const auto value =
            co_await timeout(20us, on_core(other, std::ref(count_later), std::move(nap)));
        if (!value) timed_out.fetch_add(1);
        if (value && *value != length) co_return fail(Errc::bad_input);
      }
      co_return {};
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
    long sum = 0;
    for (std::size_t core = 0; core < calls.size(); ++core) sum += calls.on(core);
    EXPECT_EQ(sum, 3L * 500 * 2);
    EXPECT_GE(timed_out.load(), 3 * 500 / 10);
  }
}

}  // namespace
}  // namespace weir::on_core_test
