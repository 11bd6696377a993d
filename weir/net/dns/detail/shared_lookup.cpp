#include "weir/net/dns/detail/shared_lookup.hpp"

#include <cassert>
#include <exception>

namespace weir::dns {

SharedLookup::~SharedLookup() {
  assert(waiters_ == 0);
}

void SharedLookup::start(Loop& loop) {
  cancel_.list_in(loop.roots());
  task_.start(Context{&loop, &cancel_}, *this);
}

std::coroutine_handle<> SharedLookup::on_completed(Continuation& self, std::coroutine_handle<>) {
  auto& lookup = static_cast<SharedLookup&>(self);
  lookup.ended_.set();
  if (lookup.last_waiter_ != nullptr) {
    lookup.last_waiter_->complete();
  } else {
    lookup.owner_.on_finished(lookup);
  }
  return std::noop_coroutine();
}

SharedLookup::ResultPtr SharedLookup::result() {
  const auto& promise = task_.handle().promise();
  if (promise.exception() != nullptr) std::rethrow_exception(promise.exception());
  return promise.value();
}

Task<SharedLookup::ResultPtr> SharedLookup::wait(std::shared_ptr<SharedLookup> lookup) {
  ++lookup->waiters_;
  const auto waited = co_await lookup->ended_.wait();
  --lookup->waiters_;
  if (waited || lookup->ended_.is_set()) co_return lookup->result();
  if (lookup->waiters_ > 0) {
    auto left = std::make_shared<LookupResult>();
    left->error = Errc::cancelled;
    co_return left;
  }
  lookup->owner_.on_finished(*lookup);
  lookup->cancel_.cancel();
  co_await LastWaiter(*lookup);
  co_return lookup->result();
}

}  // namespace weir::dns
