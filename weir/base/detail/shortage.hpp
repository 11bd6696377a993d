// Errors of the kernel that say that this machine lacks something, and not that a peer is at fault.
#pragma once

#include <cerrno>
#include <system_error>

namespace weir::detail {

/// Returns true if an errno means that the process or the machine has no more descriptors, buffers
/// or memory.
constexpr bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/// Returns true if `error` is such an errno.
inline bool is_shortage(std::error_code error) noexcept {
  return error.category() == std::system_category() && is_shortage(error.value());
}

}  // namespace weir::detail
