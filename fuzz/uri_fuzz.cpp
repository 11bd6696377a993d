// Parses any bytes as a target, an authority, a URL, a reference, a query and a form, and checks
// accepted results.
#include <arpa/inet.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/message/detail/urlencoded.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/http/syntax/url.hpp"

namespace {

using weir::fuzz::require;
using weir::http::Method;
using weir::http::ParseError;
using weir::http::Target;

void check_target(Method method, std::string_view text) {
  Target target;
  if (parse_target(method, text, target) != ParseError::none) return;
  for (char each : text) require(each > ' ' && each < '\x7f' && each != '#');
  if (target.form != weir::http::TargetForm::authority) {
    const weir::http::Segments segments(target.path);
    for (auto each = segments.begin(); each != segments.end(); ++each) {
      const std::string decoded = each.decoded();
      require(decoded != "." && decoded != ".." && decoded.find('\0') == std::string::npos);
    }
    require(weir::http::percent_decode(target.path).has_value());
    require(target.path.find('\\') == std::string_view::npos);
    require(target.path_has_escapes == (target.path.find('%') != std::string_view::npos));
    require(target.has_query || target.query.empty());
  }
  if (!target.authority.empty()) require(weir::http::parse_authority(target.authority).has_value());
}

bool is_address(int family, const std::string& text) {
  in6_addr parsed{};
  return text.find('\0') == text.npos && ::inet_pton(family, text.c_str(), &parsed) == 1;
}

/// Compares the parsers of addresses with those of the C library. A literal in brackets is an IPv6
/// address or an IPvFuture address (RFC 3986 §3.2.2), such as "v1.a".
void check_addresses(const std::string& text) {
  require(weir::http::is_ipv4_address(text) == is_address(AF_INET, text));
  require(weir::http::is_ipv6_address(text) == is_address(AF_INET6, text));
  const auto authority = weir::http::parse_authority("[" + text + "]");
  if (is_address(AF_INET6, text)) require(authority.has_value());
  if (!authority || is_address(AF_INET6, text)) return;
  const std::size_t dot = text.find('.');
  require((text[0] == 'v' || text[0] == 'V') && dot != text.npos && dot + 1 < text.size());
  const std::string version = text.substr(1, dot - 1);
  require(!version.empty() && version.find_first_not_of("0123456789abcdefABCDEF") == version.npos);
}

/// Checks that a URL consists of its parts and that parsing it again changes nothing.
void check_parts(const weir::http::Url& url) {
  const auto again = weir::http::Url::parse(url.text());
  require(again.has_value() && *again == url && again->port() == url.port());
  std::string text(url.scheme());
  text.append("://").append(url.authority());
  require(text == url.origin());
  text.append(url.path());
  if (url.has_query()) text.append("?").append(url.query());
  require(text == url.text() && text == std::string(url.origin()).append(url.target()));
  require(url.port() != 0 && !url.host().empty() && url.path().starts_with('/'));
  for (char each : text) require(each > ' ' && each < '\x7f' && each != '#');
}

/// Checks URLs and references. A reference that is a URL resolves to that URL.
void check_url(std::string_view text) {
  static const weir::http::Url base = *weir::http::Url::parse("http://a.test:81/b/c?d");
  const auto url = weir::http::Url::parse(text);
  const auto resolved = base.resolve(text);
  if (url) check_parts(*url);
  if (resolved) check_parts(*resolved);
  if (url) require(resolved.has_value() && *resolved == *url);
  const std::string segment = weir::http::encode_segment(text);
  require(weir::http::percent_decode(segment) == text);
  const bool rejected = segment == "." || segment == ".." || text.find('\0') != text.npos;
  if (segment.size() > 4096 || rejected) return;
  const auto below = base.resolve("./" + segment);
  require(below.has_value() && below->origin() == base.origin());
  require(below->path() == "/b/" + segment && !below->has_query());
}

/// Returns the method that the first byte chooses, so that the fuzzer reaches every form.
Method method_of_byte(std::uint8_t byte) {
  constexpr std::array methods{Method::get, Method::options, Method::connect, Method::other};
  return methods[byte % methods.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The address sanitizer reports a read beyond the end of this copy.
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_target(method_of_byte(data[0]), text);
  if (const auto authority = weir::http::parse_authority(text)) {
    require(!authority->host.empty() && text.starts_with(authority->host));
    require(text.find_first_of("/?#@ ,") == std::string::npos);
  }
  check_addresses(text);
  check_url(text);
  std::string decoded(text);
  const auto length = weir::http::percent_decode(decoded, decoded.data());
  const auto separate = weir::http::percent_decode(text);
  require(length.has_value() == separate.has_value());
  if (length) require(decoded.substr(0, *length) == *separate);
  weir::http::UrlencodedPairs query(text);
  for (std::size_t pairs = 0;; ++pairs) {
    require(pairs <= size);
    if (!query.next()) break;
  }
  return 0;
}
