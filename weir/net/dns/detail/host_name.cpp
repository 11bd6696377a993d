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

std::string_view without_brackets(std::string_view host) noexcept {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

/// Returns the address that a host is; nullopt for a name.
std::optional<os::IpBytes> ip_of(std::string_view host) noexcept {
  host = without_brackets(host);
  // A zone is an interface of this machine, and no part of the peer's name (RFC 6874 §1).
  if (host.find(':') != std::string_view::npos) return os::parse_ip(host.substr(0, host.find('%')));
  return host.empty() || !is_digit(host.front()) ? std::nullopt : os::parse_ip(host);
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
  if (const auto bytes = ip_of(host)) return os::ip_text(*bytes);
  return lower_case(without_root(without_brackets(host)));
}

bool equal_hosts(std::string_view left, std::string_view right) noexcept {
  const auto equal = [](char a, char b) { return to_lower(a) == to_lower(b); };
  left = without_root(without_brackets(left));
  right = without_root(without_brackets(right));
  if (std::ranges::equal(left, right, equal)) return true;
  // Only an IPv6 address has several forms.
  if (left.find(':') == left.npos && right.find(':') == right.npos) return false;
  const auto address = ip_of(left);
  return address && address == ip_of(right);
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
