// Tests of Task, as_task(), in_context(), yield() and run().
#include "weir/task/task.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::task_test {
namespace {

using TaskTest = LoopTest;

static_assert(!std::is_copy_constructible_v<Task<>>);
static_assert(std::is_nothrow_move_constructible_v<Task<int>>);
static_assert(is_task<Task<int>> && !is_task<Sleep>);
static_assert(Awaitable<Sleep> && !Awaitable<Task<>> && !Awaitable<int>);
static_assert(std::is_same_v<AwaitResult<Sleep>, Result<>>);
static_assert(std::is_same_v<TaskValue<Task<Result<int>>>, Result<int>>);

Task<> note(std::vector<int>& noted, int number) {
  noted.push_back(number);
  co_return;
}

// These are not inlined, since clang would put the frame into the caller's, which these tests
// count.
[[gnu::noinline]] Task<int> seven() {
  co_return 7;
}

Task<Result<int>> half_of(int number) {
  co_return number / 2;
}

Task<Result<>> failed() {
  co_return fail(Errc::conflict);
}

Task<> throws(std::string what) {
  throw std::runtime_error(what);
  co_return;
}

TEST_F(TaskTest, IsLazy) {
  std::vector<int> noted;
  {
    Task<> dropped = note(noted, 1);
    Task<> kept = note(noted, 2);
    EXPECT_TRUE(noted.empty());
    run(std::move(kept));
  }
  EXPECT_EQ(noted, std::vector<int>{2});
}

TEST_F(TaskTest, ADroppedTaskDestroysItsParameters) {
  auto shared = std::make_shared<int>(1);
  const auto keep = [](std::shared_ptr<int> kept) -> Task<> {
    ++*kept;
    co_return;
  };
  {
    Task<> task = keep(shared);
    EXPECT_EQ(shared.use_count(), 2);
  }
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_EQ(*shared, 1);
}

TEST_F(TaskTest, MoveAssignmentKeepsBothAlive) {
  std::vector<int> noted;
  Task<> one = note(noted, 1);
  Task<> two = note(noted, 2);
  one = std::move(two);
  run(std::move(one));
  EXPECT_EQ(noted, std::vector<int>{2});
}

TEST_F(TaskTest, ReturnsValuesOfEveryKind) {
  const auto text = []() -> Task<std::string> { co_return "a rather long string, on the heap"; };
  const auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  const auto truth = []() -> Task<bool> { co_return true; };
  const auto all = [&]() -> Task<std::string> {
    std::string gathered = co_await text();
    const std::unique_ptr<int> five = co_await pointer();
    gathered += std::to_string(*five);
    const bool yes = co_await truth();
    gathered += yes ? "!" : "?";
    co_return gathered;
  };
  EXPECT_EQ(run(all()), "a rather long string, on the heap5!");
}

TEST_F(TaskTest, ReturnsResults) {
  const auto half = [](int number) -> Task<Result<int>> {
    if (number % 2 != 0) co_return fail(Errc::bad_input);
    co_return number / 2;
  };
  const auto quarter = [&](int number) -> Task<Result<int>> {
    const Result<int> first = co_await half(number);
    if (!first) co_return fail(first.error());
    co_return co_await half(*first);
  };
  EXPECT_EQ(run(quarter(8)).value(), 2);
  EXPECT_EQ(run(quarter(6)).error(), Errc::bad_input);
}

/// Notes its number in `ended` when it is destroyed.
class Guard {
 public:
  Guard(std::vector<int>& ended, int number) : ended_(&ended), number_(number) {}
  Guard(Guard&& other) noexcept
      : ended_(std::exchange(other.ended_, nullptr)), number_(other.number_) {}
  Guard& operator=(Guard&&) = delete;
  ~Guard() {
    if (ended_ != nullptr) ended_->push_back(number_);
  }

 private:
  std::vector<int>* ended_;
  int number_;
};

Task<Result<Guard>> guard(std::vector<int>& ended, int number) {
  WEIR_CO_TRY(co_await sleep(1ms));
  if (number < 0) co_return fail(Errc::bad_input);
  co_return Guard(ended, number);
}

Task<Result<std::string>> take_guards(std::vector<int>& ended, int last) {
  WEIR_CO_TRY(const auto first, co_await guard(ended, 1));
  WEIR_CO_TRY(auto second, co_await guard(ended, 2));
  {
    WEIR_CO_TRY(auto&& inner, co_await guard(ended, 3));
    const Guard moved = std::move(inner);
    WEIR_CO_TRY(co_await guard(ended, last));  // gives the guard back immediately
  }
  const Guard moved = std::move(second);
  ended.push_back(0);
  co_return "a rather long string, on the heap";
}

TEST_F(TaskTest, CoTryEndsACoroutineWithTheErrorAndDestroysItsLocalsInOrder) {
  std::vector<int> ended;
  EXPECT_EQ(run(take_guards(ended, 4)), "a rather long string, on the heap");
  EXPECT_EQ(ended, (std::vector{4, 3, 0, 2, 1}));
  ended.clear();
  EXPECT_EQ(run(take_guards(ended, -1)).error(), Errc::bad_input);
  EXPECT_EQ(ended, (std::vector{3, 2, 1}));
}

TEST_F(TaskTest, CoTryTakesLoopsAndConditionsWithoutAnotherVariable) {
  int rounds = 0;
  const auto body = [&](int failing_round) -> Task<Result<int>> {
    int number = 0;
    for (;; ++rounds) {
      // clang-format off
      WEIR_CO_TRY(co_await sleep(0s)); WEIR_CO_TRY(co_await sleep(0s));
      // clang-format on
      if (rounds == failing_round) WEIR_CO_TRY(co_await failed());
      if (rounds == 4) co_return number;
      WEIR_CO_TRY(number, co_await half_of(10 * rounds));
    }
  };
  EXPECT_EQ(run(body(9)), 15);
  EXPECT_EQ(rounds, 4);
  rounds = 0;
  EXPECT_EQ(run(body(2)).error(), Errc::conflict);
  EXPECT_EQ(rounds, 2);
}

TEST_F(TaskTest, ThrowsAtTheAwait) {
  const auto catches = []() -> Task<std::string> {
    std::string caught;
    try {
      co_await throws("deep");
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    co_return caught + " and on";
  };
  EXPECT_EQ(run(catches()), "deep and on");
  const auto passes = []() -> Task<int> {
    co_await throws("through");
    co_return 1;
  };
  EXPECT_THROW(run(passes()), std::runtime_error);
}

TEST_F(TaskTest, DestroysLocalsWhenItThrows) {
  auto shared = std::make_shared<int>(0);
  const auto holds = [](std::shared_ptr<int> held) -> Task<> {
    const auto second = held;
    co_await throws("while holding");
  };
  EXPECT_THROW(run(holds(shared)), std::runtime_error);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(TaskTest, PassesItsContextOn) {
  CancelSource source;
  const auto context = []() -> Task<Context> { co_return co_await this_context(); };
  const auto outer = [&]() -> Task<Context> { co_return co_await context(); };
  const Context seen = run(outer(), &source);
  EXPECT_EQ(seen.loop, loop_.get());
  EXPECT_EQ(seen.cancel, &source);
}

TEST_F(TaskTest, RunsInAnotherContextWithInContext) {
  CancelSource outer, inner;
  const auto source = []() -> Task<CancelSource*> { co_return (co_await this_context()).cancel; };
  const auto shielded = [&]() -> Task<> {
    const Context own = co_await this_context();
    EXPECT_EQ(co_await source(), &outer);
    EXPECT_EQ(co_await in_context(Context{own.loop, &inner}, source()), &inner);
    EXPECT_EQ(co_await in_context(Context{own.loop, nullptr}, source()), nullptr);
    EXPECT_EQ(co_await source(), &outer);
  };
  run(shielded(), &outer);
}

TEST_F(TaskTest, AShieldKeepsCancellationOut) {
  CancelSource cancel;
  const auto nap = []() -> Task<Result<>> { co_return co_await sleep(5s); };
  const auto shielded = [&]() -> Task<Result<>> {
    const Context own = co_await this_context();
    co_return co_await in_context(Context{own.loop, nullptr}, nap());
  };
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  EXPECT_TRUE(run(shielded(), &cancel));
  EXPECT_EQ(elapsed(), 5s);
}

TEST_F(TaskTest, AMillionAwaitsThatFinishImmediatelyKeepTheStackSmall) {
  const auto loop = []() -> Task<long> {
    long sum = 0;
    for (int i = 0; i < 1'000'000; ++i) sum += co_await seven();
    co_return sum;
  };
  EXPECT_EQ(run(loop()), 7'000'000);
}

TEST_F(TaskTest, AMillionAwaitsMayFollowOneThatWaits) {
  const auto loop = []() -> Task<long> {
    co_await yield();
    long sum = 0;
    for (int i = 0; i < 1'000'000; ++i) sum += co_await seven();
    co_return sum;
  };
  const auto outer = [&]() -> Task<long> { co_return co_await loop(); };
  EXPECT_EQ(run(outer()), 7'000'000);
}

TEST_F(TaskTest, ManyAwaitsThatWaitKeepTheStackSmall) {
  const auto waits = []() -> Task<int> {
    co_await yield();
    co_return 1;
  };
  const auto loop = [&]() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 200'000; ++i) sum += co_await waits();
    co_return sum;
  };
  EXPECT_EQ(run(loop()), 200'000);
}

Task<int> depth(int left, bool waits) {
  if (left == 0) {
    if (waits) co_await yield();
    co_return 0;
  }
  co_return 1 + co_await depth(left - 1, waits);
}

TEST_F(TaskTest, TasksMayNestTenThousandDeep) {
  EXPECT_EQ(run_made(&depth, 10'000, false), 10'000);
  EXPECT_EQ(run_made(&depth, 10'000, true), 10'000);
}

Task<> throws_at(int left) {
  if (left == 0) throw std::runtime_error("bottom");
  co_await throws_at(left - 1);
}

TEST_F(TaskTest, ThrowsThroughAThousandFrames) {
  EXPECT_THROW(run(throws_at(1'000)), std::runtime_error);
}

TEST_F(TaskTest, FramesComeFromThePoolAndReturn) {
  EXPECT_EQ(frames(), 0U);
  const auto outer = [this]() -> Task<> {
    EXPECT_EQ(frames(), 1U);
    {
      Task<int> inner = seven();
      EXPECT_EQ(frames(), 2U);
      const int value = co_await std::move(inner);
      EXPECT_EQ(value, 7);
    }
    EXPECT_EQ(frames(), 1U);
  };
  run_made([&] { return outer(); });
  EXPECT_EQ(frames(), 0U);
}

TEST_F(TaskTest, ThePoolCountsFramesAsFrames) {
  const auto outer = [this]() -> Task<> {
    EXPECT_EQ(loop_->blocks().blocks_in_use(BlockUse::frame), 1U);
    Task<int> inner = seven();
    EXPECT_EQ(loop_->blocks().blocks_in_use(BlockUse::frame), 2U);
    EXPECT_EQ(co_await std::move(inner), 7);
  };
  run_made([&] { return outer(); });
  EXPECT_EQ(loop_->blocks().blocks_in_use(BlockUse::frame), 0U);
}

TEST_F(TaskTest, ATaskMayRunOnAnotherThreadThanItWasMadeOn) {
  Task<int> made = seven();  // the heap holds the frame, since no loop runs here
  EXPECT_EQ(frames(), 0U);
  EXPECT_EQ(run(std::move(made)), 7);
}

TEST_F(TaskTest, AnAwaitableBecomesATask) {
  EXPECT_TRUE(run(as_task(sleep(3s))));
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(run(as_task(seven())), 7);
}

TEST_F(TaskTest, YieldLetsOthersRunFirst) {
  std::vector<int> order;
  CallProbe other([&] { order.push_back(2); });
  const auto yields = [&]() -> Task<> {
    order.push_back(1);
    (co_await this_context()).loop->ready(other);
    co_await yield();
    order.push_back(3);
  };
  run(yields());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(TaskTest, RunThrowsTheExceptionOfTheTask) {
  EXPECT_THROW(run(throws("out")), std::runtime_error);
  EXPECT_EQ(run(seven()), 7);
}

TEST_F(TaskTest, RunHappensInsideTurnsOfTheLoop) {
  const auto inside = []() -> Task<bool> {
    co_return Loop::current() == (co_await this_context()).loop;
  };
  EXPECT_TRUE(run(inside()));
  EXPECT_EQ(Loop::current(), nullptr);
}

TEST_F(TaskTest, RunReturnsAtTheEndOfTheTaskWithoutWaitingForATimer) {
  TimerProbe later;
  loop_->timers().start(later, platform_.now() + 1h);
  EXPECT_EQ(run(seven()), 7);
  EXPECT_EQ(elapsed(), 0s);
  EXPECT_TRUE(run(as_task(sleep(1s))));
  EXPECT_EQ(elapsed(), 1s);
  later.cancel();
}

TEST_F(TaskTest, YieldIsNotAffectedByACancellation) {
  CancelSource cancel;
  cancel.cancel();
  bool others_ran = false;
  CallProbe other([&] { others_ran = true; });
  const auto yields = [&]() -> Task<> {
    loop_->ready(other);
    co_await yield();
    EXPECT_TRUE(others_ran);
  };
  run(yields(), &cancel);
}

}  // namespace
}  // namespace weir::task_test
