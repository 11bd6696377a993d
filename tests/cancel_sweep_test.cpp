// What tasks of one core wait for, and what they ask other cores and threads for, cancelled at any
// time on every real backend; see tests/cancel_sweep.hpp.
#include "tests/cancel_sweep.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/runtime/blocking_pool.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/interval.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/select.hpp"
#include "weir/task/semaphore.hpp"
#include "weir/task/shared_mutex.hpp"
#include "weir/task/timeout.hpp"
#include "weir/task/combinators.hpp"

namespace weir::tests {
namespace {

using namespace std::chrono_literals;

Task<> sleeping(Blow& blow, Stage&) {
  static_cast<void>(succeeded(co_await blow.strike(as_task(sleep(moment)))));
}

Task<> sleeping_until(Blow& blow, Stage& stage) {
  auto slept = as_task(sleep_until(after(stage.loop().now(), moment)));
  static_cast<void>(succeeded(co_await blow.strike(std::move(slept))));
}

Task<> an_interval(Blow& blow, Stage&) {
  Interval ticks(moment);
  const auto first = co_await blow.strike(as_task(ticks.next()));
  if (succeeded(first)) co_return;
  EXPECT_TRUE(co_await ticks.next()) << "the tick stays for the next call";
}

Task<> a_manual_reset_event(Blow& blow, Stage& stage) {
  CoreManualResetEvent event;
  stage.later([&event] { event.set(); });
  static_cast<void>(succeeded(co_await blow.strike(as_task(event.wait()))));
  co_await stage.quiet();
  EXPECT_TRUE(event.is_set());
}

Task<> an_auto_reset_event(Blow& blow, Stage& stage) {
  CoreAutoResetEvent event;
  stage.later([&event] { event.set(); });
  const bool passed = succeeded(co_await blow.strike(as_task(event.wait())));
  co_await stage.quiet();
  EXPECT_NE(event.is_set(), passed) << "one set, for one";
}

Task<> a_latch(Blow& blow, Stage& stage) {
  CoreLatch latch(1);
  stage.later([&latch] { latch.count_down(); });
  static_cast<void>(succeeded(co_await blow.strike(as_task(latch.wait()))));
  co_await stage.quiet();
  EXPECT_EQ(latch.count(), 0U);
}

Task<> a_semaphore(Blow& blow, Stage& stage) {
  CoreSemaphore semaphore(0);
  stage.later([&semaphore] { semaphore.release(2); });
  {
    const auto permit = co_await blow.strike(as_task(semaphore.acquire(2)));
    const bool has = succeeded(permit);
    co_await stage.quiet();
    EXPECT_EQ(semaphore.free(), has ? 0U : 2U);
  }
  EXPECT_EQ(semaphore.free(), 2U);
}

Task<> a_mutex(Blow& blow, Stage& stage) {
  CoreMutex mutex;
  auto other = mutex.try_lock();
  stage.later([&other] { other.reset(); });
  {
    const auto guard = co_await blow.strike(as_task(mutex.lock()));
    const bool has = succeeded(guard);
    co_await stage.quiet();
    EXPECT_EQ(mutex.locked(), has);
  }
  EXPECT_FALSE(mutex.locked());
}

Task<> a_shared_mutex(Blow& blow, Stage& stage) {
  CoreSharedMutex mutex;
  auto reader = mutex.try_lock_shared();
  stage.later([&reader] { reader.reset(); });
  static_cast<void>(succeeded(co_await blow.strike(as_task(mutex.lock()))));
  co_await stage.quiet();
  EXPECT_TRUE(mutex.try_lock());
}

Task<> a_shared_mutex_for_reading(Blow& blow, Stage& stage) {
  CoreSharedMutex mutex;
  auto writer = mutex.try_lock();
  stage.later([&writer] { writer.reset(); });
  static_cast<void>(succeeded(co_await blow.strike(as_task(mutex.lock_shared()))));
  co_await stage.quiet();
  EXPECT_TRUE(mutex.try_lock());
}

Task<> receiving_from_a_channel(Blow& blow, Stage& stage) {
  CoreChannel<int> channel(1);
  stage.later([&channel] { EXPECT_TRUE(channel.try_send(7)); });
  const auto value = co_await blow.strike(as_task(channel.receive()));
  const bool has = succeeded(value);
  co_await stage.quiet();
  EXPECT_EQ(has ? *value : channel.try_receive(), 7);
  EXPECT_FALSE(channel.try_receive());
}

Task<> sending_to_a_channel(Blow& blow, Stage& stage) {
  CoreChannel<int> channel(1);
  EXPECT_TRUE(channel.try_send(1));
  stage.later([&channel] { EXPECT_EQ(channel.try_receive(), 1); });
  const bool sent = succeeded(co_await blow.strike(as_task(channel.send(2))));
  co_await stage.quiet();
  EXPECT_EQ(channel.try_receive(), sent ? std::optional(2) : std::nullopt);
}

Task<> sending_ones_own_to_a_channel(Blow& blow, Stage& stage) {
  CoreChannel<std::unique_ptr<int>> channel(1);
  EXPECT_TRUE(channel.try_send(nullptr));
  stage.later([&channel] { EXPECT_TRUE(channel.try_receive()); });
  auto value = std::make_unique<int>(2);
  const bool sent = succeeded(co_await blow.strike(as_task(channel.send_from(value))));
  co_await stage.quiet();
  EXPECT_EQ(value == nullptr, sent) << "it stays the caller's until it is sent";
  EXPECT_EQ(channel.try_receive().has_value(), sent);
}

Task<> a_rate_limiter(Blow& blow, Stage& stage) {
  CoreRateLimiter limiter({.tokens = 1, .per = moment, .burst = 1});
  EXPECT_TRUE(limiter.try_acquire(stage.loop().now()));
  if (succeeded(co_await blow.strike(as_task(limiter.acquire())))) co_return;
  EXPECT_TRUE(co_await limiter.acquire());
}

Task<> selecting(Blow& blow, Stage& stage) {
  CoreChannel<int> channel(1);
  CoreAutoResetEvent event;
  stage.later([&channel] { EXPECT_TRUE(channel.try_send(7)); });
  const auto first = co_await blow.strike(as_task(select(event.wait(), channel.receive())));
  const bool has = succeeded(first);
  co_await stage.quiet();
  EXPECT_EQ(channel.try_receive(), has ? std::nullopt : std::optional(7));
}

Generator<int> count_slowly() {
  for (int number = 0;; ++number) {
    if (auto slept = co_await sleep(moment); !slept) co_yield fail(slept.error());
    co_yield number;
  }
}

Task<> a_generator(Blow& blow, Stage&) {
  auto numbers = count_slowly();
  static_cast<void>(succeeded(co_await blow.strike(as_task(numbers.next()))));
}

Task<Result<int>> number_later(int number, Duration length) {
  if (auto slept = co_await sleep(length); !slept) co_return fail(slept.error());
  co_return number;
}

Task<> a_time_out(Blow& blow, Stage&) {
  static_cast<void>(
      succeeded(co_await blow.strike(timeout(std::chrono::seconds(20), number_later(1, moment)))));
}

Task<> all_of_them(Blow& blow, Stage&) {
  auto both = all(number_later(1, moment), number_later(2, 2 * moment));
  static_cast<void>(succeeded(co_await blow.strike(std::move(both))));
}

Task<> a_race(Blow& blow, Stage&) {
  auto first = race(number_later(1, 10s), number_later(2, moment));
  static_cast<void>(succeeded(co_await blow.strike(std::move(first))));
}

Task<> the_first_that_succeeds(Blow& blow, Stage&) {
  auto first = first_ok(number_later(1, 10s), number_later(2, moment));
  static_cast<void>(succeeded(co_await blow.strike(std::move(first))));
}

Task<Result<>> spawn_some(Scope& scope) {
  for (int number = 0; number < 3; ++number) scope.spawn(as_task(sleep(moment)));
  co_return co_await sleep(moment);
}

Task<> a_scope(Blow& blow, Stage&) {
  auto scoped = with_scope(OnFailure::fail_together, spawn_some);
  static_cast<void>(succeeded(co_await blow.strike(std::move(scoped))));
}

constexpr std::array on_one_core = {
    SweepCase{"sleep", sleeping},
    SweepCase{"sleep_until", sleeping_until},
    SweepCase{"Interval::next", an_interval},
    SweepCase{"CoreManualResetEvent::wait", a_manual_reset_event},
    SweepCase{"CoreAutoResetEvent::wait", an_auto_reset_event},
    SweepCase{"CoreLatch::wait", a_latch},
    SweepCase{"CoreSemaphore::acquire", a_semaphore},
    SweepCase{"CoreMutex::lock", a_mutex},
    SweepCase{"CoreSharedMutex::lock", a_shared_mutex},
    SweepCase{"CoreSharedMutex::lock_shared", a_shared_mutex_for_reading},
    SweepCase{"CoreChannel::receive", receiving_from_a_channel},
    SweepCase{"CoreChannel::send", sending_to_a_channel},
    SweepCase{"CoreChannel::send_from", sending_ones_own_to_a_channel},
    SweepCase{"CoreRateLimiter::acquire", a_rate_limiter},
    SweepCase{"select", selecting},
    SweepCase{"Generator::next", a_generator},
    SweepCase{"timeout", a_time_out},
    SweepCase{"all", all_of_them},
    SweepCase{"race", a_race},
    SweepCase{"first_ok", the_first_that_succeeds},
    SweepCase{"with_scope", a_scope},
};

class CancelSweepOfTasks : public CancelSweep {};

TEST_P(CancelSweepOfTasks, OnOneCore) {
  sweep_all(on_one_core);
}
TEST(CancelSweepInTheWorld, OnOneCore) {
  sweep_all_in_a_world(on_one_core);
}

Task<> on_another_core(Blow& blow, Stage&) {
  static_cast<void>(succeeded(co_await blow.strike(on_core(1, number_later, 1, moment))));
}

Task<> send_from_there(Mailbox<int>* mailbox, int value) {
  auto send = [mailbox, value] {
    int moved = value;
    return mailbox->try_send(std::move(moved)).has_value();
  };
  const bool sent = co_await on_core(1, send);
  EXPECT_TRUE(sent);
}

Task<> receiving_from_a_mailbox(Blow& blow, Stage& stage) {
  Mailbox<int> mailbox;
  stage.spawn(send_from_there(&mailbox, 7));
  auto value = co_await blow.strike(as_task(mailbox.receive()));
  co_await stage.quiet();
  if (!succeeded(value)) value = co_await mailbox.receive();
  EXPECT_EQ(*value, 7);
  EXPECT_FALSE(mailbox.try_receive());
}

Task<> the_arrival_in_a_mailbox(Blow& blow, Stage& stage) {
  Mailbox<int> mailbox;
  stage.spawn(send_from_there(&mailbox, 7));
  static_cast<void>(succeeded(co_await blow.strike(as_task(mailbox.arrival()))));
  co_await stage.quiet();
  EXPECT_EQ(mailbox.try_receive(), 7);
}

Task<> take_there(Mailbox<int>* mailbox) {
  auto take = [mailbox] { return mailbox->try_receive(); };
  const auto taken = co_await on_core(1, take);
  EXPECT_EQ(taken, 1);
}

Task<> sending_to_a_mailbox(Blow& blow, Stage& stage) {
  Mailbox<int> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(1));
  stage.spawn(take_there(&mailbox));
  const bool sent = succeeded(co_await blow.strike(as_task(mailbox.send(2))));
  co_await stage.quiet();
  EXPECT_EQ(mailbox.try_receive(), sent ? std::optional(2) : std::nullopt);
}

Task<> sending_ones_own_to_a_mailbox(Blow& blow, Stage& stage) {
  Mailbox<std::unique_ptr<int>> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(nullptr));
  stage.later([&mailbox] { EXPECT_TRUE(mailbox.try_receive()); });
  auto value = std::make_unique<int>(2);
  const bool sent = succeeded(co_await blow.strike(as_task(mailbox.send_from(value))));
  co_await stage.quiet();
  EXPECT_EQ(value == nullptr, sent) << "it stays the caller's until it is sent";
  EXPECT_EQ(mailbox.try_receive().has_value(), sent);
}

Task<> publish_there(Broadcast<int>* news) {
  auto publish = [news] { return news->publish(7).has_value(); };
  const bool published = co_await on_core(1, publish);
  EXPECT_TRUE(published);
}

Task<> receiving_a_broadcast(Blow& blow, Stage& stage) {
  Broadcast<int> news;
  auto subscription = news.subscribe();
  stage.spawn(publish_there(&news));
  auto value = co_await blow.strike(as_task(subscription.receive()));
  co_await stage.quiet();
  if (!succeeded(value)) value = co_await subscription.receive();
  EXPECT_EQ(**value, 7);
}

Task<> the_arrival_of_a_broadcast(Blow& blow, Stage& stage) {
  Broadcast<int> news;
  auto subscription = news.subscribe();
  stage.spawn(publish_there(&news));
  static_cast<void>(succeeded(co_await blow.strike(as_task(subscription.arrival()))));
  co_await stage.quiet();
  const auto value = co_await subscription.receive();
  EXPECT_EQ(**value, 7);
}

Task<> the_blocking_pool(Blow& blow, Stage& stage) {
  auto work = [](int number) { return number + 1; };
  auto running = shared_pool(stage.loop()).pool().run(work, 1);
  const auto value = co_await blow.strike(std::move(running));
  EXPECT_EQ(succeeded(value) ? *value : 2, 2);
}

Task<> a_lane_of_the_pool(Blow& blow, Stage& stage) {
  auto work = [](int number) { return number + 1; };
  const PoolLane lane = shared_pool(stage.loop()).pool().own_lane();
  auto running = lane.run(work, 1);
  static_cast<void>(succeeded(co_await blow.strike(std::move(running))));
}

Task<Result<int>> one_more(int& number) {
  auto slept = co_await sleep(moment);
  if (!slept) co_return fail(slept.error());
  co_return ++number;
}

Task<> values_of_each_core(Blow& blow, Stage&) {
  PerCore<int> values(2);
  static_cast<void>(succeeded(co_await blow.strike(values.map(one_more))));
}

Task<> a_sum_over_each_core(Blow& blow, Stage&) {
  PerCore<int> values(2);
  auto summing = values.reduce(one_more, 0, std::plus<int>());
  const auto sum = co_await blow.strike(std::move(summing));
  EXPECT_EQ(succeeded(sum) ? *sum : 2, 2);
}

constexpr std::array between_cores = {
    SweepCase{"on_core", on_another_core},
    SweepCase{"Mailbox::receive", receiving_from_a_mailbox},
    SweepCase{"Mailbox::arrival", the_arrival_in_a_mailbox},
    SweepCase{"Mailbox::send", sending_to_a_mailbox},
    SweepCase{"Mailbox::send_from", sending_ones_own_to_a_mailbox},
    SweepCase{"Broadcast::Subscription::receive", receiving_a_broadcast},
    SweepCase{"Broadcast::Subscription::arrival", the_arrival_of_a_broadcast},
    SweepCase{"BlockingPool::run", the_blocking_pool},
    SweepCase{"PoolLane::run", a_lane_of_the_pool},
    SweepCase{"PerCore::map", values_of_each_core},
    SweepCase{"PerCore::reduce", a_sum_over_each_core},
};

TEST_P(CancelSweepOfTasks, BetweenCores) {
  sweep_all(between_cores);
}
TEST(CancelSweepInTheWorld, BetweenCores) {
  sweep_all_in_a_world(between_cores);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfTasks, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests
