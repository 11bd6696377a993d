// SHA-1 (FIPS 180-4), which the handshake of WebSocket requires. It protects nothing there.
#pragma once

#include <array>
#include <cstddef>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// Returns the SHA-1 of `bytes`. It is not for signatures or passwords, because collisions of SHA-1
/// are known.
std::array<std::byte, 20> sha1(Bytes bytes) noexcept;

}  // namespace weir::tls::detail
