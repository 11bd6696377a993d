#include "tools/simulate/core_scenario.hpp"

#include <utility>

#include "weir/runtime/on_core.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr unsigned letters = 40;
constexpr unsigned newest = 30;
constexpr unsigned calls = 20;

bool now_and_then(Host& host) {
  return host.random() % 3 == 0;
}
Duration moment(Host& host) {
  return std::chrono::microseconds(host.random() % 3000);
}
Task<> pause(Host& host) {
  if (now_and_then(host)) static_cast<void>(co_await sleep(moment(host)));
}

unsigned twice(unsigned number) {
  return 2 * number;
}
Task<Result<unsigned>> twice_later(unsigned number, Duration later) {
  if (auto slept = co_await sleep(later); !slept) co_return fail(slept.error());
  co_return twice(number);
}
Task<Result<unsigned>> twice_in_pool(Loop& loop, unsigned number) {
  co_return co_await shared_pool(loop).pool().run(twice, number);
}

/// The outcome of `task`, which is given up soon, or is not.
template <class T>
Task<Result<T>> patiently_or_not(Host& host, Task<Result<T>> task) {
  if (now_and_then(host)) co_return co_await timeout(moment(host), std::move(task));
  co_return co_await std::move(task);
}

}  // namespace

Task<> CorePlay::run(Scope& scope) {
  Loop& loop = scope.loop();
  Host& host = loop.host();
  scope.spawn(hear(host, news_.subscribe()));
  scope.spawn(send_letters(host, loop.core()));
  scope.spawn(call_others(host));
  scope.spawn(call_pool(loop));
  if (loop.core() == 0) scope.spawn(receive_letters(host));
  if (loop.core() + 1 == sent_.size()) scope.spawn(publish(host));
  co_return;
}

Task<> CorePlay::send_letters(Host& host, unsigned core) {
  for (unsigned number = 0; number < letters; ++number) {
    auto sending = as_task(mailbox_.send(Letter{core, number}));
    const auto sent = co_await patiently_or_not(host, std::move(sending));
    if (sent) {
      sent_[core].push_back(number);
    } else if (sent.error() != Errc::timed_out) {
      fault_ = "a letter was not sent: " + sent.error().message();
    }
    co_await pause(host);
  }
  co_await on_core(0, sender_ends, this);
}

void CorePlay::sender_ends(CorePlay* play) {
  if (++play->senders_ended_ == play->sent_.size()) play->mailbox_.close();
}

Task<> CorePlay::receive_letters(Host& host) {
  for (;;) {
    auto receiving = as_task(mailbox_.receive());
    const auto letter = co_await patiently_or_not(host, std::move(receiving));
    if (letter) {
      received_[letter->sender].push_back(letter->number);
      ++done_;
    } else if (letter.error() == Errc::end_of_stream) {
      co_return;
    } else if (letter.error() != Errc::timed_out) {
      fault_ = "no letter was received: " + letter.error().message();
    }
    co_await pause(host);
  }
}

Task<> CorePlay::publish(Host& host) {
  static_cast<void>(co_await sleep(std::chrono::seconds(1)));  // all have subscribed
  for (unsigned number = 1; number <= newest; ++number) {
    static_cast<void>(news_.publish(number));
    co_await pause(host);
  }
  news_.close();
}

Task<> CorePlay::hear(Host& host, Broadcast<unsigned>::Subscription news) {
  unsigned last = 0;
  for (;;) {
    auto receiving = as_task(news.receive());
    const auto heard = co_await patiently_or_not(host, std::move(receiving));
    if (heard) {
      if (**heard <= last) fault_ = "news come out of order";
      last = **heard;
    } else if (heard.error() == Errc::end_of_stream) {
      break;
    } else if (heard.error() != Errc::timed_out && heard.error() != Errc::limit_reached) {
      fault_ = "no news: " + heard.error().message();
    }
    co_await pause(host);
  }
  if (last != newest) fault_ = "the last news has not come";
}

void CorePlay::judge(const Result<unsigned>& result, unsigned argument, std::string_view whose) {
  ++done_;
  if (result ? *result == twice(argument) : result.error() == Errc::timed_out) return;
  fault_ = std::string(whose) + " gives " +
           (result ? std::to_string(*result) : result.error().message());
}

Task<> CorePlay::call_others(Host& host) {
  for (unsigned number = 0; number < calls; ++number) {
    const auto core = static_cast<unsigned>(host.random() % sent_.size());
    auto calling = on_core(core, twice_later, number, moment(host));
    const auto result = co_await patiently_or_not(host, std::move(calling));
    judge(result, number, "a call to another core");
  }
}

Task<> CorePlay::call_pool(Loop& loop) {
  for (unsigned number = 0; number < calls; ++number) {
    const auto result = co_await patiently_or_not(loop.host(), twice_in_pool(loop, number));
    judge(result, number, "a call of the pool");
  }
}

std::string CorePlay::find_fault() const {
  if (!fault_.empty()) return fault_;
  for (std::size_t core = 0; core < sent_.size(); ++core) {
    if (sent_[core] == received_[core]) continue;
    return "of core " + std::to_string(core) + "'s letters " + std::to_string(sent_[core].size()) +
           " were sent and " + std::to_string(received_[core].size()) +
           " received, or in another order";
  }
  return {};
}

}  // namespace weir::simulate
