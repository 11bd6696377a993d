#include "weir/loop/contract/detail/descriptor.hpp"

#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

void Descriptor::reset() noexcept {
  if (value_ >= 0 && platform_ != nullptr) platform_->close(value_);
  platform_ = nullptr;
  value_ = -1;
}

}  // namespace weir
