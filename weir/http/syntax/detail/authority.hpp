// The host[:port] of a Host field or a target, as RFC 3986 §3.2 spells it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::http {

/// A checked authority without user info; the views belong to the text it was parsed from.
struct Authority {
  std::string_view host;              ///< never empty; an IP literal keeps its brackets
  std::optional<std::uint16_t> port;  ///< nothing where it is absent or empty ("a.test:")
};

/// `text` as host [":" port]: an IP literal in brackets, an IPv4 address or a registered name, and
/// a port from 0 to 65535. Nothing for user info, an empty host, a list, an escape that hides a
/// control character or a delimiter, or anything else behind it (RFC 9110 §7.2, RFC 3986 §3.2.2).
std::optional<Authority> parse_authority(std::string_view text) noexcept;

/// True for an IPv4address of RFC 3986: four decimal octets without leading zeros.
bool is_ipv4_address(std::string_view text) noexcept;

/// True for an IPv6address of RFC 3986, without brackets and without a zone.
bool is_ipv6_address(std::string_view text) noexcept;

}  // namespace weir::http
