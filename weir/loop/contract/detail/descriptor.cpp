#include "weir/loop/contract/detail/descriptor.hpp"

#include "weir/loop/contract/detail/network.hpp"

namespace weir::loop {

void Descriptor::reset() noexcept {
  if (value_ >= 0 && network_ != nullptr) network_->close(value_);
  network_ = nullptr;
  value_ = -1;
}

}  // namespace weir::loop
