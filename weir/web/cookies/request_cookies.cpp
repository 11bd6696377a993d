#include "weir/web/cookies/request_cookies.hpp"

#include <algorithm>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// Takes the next pair of a Cookie header.
/// Returns: false at the end.
bool take_cookie(std::string_view& rest, RequestCookie& cookie) noexcept {
  while (!rest.empty()) {
    std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    while (!part.empty() && is_space(part.front())) part.remove_prefix(1);
    const std::size_t equals = part.find('=');
    if (equals == part.npos || equals == 0) continue;
    cookie.name = part.substr(0, equals);
    cookie.value = trim(part.substr(equals + 1));
    const std::string_view value = cookie.value;
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      cookie.value = value.substr(1, value.size() - 2);
    }
    return true;
  }
  return false;
}

}  // namespace

RequestCookies::Iterator& RequestCookies::Iterator::operator++() noexcept {
  while (!take_cookie(rest_, current_)) {
    if (next_header_ == head_->header_count()) {
      head_ = nullptr;
      break;
    }
    const HeaderField header = head_->header_at(next_header_++);
    if (equals_ignoring_case(header.name, "Cookie")) rest_ = header.value;
  }
  return *this;
}

std::optional<std::string_view> RequestCookies::find(std::string_view name) const noexcept {
  for (const RequestCookie& each : *this) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

}  // namespace weir::http
