#include "weir/os/ip_range.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace weir::os {
namespace {

constexpr unsigned mapped_bits = 96;
constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

IpBytes mapped(const std::uint8_t* four) noexcept {
  IpBytes bytes{};
  std::ranges::copy(mapped_prefix, bytes.begin());
  std::copy_n(four, 4, bytes.begin() + mapped_prefix.size());
  return bytes;
}

/// Sets all bits behind the first `bits` of the mapped form to zero.
IpBytes keep_bits(IpBytes bytes, unsigned bits) noexcept {
  for (unsigned index = 0; index < bytes.size(); ++index) {
    const unsigned kept = std::clamp(bits, index * 8, index * 8 + 8) - index * 8;
    bytes[index] = static_cast<std::uint8_t>(bytes[index] & (0xff00U >> kept));
  }
  return bytes;
}

}  // namespace

std::optional<IpBytes> ip_bytes(const Address& address) noexcept {
  if (address.family() == AddressFamily::ipv4) {
    sockaddr_in in;
    std::memcpy(&in, address.data(), sizeof in);
    std::array<std::uint8_t, 4> four;
    std::memcpy(four.data(), &in.sin_addr, four.size());
    return mapped(four.data());
  }
  if (address.family() != AddressFamily::ipv6) return std::nullopt;
  sockaddr_in6 in6;
  std::memcpy(&in6, address.data(), sizeof in6);
  IpBytes bytes;
  std::memcpy(bytes.data(), &in6.sin6_addr, bytes.size());
  return bytes;
}

std::optional<IpBytes> parse_ip(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> room{};
  if (text.size() >= room.size() || text.contains('\0')) return std::nullopt;
  std::ranges::copy(text, room.begin());
  std::array<std::uint8_t, 4> four;
  if (inet_pton(AF_INET, room.data(), four.data()) == 1) return mapped(four.data());
  IpBytes bytes;
  if (inet_pton(AF_INET6, room.data(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

bool is_ipv4(const IpBytes& bytes) noexcept {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), bytes.begin());
}

bool is_loopback(const IpBytes& bytes) noexcept {
  constexpr IpBytes ipv6_loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return bytes == ipv6_loopback || (is_ipv4(bytes) && bytes[mapped_prefix.size()] == 127);
}

bool is_loopback(const Address& address) noexcept {
  const auto bytes = ip_bytes(address);
  return bytes && is_loopback(*bytes);
}

std::string ip_text(const IpBytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool ipv4 = is_ipv4(bytes);
  const std::uint8_t* const start = bytes.data() + (ipv4 ? mapped_prefix.size() : 0);
  inet_ntop(ipv4 ? AF_INET : AF_INET6, start, text.data(), static_cast<socklen_t>(text.size()));
  return text.data();
}

Address to_address(const IpBytes& bytes, std::uint16_t port) noexcept {
  if (!is_ipv4(bytes)) return Address::ipv6(bytes, port);
  return Address::ipv4({bytes[12], bytes[13], bytes[14], bytes[15]}, port);
}

Result<IpRange> IpRange::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto bytes = parse_ip(text.substr(0, slash));
  if (!bytes) return fail(Errc::bad_input);
  const bool written_as_ipv4 = !text.substr(0, slash).contains(':');
  const unsigned before = written_as_ipv4 ? mapped_bits : 0;
  unsigned bits = 128 - before;
  if (slash != text.npos) {
    const std::string_view length = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
    const bool has_zeros = length.size() > 1 && length.front() == '0';
    if (error != std::errc() || end != length.data() + length.size() || has_zeros) {
      return fail(Errc::bad_input);
    }
    if (bits > 128 - before) return fail(Errc::bad_input);
  }
  bits += before;
  if (keep_bits(*bytes, bits) != *bytes) return fail(Errc::bad_input);
  return IpRange(*bytes, bits);
}

bool IpRange::contains(const IpBytes& bytes) const noexcept {
  return keep_bits(bytes, bits_) == prefix_;
}

IpBytes masked(const IpBytes& bytes, unsigned bits) noexcept {
  const unsigned before = is_ipv4(bytes) ? mapped_bits : 0;
  return keep_bits(bytes, std::min(bits + before, 128U));
}

IpBytes client_network(const Address& address) noexcept {
  const auto bytes = ip_bytes(address);
  if (!bytes) return {};
  return masked(*bytes, is_ipv4(*bytes) ? 32 : 64);
}

}  // namespace weir::os
