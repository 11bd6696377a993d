// SetCookie: a cookie of a response, with safe defaults (RFC 6265bis §4.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status_category.hpp"

namespace weir::http {

/// The requests of other sites with which a client sends a cookie.
enum class SameSite : std::uint8_t {
  strict,  ///< none
  lax,     ///< links, but not forms that POST
  none,    ///< all; the cookie must have Secure
};

/// The reason why a cookie cannot be set. Its to_status() is 500, since the program chose it.
enum class CookieError : std::uint8_t {
  bad_name = 1,  ///< the name is not a token
  bad_value,     ///< the value has a control character, space, '"', ',', ';', '\' or non-ASCII
  bad_domain,    ///< the domain is not a host name
  bad_path,      ///< the path does not begin with '/', or has a control character or ';'
  too_long,      ///< name and value have more than 4096 bytes, domain or path more than 1024
  needs_secure,  ///< "__Secure-", "__Host-", SameSite=None or Partitioned without Secure
  host_prefix_is_wider  ///< "__Host-" with a domain, or with another path than "/"
};

/// Returns the category of CookieError; its name is "weir.http.cookie".
const StatusCategory& cookie_error_category() noexcept;
inline std::error_code make_error_code(CookieError error) noexcept {
  return {static_cast<int>(error), cookie_error_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::CookieError> : std::true_type {};

namespace weir::http {

/// A cookie that a response sets. The defaults are the safe ones: scripts cannot read it, it
/// travels over TLS only, other sites cannot send it with a POST, and it returns to this host only.
/// A name that begins with "__Host-" makes the client check that no other host of the domain has
/// set the cookie.
struct SetCookie {
  static constexpr std::size_t bytes_max = 4096;            ///< bytes of name and value
  static constexpr std::size_t attribute_bytes_max = 1024;  ///< bytes of domain and of path

  std::string name;
  std::string value = {};
  /// The time after which the client drops the cookie; at least a second. Without it and `expires`,
  /// the client drops the cookie when it ends its session.
  std::optional<Duration> max_age = std::nullopt;
  std::optional<WallTime> expires = std::nullopt;  ///< a date; a client prefers `max_age`
  std::string path = "/";                          ///< the cookie returns to paths below this one
  /// A host whose sub-domains also get the cookie; empty for this host only.
  std::string domain = {};
  SameSite same_site = SameSite::lax;
  bool secure = true;        ///< true if the cookie travels over TLS only, or to localhost
  bool http_only = true;     ///< true if scripts cannot read the cookie
  bool partitioned = false;  ///< true if each top-level site has a cookie of its own (CHIPS)
};

/// Returns the value of the Set-Cookie header.
/// Errors: a CookieError.
Result<std::string> to_header(const SetCookie& cookie);

/// Adds the cookie to a response.
/// Errors: a CookieError; the response is unchanged then.
Result<> set_cookie(Response& response, const SetCookie& cookie);

/// Makes the client drop a cookie. Name, path and domain are those with which it was set; the value
/// and the times do not matter.
/// Errors: a CookieError; the response is unchanged then.
Result<> remove_cookie(Response& response, SetCookie cookie);

}  // namespace weir::http
