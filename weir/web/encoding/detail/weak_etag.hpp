// The weak form of an entity tag (RFC 9110 §8.8.1).
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

/// Returns the weak form of an entity tag with its quotes, which a representation has whose bytes
/// are not those that the strong form names. A weak tag stays as it is.
inline std::string weak_etag(std::string_view etag) {
  return std::string(etag.starts_with("W/") ? "" : "W/").append(etag);
}

}  // namespace weir::http
