// Parser of the host[:port] in a Host header or a request target (RFC 3986 §3.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::http {

/// A checked authority without user info. The views point into the text that was parsed.
struct Authority {
  std::string_view host;              ///< never empty; an IP literal keeps its brackets
  std::optional<std::uint16_t> port;  ///< std::nullopt if the port is absent or empty ("a.test:")
};

/// Parses `text` as host [":" port]. The host is an IP literal in brackets, an IPv4 address or a
/// registered name. The port is a number from 0 to 65535.
/// Returns: std::nullopt if the text has user info, an empty host or a list, or if anything else
/// follows the authority. An escape that hides a control character or a delimiter is rejected,
/// too (RFC 9110 §7.2, RFC 3986 §3.2.2).
std::optional<Authority> parse_authority(std::string_view text) noexcept;

/// Returns true if `origin`, the value of an Origin header, is that of a page of the host and port
/// in `authority`. The scheme is https if the request was secure. Otherwise it is not compared,
/// because a proxy may end TLS; its default port counts for both. Hosts are compared in the form of
/// dns::normal_host().
bool is_same_host(std::string_view origin, std::string_view authority, bool secure) noexcept;

/// Returns true if two origins (RFC 6454 §4) have the same scheme, host and port. The default port
/// of http and https may be left out.
bool is_same_origin(std::string_view left, std::string_view right) noexcept;

/// Returns true if two authorities are of the same host and port. `default_port` is the port of one
/// without a port. Other text is only compared without
/// regard to case.
bool is_same_authority(std::string_view left, std::string_view right,
                       std::uint16_t default_port) noexcept;

/// Returns true if `text` is an IPv4address of RFC 3986: four decimal octets without leading zeros.
bool is_ipv4_address(std::string_view text) noexcept;

/// Returns true if `text` is an IPv6address of RFC 3986, without brackets and without a zone.
bool is_ipv6_address(std::string_view text) noexcept;

}  // namespace weir::http
