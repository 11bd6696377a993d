#include "weir/http/client/detail/proxy.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// Returns true if `host` is the host `name` or below it.
bool matches(std::string_view host, std::string_view name) noexcept {
  if (name == "*") return true;
  if (name.starts_with('.')) name.remove_prefix(1);
  if (name.empty() || host.size() < name.size()) return false;
  const std::size_t start = host.size() - name.size();
  const bool whole_labels = start == 0 || host[start - 1] == '.';
  return whole_labels && equals_ignoring_case(host.substr(start), name);
}

/// Returns host:port, also for the default port (RFC 9112 §3.2.3).
std::string target_of(const Url& url) {
  const bool is_literal = url.host().find(':') != url.host().npos;
  std::string target = is_literal ? "[" + std::string(url.host()) + "]" : std::string(url.host());
  return target.append(":").append(std::to_string(url.port()));
}

std::string connect_request(const Url& url, const ProxyOptions& proxy) {
  const std::string target = target_of(url);
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  request += authorization_line(proxy);
  return request.append(line_end);
}

}  // namespace

bool uses_proxy(const Url& url, const ClientOptions& options) noexcept {
  if (!options.proxy.url || !options.unix_socket.empty()) return false;
  return std::ranges::none_of(
      options.proxy.bypass, [&url](const std::string& name) { return matches(url.host(), name); });
}

bool uses_absolute_form(const Url& url, const ClientOptions& options) noexcept {
  return url.scheme() == "http" && !options.proxy.tunnel && uses_proxy(url, options);
}

std::string authorization_line(const ProxyOptions& proxy) {
  if (proxy.authorization.empty()) return {};
  return "Proxy-Authorization: " + proxy.authorization + "\r\n";
}

Task<Result<>> open_tunnel(Stream& stream, const Url& url, const ClientOptions& options) {
  const std::string request = connect_request(url, options.proxy);
  const Result<> written = co_await stream.write(request);
  if (!written && written.error() == Errc::cancelled) co_return written;
  ResponseParser parser(options.limits.response);
  parser.begin(Method::connect);
  std::string input;
  while (true) {
    const ResponseEvent event = parser.next(input);
    if (event.kind == ResponseEvent::Kind::error) co_return fail(ClientError::bad_response);
    input.erase(0, event.consumed);
    if (event.kind == ResponseEvent::Kind::head) break;
    if (event.kind == ResponseEvent::Kind::interim) continue;
    const Result<Buffer> piece = co_await stream.read();
    if (!piece && piece.error() == Errc::cancelled) co_return fail(Errc::cancelled);
    if (!piece) co_return fail(ClientError::connection_lost);
    input += piece->text();
  }
  const int status = code_of(parser.head().status());
  if (status >= 300) co_return fail(ClientError::proxy_refused);
  // The server at the end of the tunnel has no request yet.
  if (!input.empty()) co_return fail(ClientError::bad_response);
  co_return {};
}

}  // namespace weir::http
