// The grammar of host[:port]: registered names, IPv4, IPv6 and future addresses.
#include "weir/http/syntax/detail/authority.hpp"

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/net/dns/detail/host_name.hpp"

namespace weir::http {
namespace {

/// True if `text` is "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ). A "," is rejected,
/// because it would look like a list.
bool is_future_address(std::string_view text) noexcept {
  if (text.empty() || to_lower(text.front()) != 'v') return false;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view version = text.substr(1, dot - 1);
  const std::string_view address = text.substr(dot + 1);
  if (version.empty() || !all_in(version, CharClass::hex) || address.empty()) return false;
  for (char each : address) {
    if (!is_in(each, CharClass::host) && each != ':') return false;
  }
  return true;
}

/// True if `text` starts with a "%HH" that a name may contain. The decoded byte must be neither a
/// control character nor a delimiter.
bool is_harmless_escape(std::string_view text) noexcept {
  if (text.size() < 3) return false;
  const int high = hex_value(text[1]);
  const int low = hex_value(text[2]);
  if (high < 0 || low < 0) return false;
  const int byte = high * 16 + low;
  return byte >= 0x80 || is_in(static_cast<char>(byte), CharClass::host);
}

/// Returns the length of the registered name or IPv4 address at the start of `text`.
std::size_t registered_name_length(std::string_view text) noexcept {
  std::size_t length = 0;
  while (length < text.size()) {
    if (is_in(text[length], CharClass::host)) {
      ++length;
    } else if (text[length] == '%' && is_harmless_escape(text.substr(length))) {
      length += 3;
    } else {
      break;
    }
  }
  return length;
}

/// Returns the length of the bracketed address at the start of `text`, or 0 if there is none.
std::size_t literal_length(std::string_view text) noexcept {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return 0;
  const std::string_view address = text.substr(1, close - 1);
  return is_ipv6_address(address) || is_future_address(address) ? close + 1 : 0;
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) noexcept {
  const std::size_t length =
      text.starts_with('[') ? literal_length(text) : registered_name_length(text);
  if (length == 0) return std::nullopt;
  Authority authority{text.substr(0, length), std::nullopt};
  std::string_view rest = text.substr(length);
  if (rest.empty()) return authority;
  if (rest.front() != ':') return std::nullopt;
  rest.remove_prefix(1);
  std::uint32_t port = 0;
  for (char each : rest) {
    if (!is_in(each, CharClass::digit)) return std::nullopt;
    port = port * 10 + static_cast<std::uint32_t>(each - '0');
    if (port > 65535) return std::nullopt;
  }
  if (!rest.empty()) authority.port = static_cast<std::uint16_t>(port);
  return authority;
}

bool is_ipv4_address(std::string_view text) noexcept {
  for (int octet = 0; octet < 4; ++octet) {
    if (octet > 0) {
      if (!text.starts_with('.')) return false;
      text.remove_prefix(1);
    }
    std::size_t digits = 0;
    int value = 0;
    while (digits < text.size() && digits < 3 && is_in(text[digits], CharClass::digit)) {
      value = value * 10 + (text[digits++] - '0');
    }
    if (digits == 0 || value > 255 || (digits > 1 && text[0] == '0')) return false;
    text.remove_prefix(digits);
  }
  return text.empty();
}

bool is_ipv6_address(std::string_view text) noexcept {
  int groups = 0;
  bool gap = text.starts_with("::");
  if (gap) text.remove_prefix(2);
  while (!text.empty()) {
    std::size_t digits = 0;
    while (digits < text.size() && is_in(text[digits], CharClass::hex)) ++digits;
    if (digits < text.size() && text[digits] == '.') {
      if (!is_ipv4_address(text)) return false;
      groups += 2;
      break;
    }
    if (digits == 0 || digits > 4) return false;
    ++groups;
    text.remove_prefix(digits);
    if (text.empty()) break;
    if (text.front() != ':') return false;
    text.remove_prefix(1);
    if (text.starts_with(':')) {
      if (gap) return false;
      gap = true;
      text.remove_prefix(1);
    } else if (text.empty()) {
      return false;
    }
  }
  return gap ? groups <= 7 : groups == 8;
}

namespace {

/// The parts of an origin with the scheme http or https.
struct Origin {
  bool is_https;
  Authority authority;

  std::uint16_t default_port() const noexcept { return is_https ? 443 : 80; }
  std::uint16_t port() const noexcept { return authority.port.value_or(default_port()); }
};

std::optional<Origin> parse_origin(std::string_view text) noexcept {
  constexpr std::string_view mark = "://";
  const std::size_t scheme_size = text.find(mark);
  if (scheme_size == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = text.substr(0, scheme_size);
  const bool is_https = equals_ignoring_case(scheme, "https");
  if (!is_https && !equals_ignoring_case(scheme, "http")) return std::nullopt;
  const std::optional<Authority> authority =
      parse_authority(text.substr(scheme_size + mark.size()));
  if (!authority) return std::nullopt;
  return Origin{is_https, *authority};
}

}  // namespace

bool is_same_host(std::string_view origin, std::string_view authority, bool secure) noexcept {
  const std::optional<Origin> page = parse_origin(origin);
  const std::optional<Authority> own = parse_authority(authority);
  return page && own && (page->is_https || !secure) &&
         dns::equal_hosts(page->authority.host, own->host) &&
         page->port() == own->port.value_or(page->default_port());
}

bool is_same_authority(std::string_view left, std::string_view right,
                       std::uint16_t default_port) noexcept {
  if (equals_ignoring_case(left, right)) return true;
  const std::optional<Authority> a = parse_authority(left);
  const std::optional<Authority> b = parse_authority(right);
  return a && b && a->port.value_or(default_port) == b->port.value_or(default_port) &&
         dns::equal_hosts(a->host, b->host);
}

bool is_same_origin(std::string_view left, std::string_view right) noexcept {
  if (equals_ignoring_case(left, right)) return true;
  const std::optional<Origin> a = parse_origin(left);
  const std::optional<Origin> b = parse_origin(right);
  return a && b && a->is_https == b->is_https && a->port() == b->port() &&
         dns::equal_hosts(a->authority.host, b->authority.host);
}

}  // namespace weir::http
