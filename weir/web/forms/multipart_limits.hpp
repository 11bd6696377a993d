// MultipartLimits: the limits of a multipart form.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::http {

/// The limits of a multipart form. The limit of the whole body is that of the route,
/// RouteOptions::body_max.
struct MultipartLimits {
  std::size_t parts_max = 1000;
  std::size_t headers_max = 16;        ///< headers of one part
  std::size_t head_bytes_max = 8192;   ///< bytes of the head of one part
  std::size_t name_bytes_max = 1024;   ///< bytes of a name, and of a file name
  std::size_t outer_bytes_max = 4096;  ///< bytes before the first and behind the last boundary
};

/// Returns the most memory in bytes that a form holds besides the buffer of its connection: the
/// head of the current part and its names. The content of a part is never stored.
std::uint64_t memory_bound(const MultipartLimits& limits) noexcept;

}  // namespace weir::http
