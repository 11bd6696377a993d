#include "weir/web/middleware/detail/forwarded.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/os/ip_range.hpp"

namespace weir::http {
namespace {

/// Takes the last element of a list off, without its white space.
std::string_view take_last(std::string_view& list) noexcept {
  bool quoted = false;
  for (std::size_t index = list.size(); index-- > 0;) {
    if (list[index] == '"') quoted = !quoted;
    if (quoted || list[index] != ',') continue;
    const std::string_view element = list.substr(index + 1);
    list = list.substr(0, index);
    return trim(element);
  }
  const std::string_view element = list;
  list = {};
  return trim(element);
}

/// Takes a token off the front; empty if there is none.
std::string_view take_token(std::string_view& text) noexcept {
  std::size_t size = 0;
  while (size < text.size() && is_in(text[size], CharClass::token)) ++size;
  const std::string_view token = text.substr(0, size);
  text.remove_prefix(size);
  return token;
}

/// Takes a token or a quoted text without escapes off the front.
std::optional<std::string_view> take_value(std::string_view& text) noexcept {
  if (!text.starts_with('"')) {
    const std::string_view token = take_token(text);
    return token.empty() ? std::nullopt : std::optional(token);
  }
  const std::size_t end = text.find('"', 1);
  if (end == text.npos) return std::nullopt;
  const std::string_view value = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return value.contains('\\') ? std::nullopt : std::optional(value);
}

std::string_view* part_of(ForwardedElement& element, std::string_view name) noexcept {
  if (equals_ignoring_case(name, "for")) return &element.client;
  if (equals_ignoring_case(name, "proto")) return &element.scheme;
  return equals_ignoring_case(name, "host") ? &element.host : nullptr;
}

/// Parses ":4711"; an empty text is no port.
std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  if (text.empty()) return port;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

bool LastElements::next_line() noexcept {
  while (next_header_ > 0) {
    const HeaderField field = head_.header_at(--next_header_);
    if (!equals_ignoring_case(field.name, name_)) continue;
    rest_ = field.value;
    return true;
  }
  return false;
}

std::optional<std::string_view> LastElements::next() noexcept {
  for (;;) {
    while (rest_.empty()) {
      if (!next_line()) return std::nullopt;
    }
    const std::string_view element = take_last(rest_);
    if (!element.empty()) return element;
  }
}

std::optional<ForwardedElement> parse_forwarded(std::string_view text) noexcept {
  ForwardedElement element;
  for (bool first = true; !text.empty(); first = false) {
    if (!first) {
      if (text.front() != ';') return std::nullopt;
      text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (text.empty() || text.front() == ';') continue;  // a pair may be absent
    const std::string_view name = take_token(text);
    if (name.empty() || !text.starts_with('=')) return std::nullopt;
    text.remove_prefix(1);
    const auto value = take_value(text);
    if (!value) return std::nullopt;
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    std::string_view* const part = part_of(element, name);
    if (part == nullptr) continue;
    if (!part->empty() || value->empty()) return std::nullopt;
    *part = *value;
  }
  return element;
}

std::optional<os::Address> parse_node(std::string_view text) noexcept {
  std::string_view address = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    address = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!address.contains(':')) return std::nullopt;
    if (!port.empty() && port.front() != ':') return std::nullopt;
  } else if (text.find(':') == text.rfind(':')) {
    address = text.substr(0, text.find(':'));
    port = text.substr(address.size());
  }
  const auto bytes = os::parse_ip(address);
  const auto number = parse_port(port);
  if (!bytes || !number) return std::nullopt;
  return os::to_address(*bytes, *number);
}

}  // namespace weir::http
