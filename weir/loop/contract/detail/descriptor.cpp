#include "weir/loop/contract/detail/descriptor.hpp"

#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

void Descriptor::reset() noexcept {
  if (value_ >= 0 && host_ != nullptr) host_->close(value_);
  host_ = nullptr;
  value_ = -1;
}

}  // namespace weir
