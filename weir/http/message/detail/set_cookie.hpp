// The grammar of Set-Cookie headers: their parser (RFC 6265 §5.1.1, §5.2), and prefixes of names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::http {

/// A Set-Cookie header in parts, which are views of its text. HttpOnly means nothing to a client
/// without scripts.
struct ParsedSetCookie {
  std::string_view name;
  std::string_view value;
  std::string_view domain;          ///< the Domain without a dot before it; empty if there is none
  std::string_view path;            ///< the Path; empty if there is none that starts with '/'
  std::optional<Duration> max_age;  ///< the Max-Age, which may be negative
  std::optional<WallTime> expires;  ///< the Expires
  bool secure = false;
};

/// Parses a Set-Cookie header. An attribute that is unknown, malformed or longer than 1024 bytes is
/// ignored. The last of two attributes with one name counts.
/// Returns: nullopt for a text with a control character, or without a name before a '='.
std::optional<ParsedSetCookie> parse_set_cookie(std::string_view text) noexcept;

/// Parses the date of an Expires attribute, whose forms RFC 6265 §5.1.1 lists. A time that a
/// WallTime cannot hold becomes the nearest one that it can.
/// Returns: nullopt for a text that is no date.
std::optional<WallTime> parse_cookie_date(std::string_view text) noexcept;

/// The promise that a cookie's name makes by its prefix (RFC 6265bis §4.1.3). A client ignores a
/// cookie that breaks it.
enum class CookiePrefix : std::uint8_t {
  none,
  secure,  ///< "__Secure-": it has Secure
  host,    ///< "__Host-": it has Secure and "Path=/", and no Domain
};

/// Returns the prefix of a name, whose letter case means nothing.
CookiePrefix cookie_prefix(std::string_view name) noexcept;

}  // namespace weir::http
