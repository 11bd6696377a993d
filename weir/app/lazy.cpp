#include "weir/app/handles/detail/lazy.hpp"

#include "weir/app/core_services.hpp"
#include "weir/loop/loop.hpp"

namespace weir::wiring {

bool Deferred::is_at_home() const noexcept {
  const Loop* const here = Loop::current();
  return here == nullptr || services->is_on(*here);
}

bool DeferredWait::begin(Loop&) {
  if (!of_->asking) {
    of_->asking = true;
    of_->ask(*of_);  // which may be answered at once
  }
  if (of_->asking) {
    of_->waiting.push_back(*this);
    return true;
  }
  if (of_->object == nullptr) error_ = of_->refusal;
  return false;
}

}  // namespace weir::wiring
