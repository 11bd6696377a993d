// The weak form of an entity tag (RFC 9110 §8.8.1).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/http/message/detail/field_search.hpp"

namespace weir::http {

/// Returns the weak form of an entity tag with its quotes, which a representation has whose bytes
/// are not those that the strong form names. A weak tag stays as it is.
inline std::string weak_etag(std::string_view etag) {
  return std::string(etag.starts_with("W/") ? "" : "W/").append(etag);
}

/// Returns true if the If-None-Match of a request names the weak form of this strong tag, and not
/// the strong one. The client has then got a representation whose tag was made weak.
template <class Request>
bool knows_weak_etag(const Request& request, std::string_view etag) {
  bool knows_weak = false;
  const bool knows_strong = any_field(request, "if-none-match", [&](std::string_view value) {
    for (std::size_t at = value.find(etag); at != value.npos;
         at = value.find(etag, at + etag.size())) {
      if (!value.substr(0, at).ends_with("W/")) return true;
      knows_weak = true;
    }
    return false;
  });
  return knows_weak && !knows_strong;
}

}  // namespace weir::http
