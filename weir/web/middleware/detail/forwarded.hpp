// The grammar of Forwarded (RFC 7239 §4) and of X-Forwarded-For, read from right to left.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/http/message/detail/request_head.hpp"
#include "weir/os/address.hpp"

namespace weir::http {

/// LastElements returns the elements of a list header, the last one first. A comma in quotes is no
/// separator. Several headers of one name are one list (RFC 9110 §5.3). The text on the left, which
/// a client may have sent, never changes the elements on its right.
/// Lifetime: the head outlives it.
class LastElements {
 public:
  LastElements(const RequestHead& head, std::string_view name) noexcept
      : head_(head), name_(name), next_header_(head.header_count()) {}

  /// Returns the next element to the left, without white space at its ends; std::nullopt if there
  /// is none. Empty elements are left out.
  std::optional<std::string_view> next() noexcept;

 private:
  bool next_line() noexcept;

  const RequestHead& head_;
  std::string_view name_;
  std::size_t next_header_;
  std::string_view rest_;
};

/// One element of Forwarded. The views point into its text; they are empty if a part is absent.
struct ForwardedElement {
  std::string_view client;  ///< `for`, without quotes
  std::string_view scheme;  ///< `proto`
  std::string_view host;
};

/// Parses one element, such as `for="[2001:db8::1]:4711";proto=https`.
/// Returns: std::nullopt for a malformed element. A quoted text with a backslash is one, since no
/// address needs it, and so is an element with two parts of one name.
std::optional<ForwardedElement> parse_forwarded(std::string_view text) noexcept;

/// Parses the node of a client (RFC 7239 §6): an IPv4 address, or an IPv6 address, in brackets or
/// without a port. A port is optional.
/// Returns: std::nullopt for any other text, including "unknown" and obfuscated names.
std::optional<os::Address> parse_node(std::string_view text) noexcept;

}  // namespace weir::http
