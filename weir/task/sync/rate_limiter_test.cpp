// Tests of RateLimiter.
#include "weir/task/sync/rate_limiter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::rate_limiter_test {
namespace {

using RateLimiterTest = CancelSweepTest;

constexpr RateLimit ten_a_second{.tokens = 10, .per = 1s, .burst = 5};

TEST_F(RateLimiterTest, AllowsABurstAndThenAnEvenRate) {
  RateLimiter limiter(ten_a_second);
  const auto body = [&]() -> Task<> {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await limiter.acquire());
    EXPECT_EQ(elapsed(), 0s);
    for (int i = 1; i <= 20; ++i) {
      EXPECT_TRUE(co_await limiter.acquire());
      EXPECT_EQ(elapsed(), 100ms * i);
    }
    EXPECT_TRUE(co_await sleep(1h));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await limiter.acquire());
    EXPECT_EQ(elapsed(), 1h + 2s) << "at most a burst is saved";
    EXPECT_TRUE(co_await limiter.acquire(5));
    EXPECT_EQ(elapsed(), 1h + 2500ms);
  };
  run(body());
}

TEST_F(RateLimiterTest, RejectsMoreThanTheBucketHolds) {
  RateLimiter limiter(ten_a_second);
  EXPECT_EQ(run(as_task(limiter.acquire(6))).error(), Errc::limit_reached);
  EXPECT_FALSE(limiter.try_acquire(platform_.now(), 6));
  EXPECT_EQ(run(as_task(limiter.acquire(std::numeric_limits<std::uint64_t>::max()))).error(),
            Errc::limit_reached);
  EXPECT_EQ(limiter.available(platform_.now()), 5U);
  EXPECT_TRUE(run(as_task(limiter.acquire(5))));
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(RateLimiterTest, RejectsARequestOfAnySizeAboveTheBucket) {
  RateLimiter limiter(ten_a_second);
  // The parts of 2^56 tokens of this bucket are a multiple of 2^64.
  for (const std::uint64_t count : {std::uint64_t{6}, std::uint64_t{1} << 56, ~std::uint64_t{0}}) {
    EXPECT_FALSE(limiter.try_acquire(platform_.now(), count)) << count;
    EXPECT_EQ(run(as_task(limiter.acquire(count))).error(), Errc::limit_reached) << count;
  }
  EXPECT_EQ(limiter.available(platform_.now()), 5U);
}

TEST_F(RateLimiterTest, AllowsOneTokenASecondByDefault) {
  const RateLimit limit;
  RateLimiter limiter(limit);
  const Instant now = platform_.now();
  EXPECT_EQ(limiter.available(now + 1h), 1U);
  EXPECT_TRUE(limiter.try_acquire(now + 1h));
  EXPECT_FALSE(limiter.try_acquire(now + 1h));
  EXPECT_FALSE(limiter.try_acquire(now + 1h + 1s - 1ns));
  EXPECT_TRUE(limiter.try_acquire(now + 1h + 1s));
  RateLimiter burst(ten_a_second);
  EXPECT_TRUE(run(as_task(burst.acquire())));
  EXPECT_EQ(burst.available(platform_.now()), 4U);
}

// 3 tokens in 10 ns: a token each 3.33 ns.
constexpr RateLimit three_in_ten{.tokens = 3, .per = Duration(10), .burst = 1};

TEST_F(RateLimiterTest, ATokenComesAtTheFirstNanosecondThatCompletesIt) {
  RateLimiter limiter(three_in_ten);
  Instant now = platform_.now();
  for (const bool each : {true, false}) {
    EXPECT_TRUE(limiter.try_acquire(now));
    EXPECT_EQ(limiter.available(now), 0U);
    if (each) {
      EXPECT_EQ(limiter.available(now + 1ns), 0U);
      EXPECT_EQ(limiter.available(now + 2ns), 0U);
    }
    EXPECT_EQ(limiter.available(now + 3ns), 0U);
    EXPECT_EQ(limiter.available(now + 4ns), 1U);
    now += 1h;  // a full bucket saves nothing more
  }
  RateLimiter whole({.tokens = 1, .per = Duration(2), .burst = 1});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(whole.available(now + Duration(i)), 1U) << i;
  now += 1h;
  EXPECT_TRUE(whole.try_acquire(now));
  EXPECT_EQ(whole.available(now + 1ns), 0U);
  EXPECT_EQ(whole.available(now + 2ns), 1U) << "the last missing part counts too";
  EXPECT_EQ(whole.available(now + 1h), 1U);
}

TEST_F(RateLimiterTest, TimeThatGoesBackAddsNoTokens) {
  RateLimiter limiter(ten_a_second);
  const Instant now = platform_.now();
  EXPECT_TRUE(limiter.try_acquire(now + 1h, 5));
  EXPECT_EQ(limiter.available(now), 0U);
  EXPECT_EQ(limiter.available(now + 1h), 0U);
  EXPECT_EQ(limiter.available(now + 1h + 99ms), 0U);
  EXPECT_EQ(limiter.available(now + 1h + 100ms), 1U);
}

TEST_F(RateLimiterTest, SmallRequestsDoNotOvertakeALargeOne) {
  RateLimiter limiter(ten_a_second);
  std::vector<int> order;
  const auto take = [&](int count) -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire(static_cast<std::uint64_t>(count)));
    order.push_back(count);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    EXPECT_TRUE(limiter.try_acquire(platform_.now(), 4));
    scope.spawn(take(3));
    scope.spawn(take(1));
    EXPECT_FALSE(limiter.try_acquire(platform_.now(), 1)) << "no overtaking";
    EXPECT_TRUE(co_await sleep(199ms));
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(co_await sleep(2ms));
    EXPECT_EQ(order, (std::vector<int>{3}));
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(order, (std::vector<int>{3, 1}));
  EXPECT_EQ(elapsed(), 300ms);
}

TEST_F(RateLimiterTest, ACancelledWaiterLetsThoseBehindItMoveUp) {
  RateLimiter limiter(ten_a_second);
  const auto body = [&](Scope& scope) -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire(5));
    scope.spawn([](RateLimiter& of) -> Task<> {
      EXPECT_EQ((co_await timeout(250ms, of.acquire(5))).error(), Errc::timed_out);
    }(limiter));
    co_await yield();
    EXPECT_TRUE(co_await limiter.acquire(2));
    EXPECT_EQ(elapsed(), 250ms) << "the tokens added meanwhile were enough";
    const auto first = co_await select(limiter.acquire(5), sleep(10ms));
    EXPECT_EQ(first->index(), 1U);
    EXPECT_TRUE(co_await limiter.acquire());
    EXPECT_EQ(elapsed(), 300ms);
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(loop_->timers().armed(), 0U);
}

TEST_F(RateLimiterTest, HasATimerOnlyWhileATaskWaits) {
  RateLimiter limiter(ten_a_second);
  const auto armed = [this] { return loop_->timers().armed(); };
  const auto body = [&](Scope& scope) -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire(5));
    EXPECT_EQ(armed(), 0U);
    EXPECT_EQ((co_await timeout(50ms, limiter.acquire(5))).error(), Errc::timed_out);
    EXPECT_EQ(armed(), 0U);
    const auto first = co_await select(limiter.acquire(5), sleep(10ms));
    EXPECT_EQ(first->index(), 1U);
    EXPECT_EQ(armed(), 0U);
    scope.spawn(as_task(limiter.acquire()));
    EXPECT_EQ(armed(), 1U);
    EXPECT_TRUE(co_await sleep(100ms));
    EXPECT_EQ(armed(), 0U) << "it was granted";
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(RateLimiterTest, AFullBucketSavesNothingForTheTimeAfterAWaiter) {
  RateLimiter limiter(ten_a_second);
  const auto body = [&](Scope& scope) -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire(5));
    scope.spawn(as_task(limiter.acquire(5)));
    co_await yield();
    const Instant later = platform_.now() + 10s;  // the waiter is served later than it could be
    EXPECT_EQ(limiter.available(later), 5U);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(limiter.available(later + 99ms), 0U);
    EXPECT_EQ(limiter.available(later + 100ms), 1U);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(RateLimiterTest, AWaiterThatIsServedLateSavesLessThanANanosecond) {
  RateLimiter limiter(three_in_ten);
  const auto body = [&](Scope& scope) -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire());
    scope.spawn(as_task(limiter.acquire()));
    co_await yield();
    const Instant later = platform_.now() + 10s;
    EXPECT_EQ(limiter.available(later), 1U);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(limiter.available(later + 2ns), 0U);
    EXPECT_EQ(limiter.available(later + 4ns), 1U);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

// Rounding loses no nanosecond: the n-th token of 3 in 10 s comes at exactly its time.
TEST_F(RateLimiterTest, DoesNotDrift) {
  const RateLimit odd{.tokens = 3, .per = 10s, .burst = 1};
  RateLimiter limiter(odd);
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await limiter.acquire());
    for (std::int64_t number = 1; number <= 3000; ++number) {
      EXPECT_TRUE(co_await limiter.acquire());
      const Duration exact((10'000'000'000 * number + 2) / 3);
      EXPECT_EQ(elapsed(), exact);
    }
  };
  run(body());
}

// Compares with the definition: burst + rate × time limits the tokens taken in any period.
TEST_F(RateLimiterTest, NeverExceedsItsRate) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const RateLimit limit{.tokens = 1 + random() % 1000,
                          .per = Duration(static_cast<std::int64_t>(1 + random() % 2'000'000'000)),
                          .burst = 1 + random() % 50};
    RateLimiter limiter(limit);
    struct Taken {
      Instant when;
      std::uint64_t before;
      std::uint64_t count;
    };
    std::vector<Taken> taken;
    Instant now = platform_.now();
    std::uint64_t total = 0;
    for (int step = 0; step < 300; ++step) {
      const auto pause = static_cast<std::uint64_t>(limit.per.count()) * 4 / limit.tokens + 2;
      now += Duration(static_cast<std::int64_t>(random() % pause));
      const std::uint64_t count = 1 + random() % limit.burst;
      if (!limiter.try_acquire(now, count)) continue;
      taken.push_back({now, total, count});
      total += count;
    }
    ASSERT_GT(taken.size(), 10U);
    for (std::size_t first = 0; first < taken.size(); ++first) {
      for (std::size_t last = first; last < taken.size(); ++last) {
        const auto length =
            static_cast<long double>((taken[last].when - taken[first].when).count());
        const std::uint64_t sum = taken[last].before + taken[last].count - taken[first].before;
        const long double most = static_cast<long double>(limit.burst) +
                                 length * static_cast<long double>(limit.tokens) /
                                     static_cast<long double>(limit.per.count());
        ASSERT_LE(static_cast<long double>(sum), most + 1e-9L);
      }
    }
  }
}

TEST_F(RateLimiterTest, CheckRejectsInvalidLimits) {
  const auto served = [](RateLimit limit) { return RateLimiter::check(limit).has_value(); };
  EXPECT_TRUE(served(RateLimit()));
  EXPECT_TRUE(served(ten_a_second));
  EXPECT_FALSE(served({.tokens = 0}));
  EXPECT_FALSE(served({.per = 0s}));
  EXPECT_FALSE(served({.per = -1s}));
  EXPECT_FALSE(served({.burst = 0}));
  EXPECT_FALSE(served({.tokens = 1, .per = 24h, .burst = 1'000'000}));
  EXPECT_TRUE(served({.tokens = 24, .per = 24h, .burst = 1'000'000}));
  EXPECT_EQ(RateLimiter::check({.burst = 0}).error(), Errc::bad_configuration);
  EXPECT_EQ(RateLimiter::check({.tokens = 1, .per = 24h, .burst = 1'000'000}).error(),
            Errc::bad_configuration);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  RateLimiter fast({.tokens = most, .per = Duration(1), .burst = 1'000'000});
  EXPECT_TRUE(fast.try_acquire(platform_.now(), 1'000'000));
  EXPECT_FALSE(fast.try_acquire(platform_.now(), 1));
  EXPECT_TRUE(fast.try_acquire(platform_.now() + 1ns, 1'000'000));
}

// The time to fill the bucket must fit into 63 bits of nanoseconds.
TEST_F(RateLimiterTest, CheckAcceptsTheLongestTimeToFillTheBucket) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto served = [](std::uint64_t tokens, Duration per, std::uint64_t burst) {
    return RateLimiter::check({.tokens = tokens, .per = per, .burst = burst}).has_value();
  };
  EXPECT_TRUE(served(1, 1ns, most));
  EXPECT_FALSE(served(1, 1ns, most + 1));
  EXPECT_TRUE(served(1, 10ns, most / 10));
  EXPECT_FALSE(served(1, 10ns, most / 10 + 1));
  EXPECT_TRUE(served(5, 10ns, most / 2)) << "5 in 10 ns are 1 in 2 ns";
  EXPECT_FALSE(served(5, 10ns, most / 2 + 1));
  RateLimiter longest({.tokens = 1, .per = Duration(1), .burst = most});
  EXPECT_TRUE(longest.try_acquire(platform_.now(), most));
  EXPECT_FALSE(longest.try_acquire(platform_.now()));
  EXPECT_TRUE(longest.try_acquire(platform_.now() + 1ns));
}

#ifndef NDEBUG
TEST_F(RateLimiterTest, AssertsThatItsLimitIsValid) {
  EXPECT_DEATH(RateLimiter({.burst = 0}), "check");
}

TEST_F(RateLimiterTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this] {
    auto limiter = std::make_unique<RateLimiter>(ten_a_second);
    const auto body = [&](Scope& scope) -> Task<> {
      EXPECT_TRUE(limiter->try_acquire(platform_.now(), 5));
      scope.spawn(limiter->acquire());
      limiter.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(), "destroyed while waited on");
}
#endif

TEST_F(RateLimiterTest, AvailableTokensAreChosenInTheOrderOfASelect) {
  RateLimiter limiter(ten_a_second);
  Channel<int> channel(2);
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(channel.try_send(1));
    const auto first = co_await select(limiter.acquire(5), channel.receive());
    EXPECT_EQ(first->index(), 0U);
    EXPECT_EQ(limiter.available(platform_.now()), 0U);
    const auto second = co_await select(limiter.acquire(), channel.receive());
    EXPECT_EQ(second->index(), 1U) << "no tokens yet";
    const auto third = co_await select(limiter.acquire(6), channel.receive());
    EXPECT_EQ(third->index(), 0U) << "rejected immediately";
    EXPECT_EQ(std::get<0>(*third).error(), Errc::limit_reached);
    EXPECT_EQ(elapsed(), 0s);
  };
  run(body());
}

// --- cancelled at every point -------------------------------------------------------------------

Task<> take_cancellable(CancelInjector& injector, RateLimiter& limiter, std::uint64_t count,
                        std::uint64_t& taken) {
  for (int i = 0; i < 2; ++i) {
    injector.checkpoint();
    const auto had = co_await limiter.acquire(count);
    injector.checkpoint();
    if (!had) co_return;
    taken += count;
  }
}

TEST_F(RateLimiterTest, TokensStayExactDespiteCancellations) {
  const auto scenario = [this](CancelInjector& injector) -> Task<> {
    RateLimiter limiter(ten_a_second);
    const Instant begun = platform_.now();
    std::uint64_t taken = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      std::size_t target = 0;
      for (const std::uint64_t count : {4U, 1U, 5U, 2U}) {
        scope.spawn(
            injector.as_target(target++, take_cancellable(injector, limiter, count, taken)));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(body));
    const auto tenths = static_cast<std::uint64_t>((platform_.now() - begun) / 100ms);
    EXPECT_LE(taken, 5 + tenths);
    EXPECT_EQ(limiter.available(platform_.now()), std::min<std::uint64_t>(5, 5 + tenths - taken));
    EXPECT_GE(taken, 14U) << "each task that is not cancelled gets its tokens";
  };
  EXPECT_GT(sweep(4, scenario), 40U);
}

}  // namespace
}  // namespace weir::rate_limiter_test
