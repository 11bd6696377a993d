// URLs, their addresses, and requests for them.
#include "tools/weir/url.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/timeout.hpp"

namespace weir::bench {
namespace {

constexpr Duration reaching_max = std::chrono::seconds(2);  // limit for one address of several

}  // namespace

Result<Url> parse_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return fail(Errc::bad_input);
  const std::string_view scheme = text.substr(0, colon);
  const bool secure = http::equals_ignoring_case(scheme, "https");
  if (!secure && !http::equals_ignoring_case(scheme, "http")) return fail(Errc::unsupported);
  http::Target parts;
  if (http::parse_target(http::Method::get, text, parts) != http::ParseError::none ||
      parts.form != http::TargetForm::absolute) {
    return fail(Errc::bad_input);
  }
  const auto authority = http::parse_authority(parts.authority);
  if (!authority) return fail(Errc::bad_input);
  Url url;
  url.secure = secure;
  url.authority = parts.authority;
  url.host = authority->host;
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  url.port = authority->port.value_or(secure ? 443 : 80);
  url.path_and_query = parts.path.empty() ? "/" : std::string(parts.path);
  if (parts.has_query) url.path_and_query.append("?").append(parts.query);
  return url;
}

Result<std::vector<Endpoint>> resolve(const Url& url) {
  // RFC 6761 §6.3: localhost resolves to loopback, even without a hosts file.
  if (dns::equal_hosts(url.host, "localhost")) {
    constexpr std::array<std::uint8_t, 16> ipv6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return std::vector<Endpoint>{Endpoint::ipv6(ipv6, url.port), Endpoint::loopback(url.port)};
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(url.port);
  if (::getaddrinfo(url.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return fail(Errc::not_found);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    const auto* bytes = reinterpret_cast<const char*>(each->ai_addr);
    std::copy(bytes, bytes + each->ai_addrlen, static_cast<char*>(endpoint.buffer()));
    endpoint.set_size(each->ai_addrlen);
  }
  return endpoints;
}

Task<Endpoint> first_reachable(std::vector<Endpoint> endpoints) {
  for (const Endpoint& endpoint : endpoints) {
    const auto stream = co_await timeout(reaching_max, tcp::connect(endpoint));
    if (stream) co_return endpoint;
  }
  co_return endpoints.front();
}

Result<std::string> make_request(const Url& url, const RequestOptions& options) {
  if (!http::is_token(options.method)) return fail(Errc::bad_input);
  std::string headers;
  bool has_host = false;
  bool has_length = false;
  for (const std::string& header : options.headers) {
    const std::string_view text = header;
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || !http::is_token(text.substr(0, colon)) ||
        !http::all_in(text.substr(colon + 1), http::CharClass::value)) {
      return fail(Errc::bad_input);
    }
    has_host |= http::equals_ignoring_case(text.substr(0, colon), "host");
    if (http::equals_ignoring_case(text.substr(0, colon), "content-length")) {
      const std::string_view value = http::trim(text.substr(colon + 1));
      if (has_length || value != std::to_string(options.body.size())) return fail(Errc::bad_input);
      has_length = true;
    }
    headers.append(text).append("\r\n");
  }
  std::string request = options.method + " " + url.path_and_query + " HTTP/1.1\r\n";
  if (!has_host) request += "Host: " + url.authority + "\r\n";
  request += headers;
  if (options.close) request += "Connection: close\r\n";
  const bool wants_length =
      !options.body.empty() || http::expects_content(http::method_of(options.method));
  if (wants_length && !has_length) {
    request += "Content-Length: " + std::to_string(options.body.size()) + "\r\n";
  }
  return request + "\r\n" + options.body;
}

}  // namespace weir::bench
