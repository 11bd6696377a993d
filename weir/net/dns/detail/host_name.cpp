#include "weir/net/dns/detail/host_name.hpp"

#include <algorithm>
#include <array>

#include "weir/base/text/detail/ascii_case.hpp"
#include "weir/os/ip_range.hpp"

namespace weir::dns {
namespace {

constexpr std::size_t name_bytes_max = 253;
constexpr std::size_t label_bytes_max = 63;

bool is_digit(char each) noexcept {
  return each >= '0' && each <= '9';
}

bool is_label_character(char each) noexcept {
  return (each >= 'a' && each <= 'z') || is_digit(each) || each == '-' || each == '_';
}

bool is_label(std::string_view label) noexcept {
  return !label.empty() && label.size() <= label_bytes_max && label.front() != '-' &&
         label.back() != '-' && std::ranges::all_of(label, is_label_character);
}

}  // namespace

Result<HostName> parse_host_name(std::string_view text) {
  HostName name;
  if (text.ends_with('.')) {
    name.absolute = true;
    text.remove_suffix(1);
  }
  if (text.size() > name_bytes_max) return fail(Errc::bad_input);
  name.text = lower_case(text);
  std::string_view rest = name.text;
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (!is_label(label)) return fail(Errc::bad_input);
    if (dot == std::string_view::npos) {
      if (std::ranges::all_of(label, is_digit)) return fail(Errc::bad_input);
      return name;
    }
    rest.remove_prefix(dot + 1);
  }
}

std::optional<Endpoint> parse_ip_address(std::string_view text, std::uint16_t port) {
  if (text.empty()) return std::nullopt;
  std::string with_port(text);
  const bool bracketed = text.front() == '[';
  if (!bracketed && text.find(':') != std::string_view::npos) {
    with_port.insert(0, 1, '[').push_back(']');
  }
  const auto address = Endpoint::parse(with_port.append(":0"));
  if (!address) return std::nullopt;
  return address->with_port(port);
}

std::string normal_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  // An interface of this machine is no part of the peer's name (RFC 6874 §1).
  const bool has_colon = host.find(':') != std::string_view::npos;
  const std::string_view address = has_colon ? host.substr(0, host.find('%')) : host;
  if (const auto bytes = os::parse_ip(address)) return os::ip_text(*bytes);
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return lower_case(host);
}

bool is_local_host(std::string_view text) noexcept {
  return text == "localhost" || text.ends_with(".localhost");
}

Endpoint local_host_address(Family family) noexcept {
  if (family == Family::ipv4) return Endpoint::loopback(0);
  std::array<std::uint8_t, 16> loopback{};
  loopback.back() = 1;
  return Endpoint::ipv6(loopback, 0);
}

}  // namespace weir::dns
