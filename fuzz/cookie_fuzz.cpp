// Stores any bytes as Set-Cookie headers, one in each line. A jar keeps its limits, and sends only
// valid headers, no expired cookies and none of another host.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/client/cookie_jar.hpp"
#include "weir/http/message/detail/set_cookie.hpp"
#include "weir/http/message/headers.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using weir::http::CookieJar;
using weir::http::CookieLimits;
using weir::http::Url;

void check_parts(std::string_view line) {
  const auto cookie = weir::http::parse_set_cookie(line);
  if (!cookie) return;
  require(!cookie->name.empty());
  require(weir::http::is_valid_header("Cookie", cookie->name));
  require(weir::http::is_valid_header("Cookie", cookie->value));
  require(cookie->name.find_first_of("=;") == std::string_view::npos);
  require(cookie->value.find(';') == std::string_view::npos);
  require(cookie->path.empty() || cookie->path.front() == '/');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  static const Url site = *Url::parse("http://www.a.test/dir/page");
  static const Url secure = *Url::parse("https://www.a.test/dir/page");
  static const Url sibling = *Url::parse("http://sub.www.a.test/dir/page");
  static const Url stranger = *Url::parse("http://b.test/dir/page");
  const weir::WallTime now(std::chrono::seconds(1'000'000'000));
  CookieLimits limits;
  limits.cookies_max = 8;
  limits.cookies_per_domain_max = 4;
  limits.cookie_bytes_max = 256;
  limits.header_bytes_max = 512;
  CookieJar jar(limits);
  while (!rest.empty()) {
    const std::string_view taken = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(taken.size() < rest.size() ? taken.size() + 1 : rest.size());
    const ExactCopy line(taken);
    check_parts(line.view());
    jar.store(taken.size() % 2 == 0 ? site : secure, line.view(), now);
    require(jar.size() <= limits.cookies_max);
  }
  for (const Url& url : {site, secure, sibling}) {
    const std::string header = jar.header_for(url, now);
    require(header.size() <= limits.header_bytes_max);
    require(weir::http::is_valid_header("Cookie", header));
  }
  require(jar.header_for(stranger, now).empty());
  const weir::WallTime later = now + std::chrono::days(401);
  const std::string session = jar.header_for(site, later);
  require(jar.header_for(site, later) == session);
  return 0;
}
