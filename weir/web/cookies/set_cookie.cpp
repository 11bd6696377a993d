#include "weir/web/cookies/set_cookie.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/message/detail/set_cookie.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

class Category final : public StatusCategory {
 public:
  const char* name() const noexcept override { return "weir.http.cookie"; }
  std::string message(int value) const override {
    switch (static_cast<CookieError>(value)) {
      case CookieError::bad_name:
        return "cookie: the name is not a token";
      case CookieError::bad_value:
        return "cookie: the value has a byte that a cookie cannot have (encode it)";
      case CookieError::bad_domain:
        return "cookie: the domain is not a host name";
      case CookieError::bad_path:
        return "cookie: the path does not begin with '/', or has a control character or ';'";
      case CookieError::too_long:
        return "cookie: name and value have more than 4096 bytes, or domain or path more than 1024";
      case CookieError::needs_secure:
        return "cookie: its prefix, SameSite=None or Partitioned needs Secure";
      case CookieError::host_prefix_is_wider:
        return "cookie: a name with __Host- allows no domain, and only the path /";
    }
    return "cookie: unknown error";
  }
  Status status_of(int) const noexcept override { return Status::internal_error; }
};

/// RFC 6265 §4.1.1: cookie-octet.
constexpr bool is_cookie_octet(char character) noexcept {
  return character > ' ' && character < '\x7f' && character != '"' && character != ',' &&
         character != ';' && character != '\\';
}

bool is_valid_path(std::string_view path) noexcept {
  return path.starts_with('/') && std::ranges::all_of(path, [](char each) {
           return each >= ' ' && each < '\x7f' && each != ';';
         });
}

/// Returns true for labels of letters, digits and inner '-', separated by dots.
bool is_valid_domain(std::string_view domain) noexcept {
  constexpr std::size_t label_bytes_max = 63;
  while (true) {
    const std::string_view label = domain.substr(0, domain.find('.'));
    if (label.empty() || label.size() > label_bytes_max || label.front() == '-' ||
        label.back() == '-') {
      return false;
    }
    for (const char each : label) {
      const char lower = to_lower(each);
      if (each != '-' && !is_in(each, CharClass::digit) && (lower < 'a' || lower > 'z')) {
        return false;
      }
    }
    if (label.size() == domain.size()) return true;
    domain.remove_prefix(label.size() + 1);
  }
}

Result<> check(const SetCookie& cookie) {
  if (!is_token(cookie.name)) return fail(CookieError::bad_name);
  if (!std::ranges::all_of(cookie.value, is_cookie_octet)) return fail(CookieError::bad_value);
  if (cookie.name.size() + cookie.value.size() > SetCookie::bytes_max ||
      cookie.domain.size() > SetCookie::attribute_bytes_max ||
      cookie.path.size() > SetCookie::attribute_bytes_max) {
    return fail(CookieError::too_long);
  }
  if (!cookie.domain.empty() && !is_valid_domain(cookie.domain)) {
    return fail(CookieError::bad_domain);
  }
  if (!is_valid_path(cookie.path)) return fail(CookieError::bad_path);
  const CookiePrefix prefix = cookie_prefix(cookie.name);
  const bool needs_secure =
      prefix != CookiePrefix::none || cookie.partitioned || cookie.same_site == SameSite::none;
  if (needs_secure && !cookie.secure) return fail(CookieError::needs_secure);
  if (prefix == CookiePrefix::host && (!cookie.domain.empty() || cookie.path != "/")) {
    return fail(CookieError::host_prefix_is_wider);
  }
  return {};
}

std::string_view name_of(SameSite same_site) noexcept {
  switch (same_site) {
    case SameSite::strict:
      return "Strict";
    case SameSite::lax:
      return "Lax";
    case SameSite::none:
      break;
  }
  return "None";
}

void append_attribute(std::string& text, std::string_view name, std::string_view value) {
  text.append("; ").append(name).append("=").append(value);
}

/// Writes a valid cookie.
std::string written(const SetCookie& cookie) {
  std::string text;
  text.reserve(cookie.name.size() + cookie.value.size() + cookie.path.size() +
               cookie.domain.size() + 128);
  text.append(cookie.name).append("=").append(cookie.value);
  if (cookie.max_age) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*cookie.max_age).count();
    append_attribute(text, "Max-Age", std::to_string(seconds));
  }
  if (cookie.expires) append_attribute(text, "Expires", Date(*cookie.expires).text());
  append_attribute(text, "Path", cookie.path);
  if (!cookie.domain.empty()) append_attribute(text, "Domain", cookie.domain);
  append_attribute(text, "SameSite", name_of(cookie.same_site));
  if (cookie.secure) text.append("; Secure");
  if (cookie.http_only) text.append("; HttpOnly");
  if (cookie.partitioned) text.append("; Partitioned");
  return text;
}

}  // namespace

const StatusCategory& cookie_error_category() noexcept {
  static const Category category;
  return category;
}

Result<std::string> to_header(const SetCookie& cookie) {
  WEIR_TRY(check(cookie));
  return written(cookie);
}

Result<> set_cookie(Response& response, const SetCookie& cookie) {
  WEIR_TRY(const std::string text, to_header(cookie));
  response.add_header("Set-Cookie", text);
  return {};
}

Result<> remove_cookie(Response& response, SetCookie cookie) {
  cookie.value.clear();
  cookie.max_age = Duration::zero();
  cookie.expires = WallTime();  // for clients without Max-Age
  return set_cookie(response, cookie);
}

}  // namespace weir::http
