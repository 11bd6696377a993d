// Tests of Scope, with_scope() and describe().
#include "weir/task/scope.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::scope_test {
namespace {

using ScopeTest = LoopTest;

Task<> nap(Duration length) {
  std::ignore = co_await sleep(length);
}

Task<Result<>> fallible_nap(Duration length) {
  co_return co_await sleep(length);
}

Task<Result<>> fails_after(Duration length, std::error_code error) {
  if (auto slept = co_await sleep(length); !slept) co_return slept;
  co_return fail(error);
}

Task<> throws_after(Duration length, std::string what) {
  std::ignore = co_await sleep(length);
  throw std::runtime_error(what);
}

/// Sleeps until it is cancelled, then continues for a while before it ends.
Task<> ends_slowly(Duration more, bool& ended) {
  EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
  const Context own = co_await this_context();
  co_await in_context(Context{own.loop, nullptr}, nap(more));
  ended = true;
}

TEST_F(ScopeTest, WaitsForItsChildren) {
  bool child_ended = false;
  const auto body = [&](Scope& scope) -> Task<int> {
    scope.spawn([](bool& ended) -> Task<> {
      co_await nap(3s);
      ended = true;
    }(child_ended));
    EXPECT_EQ(scope.running(), 1U);
    co_return 5;
  };
  EXPECT_EQ(run(with_scope(body)).value(), 5);
  EXPECT_TRUE(child_ended);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(ScopeTest, AChildRunsUntilItFirstWaitsInsideSpawn) {
  std::vector<int> order;
  const auto child = [&]() -> Task<> {
    order.push_back(1);
    co_await yield();
    order.push_back(3);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(child());
    order.push_back(2);
    EXPECT_EQ(scope.running(), 1U);
    co_await nap(0s);
    EXPECT_EQ(scope.running(), 0U);
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(ScopeTest, GivesEveryKindOfValue) {
  const auto nothing = [](Scope&) -> Task<> { co_return; };
  const auto result = [](Scope&) -> Task<Result<std::string>> { co_return "text"; };
  const auto empty = [](Scope&) -> Task<Result<>> { co_return {}; };
  const auto error = [](Scope&) -> Task<Result<std::string>> { co_return fail(Errc::closed); };
  const auto moved = [](Scope&, std::unique_ptr<int> in) -> Task<std::unique_ptr<int>> {
    ++*in;
    co_return in;
  };
  EXPECT_TRUE(run(with_scope(nothing)));
  EXPECT_EQ(run(with_scope(result)).value(), "text");
  EXPECT_TRUE(run(with_scope(empty)));
  EXPECT_EQ(run(with_scope(error)).error(), Errc::closed);
  EXPECT_EQ(**run(with_scope(moved, std::make_unique<int>(4))), 5);
}

// The body's parameters outlive the children, which may refer to them.
TEST_F(ScopeTest, ParametersLiveUntilTheChildrenHaveFinished) {
  const auto body = [](Scope& scope, std::string name, std::vector<std::string>& seen) -> Task<> {
    scope.spawn([](const std::string& text, std::vector<std::string>& to) -> Task<> {
      co_await nap(1s);
      to.push_back(text);
    }(name, seen));
    co_return;
  };
  std::vector<std::string> seen;
  const auto outer = [&]() -> Task<> {
    EXPECT_TRUE(co_await with_scope(body, std::string(100, 'x'), std::ref(seen)));
  };
  run(outer());
  EXPECT_EQ(seen, std::vector<std::string>{std::string(100, 'x')});
}

TEST_F(ScopeTest, TheFirstErrorOfAChildCancelsTheOthersAndIsPassedOn) {
  std::vector<std::string> ended;
  const auto sibling = [&]() -> Task<Result<>> {
    const auto slept = co_await sleep(1h);
    ended.push_back(slept ? "slept" : slept.error().message());
    co_return slept;
  };
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(sibling());
    scope.spawn(fails_after(2s, Errc::limit_reached));
    scope.spawn(fails_after(3s, Errc::bad_input));
    co_return co_await sleep(1h);
  };
  EXPECT_EQ(run(with_scope(body)).error(), Errc::limit_reached);
  EXPECT_EQ(ended, std::vector<std::string>{"cancelled"});
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(ScopeTest, TheExceptionOfAChildIsThrownAgain) {
  const auto body = [](Scope& scope) -> Task<int> {
    scope.spawn(throws_after(2s, "first"));
    scope.spawn(throws_after(2s, "second"));
    scope.spawn(fallible_nap(1h));
    EXPECT_EQ((co_await sleep(1h)).error(), Errc::cancelled);
    EXPECT_TRUE(scope.cancelled());
    co_return 1;
  };
  try {
    static_cast<void>(run(with_scope(body)));
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(elapsed(), 2s);
}

/// Sleeps until it is cancelled, and then fails with `error`.
Task<Result<>> fails_when_cancelled(std::error_code error) {
  EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
  co_return fail(error);
}

Task<> throws_when_cancelled(std::string what) {
  EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
  throw std::runtime_error(what);
}

TEST_F(ScopeTest, KeepsTheFirstFailureWhateverFollows) {
  const auto exception_first = [](Scope& scope) -> Task<> {
    scope.spawn(fails_when_cancelled(Errc::bad_input));
    scope.spawn(throws_when_cancelled("second"));
    scope.spawn(throws_after(1s, "first"));
    co_return;
  };
  std::string thrown;
  try {
    static_cast<void>(run(with_scope(exception_first)));
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  EXPECT_EQ(thrown, "first");
  const auto error_first = [](Scope& scope) -> Task<Result<int>> {
    scope.spawn(throws_when_cancelled("late"));
    scope.spawn(fails_when_cancelled(Errc::bad_input));
    scope.spawn(fails_after(1s, Errc::conflict));
    std::ignore = co_await sleep(1h);
    co_return fail(Errc::closed);
  };
  EXPECT_EQ(run(with_scope(error_first)).error(), Errc::conflict);
}

TEST_F(ScopeTest, AFailureAfterTheCancellationCounts) {
  for (const OnFailure policy : {OnFailure::cancel_siblings, OnFailure::isolate}) {
    const auto children = [&]() -> Task<> {
      Scope scope(co_await this_context(), policy);
      scope.spawn(fails_when_cancelled(Errc::bad_input));
      scope.spawn(throws_when_cancelled("late"));
      scope.spawn(fallible_nap(1h));
      scope.cancel();
      co_await scope.children_finished();
      EXPECT_EQ(scope.failures(), 2U) << "all but the one that was only cancelled";
      const bool recorded = policy == OnFailure::cancel_siblings;
      EXPECT_EQ(scope.first_error() == Errc::bad_input, recorded);
      EXPECT_TRUE(scope.first_exception() == nullptr);
    };
    run(children());
  }
  ASSERT_EQ(platform_.logged().size(), 2U) << "only the isolated ones";
  EXPECT_EQ(platform_.logged()[0], "weir: a task failed: malformed input");
  EXPECT_EQ(platform_.logged()[1], "weir: a task failed: exception: late");
}

TEST_F(ScopeTest, CancelledIsAFailureIfTheScopeWasNotCancelled) {
  const auto body = [](Scope& scope) -> Task<int> {
    scope.spawn(fails_after(1s, Errc::cancelled));
    co_return 1;
  };
  EXPECT_EQ(run(with_scope(body)).error(), Errc::cancelled);
  EXPECT_EQ(run(with_scope(OnFailure::isolate, body)).value(), 1);
  EXPECT_EQ(platform_.logged(), std::vector<std::string>{"weir: a task failed: cancelled"});
}

TEST_F(ScopeTest, AnIsolatedScopeThatIsCancelledFromOutsideKeepsItsValue) {
  CancelSource cancel;
  platform_.at(platform_.now() + 2s, [&] { cancel.cancel(); });
  const auto body = [](Scope& scope) -> Task<int> {
    scope.spawn(fallible_nap(1h));
    co_return 1;
  };
  EXPECT_EQ(run(with_scope(OnFailure::isolate, body), &cancel).value(), 1);
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_TRUE(platform_.logged().empty());
}

/// A category of errors that have no memory for their text.
class NoMemoryCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "no memory"; }
  std::string message(int) const override { throw std::bad_alloc(); }
};

TEST_F(ScopeTest, LogsAFailureWithoutMemoryForItsReason) {
  const NoMemoryCategory category;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(fails_after(0s, std::error_code(1, category)));
    co_await nap(1s);
    EXPECT_EQ(scope.failures(), 1U);
  };
  EXPECT_TRUE(run(with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(platform_.logged(),
            std::vector<std::string>{"weir: a task failed: reason unknown (out of memory)"});
}

TEST_F(ScopeTest, AChildMayFailInsideSpawn) {
  const auto immediate = []() -> Task<Result<>> { co_return fail(Errc::not_found); };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(immediate());
    EXPECT_TRUE(scope.cancelled());
    EXPECT_EQ(scope.running(), 0U);
    EXPECT_EQ(scope.failures(), 1U);
    // A child that is spawned too late is cancelled from the start, but runs.
    bool ran = false;
    scope.spawn([](bool& flag) -> Task<> {
      flag = true;
      EXPECT_EQ((co_await sleep(1s)).error(), Errc::cancelled);
    }(ran));
    EXPECT_TRUE(ran);
    co_return;
  };
  EXPECT_EQ(run(with_scope(body)).error(), Errc::not_found);
}

TEST_F(ScopeTest, WhenTheBodyThrowsTheChildrenAreCancelledAndAwaited) {
  bool ended = false;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(ends_slowly(4s, ended));
    co_await throws_after(1s, "body");
  };
  EXPECT_THROW(static_cast<void>(run(with_scope(body))), std::runtime_error);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 5s);
}

TEST_F(ScopeTest, WhenTheBodyReturnsAnErrorTheChildrenAreCancelledAndAwaited) {
  bool ended = false;
  const auto body = [&](Scope& scope) -> Task<Result<int>> {
    scope.spawn(ends_slowly(4s, ended));
    co_return fail(Errc::conflict);
  };
  EXPECT_EQ(run(with_scope(body)).error(), Errc::conflict);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 4s);
}

TEST_F(ScopeTest, ABodyThatIsNoCoroutineMayThrow) {
  const auto body = [](Scope& scope) -> Task<> {
    scope.spawn(nap(1s));
    throw std::runtime_error("before there was a task");
  };
  EXPECT_THROW(static_cast<void>(run(with_scope(body))), std::runtime_error);
}

TEST_F(ScopeTest, IsolatedFailuresAreLoggedAndCountedAndCancelNoSibling) {
  const auto body = [](Scope& scope) -> Task<int> {
    scope.spawn(throws_after(1s, "boom"));
    scope.spawn(fails_after(1s, Errc::limit_reached));
    scope.spawn(fallible_nap(3s));
    EXPECT_TRUE(co_await sleep(2s));
    EXPECT_EQ(scope.failures(), 2U);
    EXPECT_EQ(scope.running(), 1U);
    EXPECT_FALSE(scope.cancelled());
    co_return 9;
  };
  EXPECT_EQ(run(with_scope(OnFailure::isolate, body)).value(), 9);
  EXPECT_EQ(elapsed(), 3s);
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_NE(platform_.logged()[0].find("boom"), std::string::npos);
  EXPECT_NE(platform_.logged()[1].find("limit reached"), std::string::npos);
}

TEST_F(ScopeTest, AnIsolatedBodyThatFailsStillWaitsForItsChildren) {
  const auto returns_error = [](Scope& scope) -> Task<Result<>> {
    scope.spawn(fallible_nap(3s));
    co_return fail(Errc::closed);
  };
  EXPECT_EQ(run(with_scope(OnFailure::isolate, returns_error)).error(), Errc::closed);
  EXPECT_EQ(elapsed(), 3s);
  const auto throws = [](Scope& scope) -> Task<> {
    scope.spawn(fallible_nap(3s));
    co_await throws_after(0s, "body");
  };
  EXPECT_THROW(static_cast<void>(run(with_scope(OnFailure::isolate, throws))), std::runtime_error);
  EXPECT_EQ(elapsed(), 6s);
}

TEST_F(ScopeTest, AChildMayCancelItsScope) {
  for (const OnFailure policy : {OnFailure::cancel_siblings, OnFailure::isolate}) {
    const auto body = [](Scope& scope) -> Task<int> {
      scope.spawn([](Scope& own) -> Task<> {
        co_await nap(1s);
        own.cancel();
      }(scope));
      scope.spawn(fallible_nap(1h));
      EXPECT_EQ((co_await sleep(1h)).error(), Errc::cancelled);
      co_return 3;
    };
    const Instant before = platform_.now();
    EXPECT_EQ(run(with_scope(policy, body)).value(), 3);
    EXPECT_EQ(platform_.now() - before, 1s);
  }
  EXPECT_TRUE(platform_.logged().empty()) << "a cancellation is not a failure";
}

TEST_F(ScopeTest, CancellationFromOutsideReachesBodyAndChildren) {
  CancelSource cancel;
  platform_.at(platform_.now() + 2s, [&] { cancel.cancel(); });
  bool ended = false;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(fallible_nap(1h));
    scope.spawn(ends_slowly(1s, ended));
    co_return co_await sleep(1h);
  };
  EXPECT_EQ(run(with_scope(body), &cancel).error(), Errc::cancelled);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(ScopeTest, MayBeCancelledWhileItWaitsForTheChildren) {
  CancelSource cancel;
  platform_.at(platform_.now() + 2s, [&] { cancel.cancel(); });
  const auto body = [](Scope& scope) -> Task<int> {
    scope.spawn(fallible_nap(1h));
    co_return 1;
  };
  EXPECT_EQ(run(with_scope(body), &cancel).error(), Errc::cancelled) << "a child was cut short";
  EXPECT_EQ(elapsed(), 2s);
  cancel.cancel();
  const auto needs_no_wait = [](Scope& scope) -> Task<int> {
    scope.spawn([]() -> Task<Result<>> { co_return {}; }());
    co_return 2;
  };
  EXPECT_EQ(run(with_scope(needs_no_wait), &cancel).value(), 2);
}

TEST_F(ScopeTest, CancellingAScopeLeavesItsParentAlone) {
  const auto inner = [](Scope& scope) -> Task<int> {
    scope.spawn(fallible_nap(1h));
    scope.cancel();
    EXPECT_EQ((co_await sleep(1s)).error(), Errc::cancelled);
    co_return 1;
  };
  const auto outer = [&](Scope& scope) -> Task<Result<>> {
    EXPECT_EQ((co_await with_scope(inner)).value(), 1) << "its child was cut short from inside";
    EXPECT_FALSE(scope.cancelled());
    co_return co_await sleep(1s);
  };
  EXPECT_TRUE(run(with_scope(outer)));
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(ScopeTest, ItsChildrenMayBeAwaitedSeveralTimes) {
  std::vector<int> passed;
  const auto nothing = []() -> Task<> { co_return; };
  const auto repeats = [&]() -> Task<> {
    Scope scope(co_await this_context(), OnFailure::isolate);
    for (int round = 0; round < 3; ++round) {
      scope.spawn(nap(1s));
      co_await scope.children_finished();
      EXPECT_EQ(scope.running(), 0U);
      passed.push_back(round);
      scope.spawn(nothing());  // no task waits for its end
      co_await scope.children_finished();
    }
    scope.spawn(nap(1s));
    EXPECT_TRUE(co_await sleep(2s));
    EXPECT_EQ(scope.running(), 0U);
  };
  run(repeats());
  EXPECT_EQ(passed, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(elapsed(), 5s);
}

TEST_F(ScopeTest, ChildrenSpawnSiblings) {
  int ended = 0;
  struct Family {
    static Task<> child(Scope& scope, int generation, int& count) {
      co_await nap(1s);
      if (generation > 0) {
        scope.spawn(child(scope, generation - 1, count));
        scope.spawn(child(scope, generation - 1, count));
      }
      ++count;
    }
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(Family::child(scope, 5, ended));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(ended, 63);
  EXPECT_EQ(elapsed(), 6s);
}

TEST_F(ScopeTest, SpawnsAwaitables) {
  const auto body = [](Scope& scope) -> Task<> {
    scope.spawn(sleep(2s));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(ScopeTest, FinishedChildrenAreFreedImmediately) {
  std::size_t most = 0;
  const auto body = [&](Scope& scope) -> Task<> {
    const std::size_t before = frames();
    for (int round = 0; round < 1000; ++round) {
      for (int child = 0; child < 100; ++child) scope.spawn(nap(1ms));
      most = std::max(most, frames() - before);
      co_await nap(2ms);
    }
    EXPECT_EQ(frames(), before);
  };
  EXPECT_TRUE(run_made([&] { return with_scope(body); }));
  EXPECT_EQ(most, 100U);
}

TEST_F(ScopeTest, RunsAMillionChildrenThatFinishImmediately) {
  const auto nothing = []() -> Task<> { co_return; };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 1'000'000; ++i) scope.spawn(nothing());
    EXPECT_EQ(scope.running(), 0U);
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(ScopeTest, ScopesNest) {
  std::vector<int> order;
  const auto leaf = [&](Scope&, int number) -> Task<> {
    co_await nap(std::chrono::seconds(number));
    order.push_back(number);
  };
  const auto branch = [&](Scope& scope) -> Task<> {
    for (const int number : {3, 1, 2})
      scope.spawn([](auto& make, int n) -> Task<Result<>> {
        co_return co_await with_scope(make, n);
      }(leaf, number));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(branch)));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Cancels the scope at every step: everything ends in time and without a leak (the fixture
// checks).
TEST_F(ScopeTest, EndsWhenCancelledAtEveryStep) {
  const auto work = [](Scope& scope, int& finished) -> Task<Result<>> {
    for (int i = 0; i < 3; ++i) {
      scope.spawn([](int number, int& count) -> Task<Result<>> {
        for (int step = 0; step < number + 2; ++step) {
          if (auto slept = co_await sleep(2ms); !slept) co_return slept;
          co_await yield();
        }
        ++count;
        co_return {};
      }(i, finished));
      if (auto slept = co_await sleep(3ms); !slept) co_return slept;
    }
    co_return co_await timeout(5ms, fallible_nap(4ms));
  };
  int whole = 0;
  for (int step = 0; step < 40; ++step) {
    int finished = 0;
    CancelSource cancel;
    const auto event =
        platform_.at(platform_.now() + Duration(500us) * step, [&] { cancel.cancel(); });
    const Instant began = platform_.now();
    const auto result = run(with_scope(work, std::ref(finished)), &cancel);
    platform_.clock().cancel(event);
    if (result) {
      ++whole;
      EXPECT_EQ(finished, 3);
      EXPECT_EQ(platform_.now() - began, 14ms);
    } else {
      EXPECT_EQ(result.error(), Errc::cancelled);
      EXPECT_EQ(platform_.now() - began, Duration(500us) * step);
    }
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
  EXPECT_EQ(whole, 11);
}

TEST(Describe, DescribesErrorsAndExceptions) {
  EXPECT_EQ(describe(make_error_code(Errc::closed), nullptr), "closed");
  EXPECT_EQ(describe({}, std::make_exception_ptr(std::runtime_error("why"))), "exception: why");
  EXPECT_EQ(describe({}, std::make_exception_ptr(5)), "exception of an unknown type");
}

}  // namespace
}  // namespace weir::scope_test
