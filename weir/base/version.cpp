#include "weir/base/version.hpp"

namespace weir {

std::string_view version() noexcept {
  return WEIR_VERSION;
}

}  // namespace weir
