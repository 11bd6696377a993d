// The cookies that a client keeps (RFC 6265).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::http {

/// The limits of a CookieJar. Beyond a number, the jar drops the cookie that was not used for the
/// longest time; a Secure one only if there is no other.
struct CookieLimits {
  std::size_t cookies_max = 1000;           ///< number of cookies, 0 to keep none
  std::size_t cookies_per_domain_max = 50;  ///< number of cookies of one domain
  /// Bytes of a Set-Cookie header, and of a cookie with its domain and path. The jar ignores a
  /// longer one.
  std::size_t cookie_bytes_max = 4096;
  /// Bytes of the Cookie header of one request. The cookies with the shortest paths are left out.
  std::size_t header_bytes_max = 8 * 1024;
};

/// Stores the cookies of Set-Cookie headers, and chooses those of a request. A Client uses the jar
/// of ClientOptions::cookie_jar; clients of one core may share a jar.
///
/// A cookie without Domain returns only to the host that set it. The domain of a cookie must be its
/// host or a parent with a dot inside. Weir has no list of public suffixes: hosts below "co.uk" can
/// set cookies for each other. Use one jar for hosts that trust each other.
///
/// Secure cookies need https, to be set as well as to be sent. A response over plain http sets no
/// cookie that would replace a Secure cookie of its name, or be sent before it (RFC 6265bis §5.7).
/// This rule holds for two cookies whose domains are equal, or of which one domain is above the
/// other. The path of the new cookie must also equal the path of the Secure cookie, or be below it.
///
/// A cookie lives for at most 400 days. Cookies without Expires and Max-Age live as long as the
/// jar.
/// Threads: one core's.
class CookieJar {
 public:
  explicit CookieJar(const CookieLimits& limits = {}) noexcept : limits_(limits) {}

  /// Handles the value of a Set-Cookie header in a response from `url`. It replaces or removes the
  /// cookie of that name, domain and path.
  /// Returns: true if it has done so; false for a cookie that RFC 6265 or a limit makes it ignore.
  bool store(const Url& url, std::string_view set_cookie, WallTime now);

  /// Returns the value of the Cookie header of a request to `url`: the cookies with the longest
  /// paths first, then the oldest. Empty if no cookie belongs to the request.
  std::string header_for(const Url& url, WallTime now);

  /// Returns the number of cookies, including those that have expired and are not dropped yet.
  std::size_t size() const noexcept { return cookies_.size(); }
  /// Removes all cookies.
  void clear() noexcept { cookies_.clear(); }

 private:
  friend std::uint64_t memory_bound(const CookieLimits& limits) noexcept;

  struct Stored {
    std::string name;
    std::string value;
    std::string domain;  ///< in lower case
    std::string path;
    WallTime expires;
    std::uint64_t used = 0;  ///< number of the last use
    bool host_only = false;
    bool secure = false;
  };

  bool hides_secure_cookie(std::string_view name, std::string_view domain, std::string_view path,
                           WallTime now) const;
  void make_room(std::string_view domain, WallTime now);
  void drop_least_recent(std::string_view domain);

  CookieLimits limits_;
  std::vector<Stored> cookies_;  ///< the oldest first
  std::uint64_t uses_ = 0;
};

/// Returns an upper bound of the memory, in bytes, that a jar with these limits uses.
std::uint64_t memory_bound(const CookieLimits& limits) noexcept;

}  // namespace weir::http
