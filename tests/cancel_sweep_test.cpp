// Cancels waits on one core, and requests to other cores and threads, at any time on every real
// backend; see tests/cancel_sweep.hpp.
#include "tests/cancel_sweep.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/runtime/task_report.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/interval.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests::cancel_sweep_test {
namespace {

using namespace std::chrono_literals;

Task<> sleeping(CancelInjector& injector, SweepEnvironment&) {
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(sleep(short_delay))));
}

Task<> sleeping_until(CancelInjector& injector, SweepEnvironment& env) {
  auto slept = as_task(sleep_until(after(env.loop().now(), short_delay)));
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(slept)));
}

Task<> an_interval(CancelInjector& injector, SweepEnvironment&) {
  Interval ticks(short_delay);
  const auto first = co_await injector.run_with_cancel(as_task(ticks.next()));
  if (succeeded(first)) co_return;
  EXPECT_TRUE(co_await ticks.next()) << "the tick stays for the next call";
}

Task<> a_manual_reset_event(CancelInjector& injector, SweepEnvironment& env) {
  ManualResetEvent event;
  env.run_later([&event] { event.set(); });
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(event.wait())));
  co_await env.wait_until_idle();
  EXPECT_TRUE(event.is_set());
}

Task<> an_auto_reset_event(CancelInjector& injector, SweepEnvironment& env) {
  AutoResetEvent event;
  env.run_later([&event] { event.set(); });
  const bool passed = succeeded(co_await injector.run_with_cancel(as_task(event.wait())));
  co_await env.wait_until_idle();
  EXPECT_NE(event.is_set(), passed) << "one set() wakes one waiter";
}

Task<> a_latch(CancelInjector& injector, SweepEnvironment& env) {
  Latch latch(1);
  env.run_later([&latch] { latch.count_down(); });
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(latch.wait())));
  co_await env.wait_until_idle();
  EXPECT_EQ(latch.count(), 0U);
}

Task<> a_semaphore(CancelInjector& injector, SweepEnvironment& env) {
  Semaphore semaphore(0);
  env.run_later([&semaphore] { semaphore.release(2); });
  {
    const auto permit = co_await injector.run_with_cancel(as_task(semaphore.acquire(2)));
    const bool has = succeeded(permit);
    co_await env.wait_until_idle();
    EXPECT_EQ(semaphore.available(), has ? 0U : 2U);
  }
  EXPECT_EQ(semaphore.available(), 2U);
}

Task<> a_mutex(CancelInjector& injector, SweepEnvironment& env) {
  Mutex mutex;
  auto other = mutex.try_lock();
  env.run_later([&other] { other.reset(); });
  {
    const auto guard = co_await injector.run_with_cancel(as_task(mutex.lock()));
    const bool has = succeeded(guard);
    co_await env.wait_until_idle();
    EXPECT_EQ(mutex.locked(), has);
  }
  EXPECT_FALSE(mutex.locked());
}

Task<> a_shared_mutex(CancelInjector& injector, SweepEnvironment& env) {
  SharedMutex mutex;
  auto reader = mutex.try_lock_shared();
  env.run_later([&reader] { reader.reset(); });
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(mutex.lock())));
  co_await env.wait_until_idle();
  EXPECT_TRUE(mutex.try_lock());
}

Task<> a_shared_mutex_for_reading(CancelInjector& injector, SweepEnvironment& env) {
  SharedMutex mutex;
  auto writer = mutex.try_lock();
  env.run_later([&writer] { writer.reset(); });
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(mutex.lock_shared())));
  co_await env.wait_until_idle();
  EXPECT_TRUE(mutex.try_lock());
}

Task<> receiving_from_a_channel(CancelInjector& injector, SweepEnvironment& env) {
  Channel<int> channel(1);
  env.run_later([&channel] { EXPECT_TRUE(channel.try_send(7)); });
  const auto value = co_await injector.run_with_cancel(as_task(channel.receive()));
  const bool has = succeeded(value);
  co_await env.wait_until_idle();
  EXPECT_EQ(has ? *value : channel.try_receive(), 7);
  EXPECT_FALSE(channel.try_receive());
}

Task<> sending_to_a_channel(CancelInjector& injector, SweepEnvironment& env) {
  Channel<int> channel(1);
  EXPECT_TRUE(channel.try_send(1));
  env.run_later([&channel] { EXPECT_EQ(channel.try_receive(), 1); });
  const bool sent = succeeded(co_await injector.run_with_cancel(as_task(channel.send(2))));
  co_await env.wait_until_idle();
  EXPECT_EQ(channel.try_receive(), sent ? std::optional(2) : std::nullopt);
}

Task<> sending_ones_own_to_a_channel(CancelInjector& injector, SweepEnvironment& env) {
  Channel<std::unique_ptr<int>> channel(1);
  EXPECT_TRUE(channel.try_send(nullptr));
  env.run_later([&channel] { EXPECT_TRUE(channel.try_receive()); });
  auto value = std::make_unique<int>(2);
  const bool sent = succeeded(co_await injector.run_with_cancel(as_task(channel.send_from(value))));
  co_await env.wait_until_idle();
  EXPECT_EQ(value == nullptr, sent) << "it stays the caller's until it is sent";
  EXPECT_EQ(channel.try_receive().has_value(), sent);
}

Task<> a_rate_limiter(CancelInjector& injector, SweepEnvironment& env) {
  RateLimiter limiter({.tokens = 1, .per = short_delay, .burst = 1});
  EXPECT_TRUE(limiter.try_acquire(env.loop().now()));
  if (succeeded(co_await injector.run_with_cancel(as_task(limiter.acquire())))) co_return;
  EXPECT_TRUE(co_await limiter.acquire());
}

Task<> selecting(CancelInjector& injector, SweepEnvironment& env) {
  Channel<int> channel(1);
  AutoResetEvent event;
  env.run_later([&channel] { EXPECT_TRUE(channel.try_send(7)); });
  const auto first =
      co_await injector.run_with_cancel(as_task(select(event.wait(), channel.receive())));
  const bool has = succeeded(first);
  co_await env.wait_until_idle();
  EXPECT_EQ(channel.try_receive(), has ? std::nullopt : std::optional(7));
}

Generator<int> count_slowly() {
  for (int number = 0;; ++number) {
    if (auto slept = co_await sleep(short_delay); !slept) co_yield fail(slept.error());
    co_yield number;
  }
}

Task<> a_generator(CancelInjector& injector, SweepEnvironment&) {
  auto numbers = count_slowly();
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(numbers.next())));
}

Task<Result<int>> number_later(int number, Duration length) {
  WEIR_CO_TRY(co_await sleep(length));
  co_return number;
}

Task<> a_time_out(CancelInjector& injector, SweepEnvironment&) {
  std::ignore = succeeded(co_await injector.run_with_cancel(
      timeout(std::chrono::seconds(20), number_later(1, short_delay))));
}

Task<> all_of_them(CancelInjector& injector, SweepEnvironment&) {
  auto both = all(number_later(1, short_delay), number_later(2, 2 * short_delay));
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(both)));
}

Task<> all_outcomes(CancelInjector& injector, SweepEnvironment&) {
  auto both = settled(number_later(1, short_delay), number_later(2, 2 * short_delay));
  const auto outcomes = co_await injector.run_with_cancel(std::move(both));
  static_cast<void>(succeeded(std::get<0>(outcomes)));
  static_cast<void>(succeeded(std::get<1>(outcomes)));
}

Task<> a_race(CancelInjector& injector, SweepEnvironment&) {
  auto first = race(number_later(1, 10s), number_later(2, short_delay));
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(first)));
}

Task<> the_first_that_succeeds(CancelInjector& injector, SweepEnvironment&) {
  auto first = first_ok(number_later(1, 10s), number_later(2, short_delay));
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(first)));
}

Task<Result<>> spawn_some(Scope& scope) {
  for (int number = 0; number < 3; ++number) scope.spawn(as_task(sleep(short_delay)));
  co_return co_await sleep(short_delay);
}

Task<> a_scope(CancelInjector& injector, SweepEnvironment&) {
  auto scoped = with_scope(OnFailure::cancel_siblings, spawn_some);
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(scoped)));
}

constexpr std::array on_one_core = {
    SweepCase{"sleep", sleeping},
    SweepCase{"sleep_until", sleeping_until},
    SweepCase{"Interval::next", an_interval},
    SweepCase{"ManualResetEvent::wait", a_manual_reset_event},
    SweepCase{"AutoResetEvent::wait", an_auto_reset_event},
    SweepCase{"Latch::wait", a_latch},
    SweepCase{"Semaphore::acquire", a_semaphore},
    SweepCase{"Mutex::lock", a_mutex},
    SweepCase{"SharedMutex::lock", a_shared_mutex},
    SweepCase{"SharedMutex::lock_shared", a_shared_mutex_for_reading},
    SweepCase{"Channel::receive", receiving_from_a_channel},
    SweepCase{"Channel::send", sending_to_a_channel},
    SweepCase{"Channel::send_from", sending_ones_own_to_a_channel},
    SweepCase{"RateLimiter::acquire", a_rate_limiter},
    SweepCase{"select", selecting},
    SweepCase{"Generator::next", a_generator},
    SweepCase{"timeout", a_time_out},
    SweepCase{"all", all_of_them},
    SweepCase{"settled", all_outcomes},
    SweepCase{"race", a_race},
    SweepCase{"first_ok", the_first_that_succeeds},
    SweepCase{"with_scope", a_scope},
};

class CancelSweepOfTasks : public CancelSweep {};

TEST_P(CancelSweepOfTasks, OnOneCore) {
  sweep_all(on_one_core);
}
TEST(CancelSweepInTheWorld, OnOneCore) {
  sweep_all_in_world(on_one_core);
}

Task<> on_another_core(CancelInjector& injector, SweepEnvironment&) {
  std::ignore =
      succeeded(co_await injector.run_with_cancel(on_core(1, number_later, 1, short_delay)));
}

Task<> send_from_there(Mailbox<int>* mailbox, int value) {
  auto send = [mailbox, value] {
    int moved = value;
    return mailbox->try_send(std::move(moved)).has_value();
  };
  const bool sent = co_await on_core(1, send);
  EXPECT_TRUE(sent);
}

Task<> receiving_from_a_mailbox(CancelInjector& injector, SweepEnvironment& env) {
  Mailbox<int> mailbox;
  env.spawn(send_from_there(&mailbox, 7));
  auto value = co_await injector.run_with_cancel(as_task(mailbox.receive()));
  co_await env.wait_until_idle();
  if (!succeeded(value)) value = co_await mailbox.receive();
  EXPECT_EQ(*value, 7);
  EXPECT_FALSE(mailbox.try_receive());
}

Task<> a_readable_mailbox(CancelInjector& injector, SweepEnvironment& env) {
  Mailbox<int> mailbox;
  env.spawn(send_from_there(&mailbox, 7));
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(mailbox.readable())));
  co_await env.wait_until_idle();
  EXPECT_EQ(mailbox.try_receive(), 7);
}

Task<> take_there(Mailbox<int>* mailbox) {
  auto take = [mailbox] { return mailbox->try_receive(); };
  const auto taken = co_await on_core(1, take);
  EXPECT_EQ(taken, 1);
}

Task<> sending_to_a_mailbox(CancelInjector& injector, SweepEnvironment& env) {
  Mailbox<int> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(1));
  env.spawn(take_there(&mailbox));
  const bool sent = succeeded(co_await injector.run_with_cancel(as_task(mailbox.send(2))));
  co_await env.wait_until_idle();
  EXPECT_EQ(mailbox.try_receive(), sent ? std::optional(2) : std::nullopt);
}

Task<> sending_ones_own_to_a_mailbox(CancelInjector& injector, SweepEnvironment& env) {
  Mailbox<std::unique_ptr<int>> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(nullptr));
  env.run_later([&mailbox] { EXPECT_TRUE(mailbox.try_receive()); });
  auto value = std::make_unique<int>(2);
  const bool sent = succeeded(co_await injector.run_with_cancel(as_task(mailbox.send_from(value))));
  co_await env.wait_until_idle();
  EXPECT_EQ(value == nullptr, sent) << "it stays the caller's until it is sent";
  EXPECT_EQ(mailbox.try_receive().has_value(), sent);
}

Task<> publish_there(Broadcast<int>* news) {
  auto publish = [news] { return news->publish(7).has_value(); };
  const bool published = co_await on_core(1, publish);
  EXPECT_TRUE(published);
}

Task<> receiving_a_broadcast(CancelInjector& injector, SweepEnvironment& env) {
  Broadcast<int> news;
  auto subscription = news.subscribe();
  env.spawn(publish_there(&news));
  auto value = co_await injector.run_with_cancel(as_task(subscription.receive()));
  co_await env.wait_until_idle();
  if (!succeeded(value)) value = co_await subscription.receive();
  EXPECT_EQ(**value, 7);
}

Task<> a_readable_broadcast(CancelInjector& injector, SweepEnvironment& env) {
  Broadcast<int> news;
  auto subscription = news.subscribe();
  env.spawn(publish_there(&news));
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(subscription.readable())));
  co_await env.wait_until_idle();
  const auto value = co_await subscription.receive();
  EXPECT_EQ(**value, 7);
}

Task<> the_blocking_pool(CancelInjector& injector, SweepEnvironment& env) {
  auto work = [](int number) { return number + 1; };
  auto running = shared_pool(env.loop()).pool().run(work, 1);
  const auto value = co_await injector.run_with_cancel(std::move(running));
  EXPECT_EQ(succeeded(value) ? *value : 2, 2);
}

Task<> a_lane_of_the_pool(CancelInjector& injector, SweepEnvironment& env) {
  auto work = [](int number) { return number + 1; };
  const PoolLane lane = shared_pool(env.loop()).pool().default_lane();
  auto running = lane.run(work, 1);
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(running)));
}

Task<Result<int>> one_more(int& number) {
  WEIR_CO_TRY(co_await sleep(short_delay));
  co_return ++number;
}

Task<> values_of_each_core(CancelInjector& injector, SweepEnvironment&) {
  PerCore<int> values(2);
  std::ignore = succeeded(co_await injector.run_with_cancel(values.map(one_more)));
}

Task<> a_sum_over_each_core(CancelInjector& injector, SweepEnvironment&) {
  PerCore<int> values(2);
  auto summing = values.reduce(one_more, 0, std::plus<int>());
  const auto sum = co_await injector.run_with_cancel(std::move(summing));
  EXPECT_EQ(succeeded(sum) ? *sum : 2, 2);
}

Task<> a_report_of_tasks(CancelInjector& injector, SweepEnvironment&) {
  auto reporting = report_tasks();
  const auto report = co_await injector.run_with_cancel(std::move(reporting));
  EXPECT_EQ(succeeded(report) ? report->cores.size() : 2U, 2U);
}

constexpr std::array between_cores = {
    SweepCase{"on_core", on_another_core},
    SweepCase{"report_tasks", a_report_of_tasks},
    SweepCase{"Mailbox::receive", receiving_from_a_mailbox},
    SweepCase{"Mailbox::readable", a_readable_mailbox},
    SweepCase{"Mailbox::send", sending_to_a_mailbox},
    SweepCase{"Mailbox::send_from", sending_ones_own_to_a_mailbox},
    SweepCase{"Broadcast::Subscription::receive", receiving_a_broadcast},
    SweepCase{"Broadcast::Subscription::readable", a_readable_broadcast},
    SweepCase{"BlockingPool::run", the_blocking_pool},
    SweepCase{"PoolLane::run", a_lane_of_the_pool},
    SweepCase{"PerCore::map", values_of_each_core},
    SweepCase{"PerCore::reduce", a_sum_over_each_core},
};

TEST_P(CancelSweepOfTasks, BetweenCores) {
  sweep_all(between_cores);
}
TEST(CancelSweepInTheWorld, BetweenCores) {
  sweep_all_in_world(between_cores);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfTasks, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_test
