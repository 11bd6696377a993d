// Searches among the fields of any message: a head that was received, or Headers.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/list.hpp"

namespace weir::http {

/// Returns true if `matches(value)` is true for a field of this name.
template <class Matches>
bool any_field(const Headers& headers, std::string_view name, const Matches& matches) {
  for (const HeaderField field : headers) {
    if (equals_ignoring_case(field.name, name) && matches(field.value)) return true;
  }
  return false;
}
template <class Head, class Matches>
bool any_field(const Head& head, std::string_view name, const Matches& matches) {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (equals_ignoring_case(field.name, name) && matches(field.value)) return true;
  }
  return false;
}

/// Returns true if the sender of a message forbids proxies to change its content (RFC 9110 §7.7,
/// RFC 9111 §5.2).
template <class Message>
bool forbids_transform(const Message& message) {
  return any_field(message, "cache-control",
                   [](std::string_view value) { return has_token(value, "no-transform"); });
}

}  // namespace weir::http
