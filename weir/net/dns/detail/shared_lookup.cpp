#include "weir/net/dns/detail/shared_lookup.hpp"

#include <cassert>
#include <exception>

namespace weir::names {

SharedLookup::~SharedLookup() {
  assert(waiting_ == 0);
}

void SharedLookup::start(Loop& loop) {
  task_.start(Context{&loop, &cancel_}, *this);
}

std::coroutine_handle<> SharedLookup::completed(Completion& self, std::coroutine_handle<>) {
  auto& lookup = static_cast<SharedLookup&>(self);
  lookup.ended_.set();
  if (lookup.last_ != nullptr) {
    lookup.last_->come();
  } else {
    lookup.owner_.over(lookup);
  }
  return std::noop_coroutine();
}

SharedLookup::Answer SharedLookup::answer() {
  const auto& promise = task_.handle().promise();
  if (promise.exception() != nullptr) std::rethrow_exception(promise.exception());
  return promise.value();
}

Task<SharedLookup::Answer> SharedLookup::wait_for(std::shared_ptr<SharedLookup> lookup) {
  ++lookup->waiting_;
  const auto waited = co_await lookup->ended_.wait();
  --lookup->waiting_;
  if (waited || lookup->ended_.is_set()) co_return lookup->answer();
  if (lookup->waiting_ > 0) {
    auto left = std::make_shared<NameAnswer>();
    left->error = Errc::cancelled;
    co_return left;
  }
  lookup->owner_.over(*lookup);
  lookup->cancel_.cancel();
  co_await End(*lookup);
  co_return lookup->answer();
}

}  // namespace weir::names
