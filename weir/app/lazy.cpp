#include "weir/app/lazy.hpp"

namespace weir::wiring {

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
