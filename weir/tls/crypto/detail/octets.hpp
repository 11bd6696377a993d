// Bytes as OpenSSL takes them.
#pragma once

#include <cstddef>

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

inline const unsigned char* data_of(Bytes bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* data_of(std::byte* bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes);
}

}  // namespace weir::tls::detail
