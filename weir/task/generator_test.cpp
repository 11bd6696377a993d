// Tests of Generator.
#include "weir/task/generator.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::generator_test {
namespace {

using GeneratorTest = CancelSweepTest;

Generator<int> count_to(int last) {
  for (int number = 1; number <= last; ++number) co_yield int(number);
}

Generator<int> count_slowly(int last, Duration pause) {
  for (int number = 1; number <= last; ++number) {
    if (auto slept = co_await sleep(pause); !slept) co_yield fail(slept.error());
    co_yield int(number);
  }
}

/// Returns all values as text, with the result after the last value.
Task<std::string> spelled(Generator<int> numbers) {
  std::string words;
  for (;;) {
    const auto number = co_await numbers.next();
    if (!number) co_return words + number.error().message();
    if (!*number) co_return words + "end";
    words += std::to_string(**number) + " ";
  }
}

TEST_F(GeneratorTest, GivesItsValuesThenTheEnd) {
  EXPECT_EQ(run(spelled(count_to(3))), "1 2 3 end");
  EXPECT_EQ(run(spelled(count_to(0))), "end");
  EXPECT_EQ(run(spelled(count_slowly(3, 1s))), "1 2 3 end");
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(GeneratorTest, RunsOnlyWhileAwaited) {
  int started = 0;
  const auto noting = [&]() -> Generator<int> {
    ++started;
    co_yield 1;
    ++started;
    co_yield 2;
    ++started;
  };
  const auto body = [&]() -> Task<> {
    auto numbers = noting();
    co_await yield();
    EXPECT_EQ(started, 0);
    const auto first = co_await numbers.next();
    EXPECT_EQ(**first, 1);
    EXPECT_EQ(started, 1);
  };
  run(body());
  EXPECT_EQ(started, 1) << "dropped at its co_yield";
}

TEST_F(GeneratorTest, TheEndAndTheErrorPersist) {
  const auto failing = []() -> Generator<int> {
    co_yield 1;
    co_yield fail(Errc::bad_input);
    ADD_FAILURE() << "a generator ends with its error";
  };
  const auto body = [&]() -> Task<> {
    auto ended = count_to(0);
    auto failed = failing();
    EXPECT_EQ(**co_await failed.next(), 1);
    for (int i = 0; i < 3; ++i) {
      const auto end = co_await ended.next();
      EXPECT_TRUE(end && !*end);
      EXPECT_EQ((co_await failed.next()).error(), Errc::bad_input);
    }
  };
  run(body());
}

TEST_F(GeneratorTest, ThrowsToTheAwaitingTask) {
  const auto throwing = []() -> Generator<int> {
    co_yield 1;
    co_await yield();
    throw std::runtime_error("own");
  };
  const auto body = [&]() -> Task<std::string> {
    auto numbers = throwing();
    EXPECT_EQ(**co_await numbers.next(), 1);
    std::string thrown;
    try {
      std::ignore = co_await numbers.next();
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    EXPECT_EQ((co_await numbers.next()).error(), Errc::closed) << "not the end";
    co_return thrown;
  };
  EXPECT_EQ(run(body()), "own");
}

TEST_F(GeneratorTest, CopiesVariablesAndMovesTemporaries) {
  const auto words = []() -> Generator<std::string> {
    std::string word = "a word that does not fit into the string itself";
    co_yield word;
    EXPECT_FALSE(word.empty()) << "the generator keeps what it yielded";
    co_yield std::move(word);
    EXPECT_TRUE(word.empty());
    co_yield "converted";
  };
  const auto pointers = []() -> Generator<std::unique_ptr<int>> {
    co_yield std::make_unique<int>(7);
    auto named = std::make_unique<int>(8);
    co_yield std::move(named);
  };
  const auto body = [&]() -> Task<> {
    auto texts = words();
    const auto first = co_await texts.next(), second = co_await texts.next();
    EXPECT_EQ(**first, **second);
    EXPECT_EQ(**co_await texts.next(), "converted");
    EXPECT_FALSE(*co_await texts.next());
    auto numbers = pointers();
    EXPECT_EQ(***co_await numbers.next(), 7);
    EXPECT_EQ(***co_await numbers.next(), 8);
  };
  run(body());
}

TEST_F(GeneratorTest, DestroysItsVariables) {
  const auto held = std::make_shared<int>(1);
  const auto holding = [](std::shared_ptr<int> own, bool fails) -> Generator<int> {
    co_yield 1;
    if (fails) co_yield fail(Errc::bad_input);
    co_yield int(*own);
  };
  const auto body = [&]() -> Task<> {
    auto failed = holding(held, true);
    {
      auto dropped = holding(held, false);
      auto never_asked = holding(held, false);
      EXPECT_EQ(**co_await dropped.next(), 1);
      EXPECT_EQ(**co_await failed.next(), 1);
      EXPECT_EQ(held.use_count(), 4);
      auto moved = std::move(dropped);
      EXPECT_EQ(**co_await moved.next(), 1);
      moved = std::move(never_asked);
      EXPECT_EQ(**co_await moved.next(), 1);
    }
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_FALSE(co_await failed.next());
    EXPECT_EQ(held.use_count(), 1) << "freed with the error, not with the generator";
  };
  run(body());
}

TEST_F(GeneratorTest, MovesWithItsValuesAndItsError) {
  const auto failing = []() -> Generator<int> { co_yield fail(Errc::bad_input); };
  const auto body = [&]() -> Task<> {
    auto failed = failing();
    EXPECT_EQ((co_await failed.next()).error(), Errc::bad_input);
    auto constructed = std::move(failed);
    EXPECT_EQ((co_await constructed.next()).error(), Errc::bad_input);
    auto assigned = count_to(2);
    assigned = std::move(constructed);
    EXPECT_EQ((co_await assigned.next()).error(), Errc::bad_input);
    auto slow = count_slowly(3, 1s);
    EXPECT_EQ(**co_await slow.next(), 1);
    assigned = std::move(slow);
    EXPECT_EQ(**co_await assigned.next(), 2);
    EXPECT_EQ(**co_await assigned.next(), 3);
    const auto end = co_await assigned.next();
    EXPECT_TRUE(end && !*end);
  };
  run(body());
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(GeneratorTest, RunsUnderTheCancellationOfTheAwaitingTask) {
  const auto body = [&]() -> Task<> {
    auto numbers = count_slowly(3, 2s);
    EXPECT_EQ(**co_await timeout(3s, numbers.next()), 1);
    EXPECT_EQ((co_await timeout(1s, numbers.next())).error(), Errc::timed_out);
    EXPECT_EQ((co_await numbers.next()).error(), Errc::cancelled) << "cancelled before";
  };
  run(body());
  EXPECT_EQ(elapsed(), 3s);
}

// A generator may continue after a cancellation, since the next call is not under that
// cancellation.
TEST_F(GeneratorTest, MayIgnoreACancellation) {
  const auto stubborn = []() -> Generator<int> {
    EXPECT_EQ((co_await sleep(5s)).error(), Errc::cancelled);
    co_yield 1;
    EXPECT_TRUE(co_await sleep(5s));
    co_yield 2;
  };
  const auto body = [&]() -> Task<> {
    auto numbers = stubborn();
    const auto first = co_await timeout(1s, numbers.next());
    EXPECT_EQ(**first, 1) << "completion beats cancellation";
    EXPECT_EQ(**co_await numbers.next(), 2);
    EXPECT_FALSE(*co_await numbers.next());
  };
  run(body());
  EXPECT_EQ(elapsed(), 6s);
}

TEST_F(GeneratorTest, AGeneratorMayAwaitAnother) {
  const auto doubled = [](Generator<int> numbers) -> Generator<int> {
    for (;;) {
      const auto number = co_await numbers.next();
      if (!number) co_yield fail(number.error());
      if (!*number) co_return;
      co_yield 2 * **number;
    }
  };
  EXPECT_EQ(run(spelled(doubled(doubled(count_slowly(3, 1s))))), "4 8 12 end");
}

TEST_F(GeneratorTest, AMillionValuesTakeNoStackAndNoMemory) {
  const auto sum = [this]() -> Task<std::int64_t> {
    auto numbers = count_to(1'000'000);
    std::int64_t total = 0;
    const std::size_t blocks = frames();
    for (;;) {
      const auto number = co_await numbers.next();
      if (!*number) break;
      total += **number;
      if (**number % 100'000 == 0) {
        EXPECT_EQ(frames(), blocks);
      }
    }
    co_return total;
  };
  EXPECT_EQ(run_made(sum), 500'000'500'000);
}

// --- cancelled at every point -------------------------------------------------------------------

Generator<int> relay(CancelInjector& injector, Channel<int>& from) {
  for (;;) {
    injector.checkpoint();
    const auto number = co_await from.receive();
    injector.checkpoint();
    if (!number && number.error() == Errc::end_of_stream) co_return;
    if (!number) co_yield fail(number.error());
    co_yield int(*number);
  }
}

Task<> take_cancellable(CancelInjector& injector, Channel<int>& from, std::vector<int>& taken) {
  auto numbers = relay(injector, from);
  for (;;) {
    injector.checkpoint();
    const auto number = co_await numbers.next();
    injector.checkpoint();
    if (!number) {
      EXPECT_EQ(number.error(), Errc::cancelled);
      co_return;
    }
    if (!*number) co_return;
    taken.push_back(**number);
  }
}

TEST_F(GeneratorTest, NoValueIsLostByACancellation) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    Channel<int> channel(8);
    std::vector<int> taken;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t target = 0; target < 2; ++target) {
        scope.spawn(injector.as_target(target, take_cancellable(injector, channel, taken)));
      }
      for (int number = 1; number <= 5; ++number) {
        EXPECT_TRUE(channel.try_send(int(number)));
        injector.checkpoint();
        EXPECT_TRUE(co_await sleep(1ms));
      }
      channel.close();
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_EQ(taken, (std::vector<int>{1, 2, 3, 4, 5}));
  };
  EXPECT_GT(sweep(2, scenario), 50U);
}

#ifndef NDEBUG
TEST_F(GeneratorTest, AssertsThatOneTaskWaitsAtATime) {
  const auto wait_twice = [this](bool moves) {
    auto numbers = count_slowly(2, 1s);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(
          [](Generator<int>& from) -> Task<> { std::ignore = co_await from.next(); }(numbers));
      if (moves) numbers = count_to(1);
      std::ignore = co_await numbers.next();
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(wait_twice(false), "one next\\(\\) at a time");
  EXPECT_DEATH(wait_twice(true), "moved while waited on");
}

TEST_F(GeneratorTest, AssertsThatNoTaskWaitsWhenItIsMovedFrom) {
  const auto move_while_waited_on = [this](bool assigns) {
    auto numbers = count_slowly(2, 1s);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(
          [](Generator<int>& from) -> Task<> { std::ignore = co_await from.next(); }(numbers));
      auto other = count_to(1);
      if (assigns) other = std::move(numbers);
      const auto moved = std::move(numbers);
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(move_while_waited_on(false), "moved while waited on");
  EXPECT_DEATH(move_while_waited_on(true), "moved while waited on");
}
#endif

#ifndef NDEBUG
TEST_F(GeneratorTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this] {
    auto numbers = std::make_unique<Generator<int>>(count_slowly(1, 1s));
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(
          [](Generator<int>& from) -> Task<> { std::ignore = co_await from.next(); }(*numbers));
      numbers.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir::generator_test
