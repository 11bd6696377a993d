// Ranges of IP addresses, such as 10.0.0.0/8 (RFC 4632 §3.1, RFC 4291 §2.3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

namespace weir::os {

/// The bytes of an IPv6 address. An IPv4 address is mapped into ::ffff:0:0/96 (RFC 4291 §2.5.5.2),
/// so that both forms of one address are equal.
using IpBytes = std::array<std::uint8_t, 16>;

/// Returns the bytes of an address; std::nullopt if it is neither IPv4 nor IPv6.
std::optional<IpBytes> ip_bytes(const Address& address) noexcept;

/// Parses an address without a port, brackets and zone: "192.0.2.1" or "2001:db8::1".
/// Returns: std::nullopt for any other text.
std::optional<IpBytes> parse_ip(std::string_view text) noexcept;

/// Returns true if the bytes are those of an IPv4 address.
bool is_ipv4(const IpBytes& bytes) noexcept;

/// Returns true for an address of 127.0.0.0/8 and for ::1, which only this machine reaches.
bool is_loopback(const IpBytes& bytes) noexcept;
/// Returns true for an address with such bytes.
bool is_loopback(const Address& address) noexcept;

/// Returns the text without a port: "192.0.2.1", also for mapped bytes, or "2001:db8::1" (RFC
/// 5952).
std::string ip_text(const IpBytes& bytes);

/// Returns the address with this port; mapped bytes become an IPv4 address.
Address to_address(const IpBytes& bytes, std::uint16_t port) noexcept;

/// An IpRange is all addresses with a common prefix.
/// Threads: those of a plain value.
class IpRange {
 public:
  /// Parses "10.0.0.0/8", "2001:db8::/32", or one address without a length.
  /// Errors: Errc::bad_input for any other text, and for an address with bits behind the prefix.
  static Result<IpRange> parse(std::string_view text);

  bool contains(const IpBytes& bytes) const noexcept;

 private:
  IpRange(const IpBytes& prefix, unsigned bits) noexcept : prefix_(prefix), bits_(bits) {}

  IpBytes prefix_;
  unsigned bits_;  // of the mapped form
};

/// Returns the network of a client, which has all of its addresses: the IPv4 address, or the first
/// 64 bits of the IPv6 address. Other addresses, such as those of Unix sockets, are one network.
IpBytes client_network(const Address& address) noexcept;

/// Returns the address with all bits behind the first `bits` of its own family set to zero.
IpBytes masked(const IpBytes& bytes, unsigned bits) noexcept;

}  // namespace weir::os
