// Messages between cores, and the rules for them.
#include "tools/simulate/core_scenario.hpp"

#include <algorithm>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr unsigned messages = 40;
constexpr unsigned newest = 30;
constexpr unsigned calls = 20;

bool now_and_then(loop::PlatformClock& clock) {
  return clock.random() % 3 == 0;
}
Duration moment(loop::PlatformClock& clock) {
  return std::chrono::microseconds(clock.random() % 3000);
}
Task<> pause(loop::PlatformClock& clock) {
  if (now_and_then(clock)) std::ignore = co_await sleep(moment(clock));
}

unsigned twice(unsigned number) {
  return 2 * number;
}
Task<Result<unsigned>> twice_later(unsigned number, Duration later) {
  WEIR_CO_TRY(co_await sleep(later));
  co_return twice(number);
}
Task<Result<unsigned>> twice_in_pool(Loop& loop, unsigned number) {
  co_return co_await shared_pool(loop).pool().run(twice, number);
}

/// Awaits `task`, sometimes with a short timeout. A task without a timeout must not time out.
template <class T>
Task<Result<T>> patiently_or_not(loop::PlatformClock& clock, Task<Result<T>> task) {
  if (now_and_then(clock)) co_return co_await timeout(moment(clock), std::move(task));
  auto result = co_await std::move(task);
  if (!result && result.error() == Errc::timed_out) co_return fail(Errc::conflict);
  co_return result;
}

}  // namespace

Task<> CoreScenario::run(Scope& scope) {
  Loop& loop = scope.loop();
  loop::PlatformClock& clock = loop.platform();
  scope.spawn(receive_news(clock, news_.subscribe()));
  scope.spawn(send_messages(clock, loop.core()));
  scope.spawn(call_others(clock));
  scope.spawn(call_pool(loop));
  if (loop.core() == 0) scope.spawn(receive_messages(clock));
  if (loop.core() + 1 == sent_.size()) scope.spawn(publish(clock));
  co_return;
}

Task<> CoreScenario::send_messages(loop::PlatformClock& clock, unsigned core) {
  for (unsigned number = 0; number < messages; ++number) {
    auto sending = as_task(mailbox_.send(Message{core, number}));
    const auto sent = co_await patiently_or_not(clock, std::move(sending));
    if (sent) {
      sent_[core].push_back(number);
      check_capacity();
    } else if (sent.error() != Errc::timed_out) {
      violation_ = "a message was not sent: " + sent.error().message();
    }
    co_await pause(clock);
  }
  co_await on_core(0, sender_ends, this);
}

void CoreScenario::sender_ends(CoreScenario* scenario) {
  if (++scenario->senders_ended_ == scenario->sent_.size()) scenario->mailbox_.close();
}

/// A message that was sent is in the mailbox, or the receiver is about to store it.
void CoreScenario::check_capacity() {
  std::size_t held = 0;
  for (std::size_t core = 0; core < sent_.size(); ++core) {
    held += sent_[core].size() - std::min(sent_[core].size(), received_[core].size());
  }
  if (held > mailbox_capacity + 1) violation_ = "the mailbox holds more than its capacity";
}

Task<> CoreScenario::receive_messages(loop::PlatformClock& clock) {
  for (;;) {
    auto receiving = as_task(mailbox_.receive());
    const auto message = co_await patiently_or_not(clock, std::move(receiving));
    if (message) {
      received_[message->sender].push_back(message->number);
      ++done_;
    } else if (message.error() == Errc::end_of_stream) {
      co_return;
    } else if (message.error() != Errc::timed_out) {
      violation_ = "a message was not received: " + message.error().message();
    }
    co_await pause(clock);
  }
}

Task<> CoreScenario::publish(loop::PlatformClock& clock) {
  std::ignore = co_await sleep(std::chrono::seconds(1));  // all cores have subscribed
  for (unsigned number = 1; number <= newest; ++number) {
    static_cast<void>(news_.publish(number));
    co_await pause(clock);
  }
  news_.close();
}

Task<> CoreScenario::receive_news(loop::PlatformClock& clock,
                                  Broadcast<unsigned>::Subscription news) {
  unsigned last = 0;
  unsigned count = 0;
  bool lagged = false;  // true if a loss was reported and no value has arrived since
  for (;;) {
    auto receiving = as_task(news.receive());
    const auto received_news = co_await patiently_or_not(clock, std::move(receiving));
    if (received_news) {
      const unsigned number = **received_news;
      if (number <= last) violation_ = "broadcast values arrived out of order";
      if (number > last + 1 && !lagged)
        violation_ = "the loss of a broadcast value is not reported";
      lagged = false;
      last = number;
      ++count;
    } else if (received_news.error() == Errc::end_of_stream) {
      break;
    } else if (received_news.error() == Errc::limit_reached) {
      lagged = true;
    } else if (received_news.error() != Errc::timed_out) {
      violation_ = "a broadcast value was not received: " + received_news.error().message();
    }
    co_await pause(clock);
  }
  if (last != newest) violation_ = "the last broadcast value did not arrive";
  if (count + news.missed() != newest) violation_ = "wrong number of lost broadcast values";
}

void CoreScenario::check_result(const Result<unsigned>& result, unsigned argument,
                                std::string_view whose) {
  ++done_;
  if (result ? *result == twice(argument) : result.error() == Errc::timed_out) return;
  violation_ = std::string(whose) + " returned " +
               (result ? std::to_string(*result) : result.error().message());
}

Task<> CoreScenario::call_others(loop::PlatformClock& clock) {
  for (unsigned number = 0; number < calls; ++number) {
    const auto core = static_cast<unsigned>(clock.random() % sent_.size());
    auto calling = on_core(core, twice_later, number, moment(clock));
    const auto result = co_await patiently_or_not(clock, std::move(calling));
    check_result(result, number, "a call to another core");
  }
}

Task<> CoreScenario::call_pool(Loop& loop) {
  for (unsigned number = 0; number < calls; ++number) {
    const auto result = co_await patiently_or_not(loop.platform(), twice_in_pool(loop, number));
    check_result(result, number, "a call of the pool");
  }
}

std::string CoreScenario::find_violation() const {
  if (!violation_.empty()) return violation_;
  for (std::size_t core = 0; core < sent_.size(); ++core) {
    if (sent_[core] == received_[core]) continue;
    return "core " + std::to_string(core) + ": " + std::to_string(sent_[core].size()) +
           " messages were sent and " + std::to_string(received_[core].size()) +
           " received, or in another order";
  }
  return {};
}

}  // namespace weir::simulate
