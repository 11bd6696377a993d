// Parsing of host names and IP addresses, and the names that need no DNS query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

namespace weir::dns {

/// The two address families of a name.
enum class Family : std::uint8_t { ipv6, ipv4 };

/// A host name in normalized form.
struct HostName {
  std::string text;       ///< the name in lower case, without a trailing dot
  bool absolute = false;  ///< true if the name had a trailing dot; no search domain is tried then
};

/// Parses a host name. Its labels consist of letters, digits, '-' and '_', are separated by dots,
/// and neither begin nor end with '-'. A label has at most 63 bytes, and the name has at most 253
/// (RFC 1035 §2.3.4, RFC 1123 §2.1). The last label must not be a number (RFC 3696 §2), so that
/// "127.1" or "256.1.1.1" is never sent to a server. International names must be in their ASCII
/// form (xn--…).
/// Errors: Errc::bad_input.
Result<HostName> parse_host_name(std::string_view text);

/// Parses an IP address such as `127.0.0.1`, `::1`, `[::1]` or `fe80::1%eth0`.
/// Returns: the address with port `port`; nullopt if `text` is no IP address.
std::optional<Endpoint> parse_ip_address(std::string_view text, std::uint16_t port);

/// Returns the one normal form of a host, in which Weir compares hosts of URLs, headers,
/// certificates and options. An IP address has the form of RFC 5952 without brackets and zone; an
/// IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is the IPv4 address. Other texts are in lower case
/// and without the dot of the root at their end. The text is not checked: see parse_host_name().
std::string normal_host(std::string_view host);

/// Returns true if both texts have one normal form. It allocates nothing.
bool equal_hosts(std::string_view left, std::string_view right) noexcept;

/// Returns `name` without the dot of the root at its end.
constexpr std::string_view without_root(std::string_view name) noexcept {
  if (name.size() > 1 && name.ends_with('.')) name.remove_suffix(1);
  return name;
}

/// Returns true for localhost and names that end in .localhost. They always mean this machine (RFC
/// 6761 §6.3). `text` is the text of a HostName.
bool is_local_host(std::string_view text) noexcept;
/// Returns ::1 or 127.0.0.1, with port 0.
Endpoint local_host_address(Family family) noexcept;

}  // namespace weir::dns
