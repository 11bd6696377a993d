#include "weir/net/detail/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "weir/os/ip_range.hpp"

namespace weir {
namespace {

using Kind = ProxyHeaderResult::Kind;

constexpr std::string_view text_start = "PROXY ";
constexpr std::string_view text_shortest = "PROXY UNKNOWN\r\n";
constexpr std::size_t text_size_max = 107;
constexpr std::array<char, 12> signature{'\r', '\n', '\r', '\n', '\0', '\r',
                                         '\n', 'Q',  'U',  'I',  'T',  '\n'};
constexpr std::size_t binary_fixed = 16;

ProxyHeaderResult missing(std::size_t bytes) noexcept {
  return {Kind::need_more, bytes, {}};
}

ProxyHeaderResult complete(std::size_t size, const ProxyHeader& header = {}) noexcept {
  return {Kind::complete, size, header};
}

/// Takes the text before the next space, and the space. Returns false if there is none.
bool take_word(std::string_view& rest, std::string_view& word) noexcept {
  const std::size_t space = rest.find(' ');
  if (space == std::string_view::npos) return false;
  word = rest.substr(0, space);
  rest.remove_prefix(space + 1);
  return true;
}

std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const bool canonical = !text.empty() && text.front() >= '0' && text.front() <= '9' &&
                         (text.front() != '0' || text.size() == 1);
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  if (!canonical || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return port;
}

/// Returns an address of this family.
std::optional<os::Address> address_of(std::string_view text, std::string_view port,
                                      bool ipv6) noexcept {
  const auto bytes = os::parse_ip(text);
  const auto number = port_of(port);
  const bool written_as_ipv6 = text.find(':') != std::string_view::npos;
  if (!bytes || !number || written_as_ipv6 != ipv6) return std::nullopt;
  return os::to_address(*bytes, *number);
}

/// Parses a line without its end (version 1).
ProxyHeaderResult parse_line(std::string_view line, std::size_t size) noexcept {
  std::string_view rest = line.substr(text_start.size());
  if (rest == "UNKNOWN" || rest.starts_with("UNKNOWN ")) return complete(size);
  std::string_view family;
  std::string_view source;
  std::string_view destination;
  std::string_view port;
  const bool split = take_word(rest, family) && take_word(rest, source) &&
                     take_word(rest, destination) && take_word(rest, port);
  const bool ipv6 = family == "TCP6";
  if (!split || (!ipv6 && family != "TCP4")) return {};
  const auto from = address_of(source, port, ipv6);
  const auto to = address_of(destination, rest, ipv6);
  if (!from || !to) return {};
  return complete(size, {*from, *to});
}

ProxyHeaderResult parse_text(std::string_view input) noexcept {
  const std::size_t end = input.substr(0, text_size_max).find('\n');
  if (end != std::string_view::npos) {
    if (input[end - 1] != '\r') return {};
    return parse_line(input.substr(0, end - 1), end + 1);
  }
  if (input.size() >= text_size_max) return {};
  if (input.size() < text_shortest.size()) return missing(text_shortest.size() - input.size());
  return missing(input.back() == '\r' ? 1 : 2);
}

/// Returns the address at `at`, with the port at `port_at`.
os::Address binary_address(std::string_view block, bool ipv6, std::size_t at,
                           std::size_t port_at) noexcept {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(block[index]); };
  const auto port = static_cast<std::uint16_t>(byte(port_at) << 8 | byte(port_at + 1));
  if (ipv6) {
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), block.data() + at, bytes.size());
    return os::Address::ipv6(bytes, port);
  }
  return os::Address::ipv4({byte(at), byte(at + 1), byte(at + 2), byte(at + 3)}, port);
}

/// Parses version 2.
ProxyHeaderResult parse_binary(std::string_view input) noexcept {
  if (input.size() < binary_fixed) return missing(binary_fixed - input.size());
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(input[index]); };
  const unsigned version = byte(12) >> 4;
  const unsigned command = byte(12) & 0x0F;
  const unsigned family = byte(13) >> 4;
  const unsigned transport = byte(13) & 0x0F;
  const std::size_t length = std::size_t{byte(14)} << 8 | byte(15);
  const std::size_t size = binary_fixed + length;
  constexpr std::array<std::size_t, 4> address_bytes{0, 12, 36, 216};
  if (version != 2 || command > 1 || family > 3 || transport > 2) return {};
  if (size > ProxyHeader::size_max) return {};
  const bool proxied = command == 1;
  if (proxied && length < address_bytes[family]) return {};
  if (input.size() < size) return missing(size - input.size());
  const bool is_tcp = transport == 1 && (family == 1 || family == 2);
  if (!proxied || !is_tcp) return complete(size);
  const std::string_view block = input.substr(binary_fixed, length);
  const bool ipv6 = family == 2;
  const std::size_t width = ipv6 ? 16 : 4;
  return complete(size, {binary_address(block, ipv6, 0, 2 * width),
                         binary_address(block, ipv6, width, 2 * width + 2)});
}

}  // namespace

ProxyHeaderResult parse_proxy_header(Bytes input) noexcept {
  const std::string_view text = to_text(input);
  if (text.empty()) return missing(text_shortest.size());
  const std::string_view binary(signature.data(), signature.size());
  if (text.front() == binary.front()) {
    const std::size_t known = std::min(text.size(), binary.size());
    if (text.substr(0, known) != binary.substr(0, known)) return {};
    return parse_binary(text);
  }
  const std::size_t known = std::min(text.size(), text_start.size());
  if (text.substr(0, known) != text_start.substr(0, known)) return {};
  return parse_text(text);
}

}  // namespace weir
