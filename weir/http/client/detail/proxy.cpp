// The streams of a client: to an origin, to a proxy, or through a tunnel of a proxy.
#include "weir/http/client/detail/proxy.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/response_source.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/connect_targets.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/context.hpp"

namespace weir::http {
namespace {

/// Returns true if `host` is the host `name` or below it.
bool matches(std::string_view host, std::string_view name) noexcept {
  if (name == "*") return true;
  if (name.starts_with('.')) name.remove_prefix(1);
  if (dns::equal_hosts(host, name)) return true;
  host = dns::without_root(host);
  name = dns::without_root(name);
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

}  // namespace

bool uses_proxy(const Url& url, const ClientOptions& options) noexcept {
  if (!options.proxy.url || !options.unix_socket.empty()) return false;
  return std::ranges::none_of(
      options.proxy.bypass, [&url](const std::string& name) { return matches(url.host(), name); });
}

bool uses_absolute_form(const Url& url, const ClientOptions& options) noexcept {
  return url.scheme() == "http" && !options.proxy.tunnel && uses_proxy(url, options);
}

Result<std::string> authorization_line(const ProxyOptions& proxy) {
  if (proxy.authorization.empty()) return std::string();
  if (!is_valid_header("proxy-authorization", proxy.authorization)) {
    return fail(Errc::bad_configuration);
  }
  return "Proxy-Authorization: " + proxy.authorization + "\r\n";
}

Result<std::string> connect_request(const Url& url, const ProxyOptions& proxy) {
  WEIR_TRY(const std::string credentials, authorization_line(proxy));
  const std::string target = target_of(url);
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  return request.append(credentials).append(line_end);
}

Task<Result<>> open_tunnel(Stream& stream, std::string_view request, const ClientLimits& limits) {
  const Result<> written = co_await stream.write(request);
  if (!written && written.error() == Errc::cancelled) co_return written;
  ResponseParser parser(limits.response);
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
    if (!piece) co_return fail(lost_error(piece.error()));
    input += piece->text();
  }
  const int status = code_of(parser.head().status());
  if (status >= 300) co_return fail(ClientError::proxy_refused);
  // The server at the end of the tunnel has no request yet.
  if (!input.empty()) co_return fail(ClientError::bad_response);
  co_return {};
}

// The streams of a pool.

namespace {

/// The TLS of all clients of a group of loops that have no ClientOptions::tls. It reads the issuers
/// of the operating system once.
struct DefaultTls {
  tls::Client client;
};

}  // namespace

Task<Result<AnyStream>> ClientPool::open_stream(const Url& url, Loop& loop, bool http1_only) {
  const bool secured = url.scheme() == "https";
  if (!options_->unix_socket.empty()) {
    WEIR_CO_TRY(auto local, co_await unix_socket::connect(options_->unix_socket));
    AnyStream stream(std::move(local));
    if (secured) co_return co_await secure(std::move(stream), url, connector(loop, http1_only));
    co_return std::move(stream);
  }
  const bool proxied = uses_proxy(url, *options_);
  const Url& peer = proxied ? *options_->proxy.url : url;
  std::string tunnel;  // the request for it
  if (proxied && (http1_only || !uses_absolute_form(url, *options_))) {
    WEIR_CO_TRY(tunnel, connect_request(url, options_->proxy));
  }
  tcp::ConnectOptions how;
  how.resolver = options_->resolver;
  std::string host(peer.host());
  WEIR_CO_TRY(auto plain, co_await tcp::connect(std::move(host), peer.port(), how));
  AnyStream stream(std::move(plain));
  if (proxied && peer.scheme() == "https") {
    WEIR_CO_TRY(stream, co_await secure(std::move(stream), peer, connector(loop, true)));
  }
  if (!tunnel.empty()) WEIR_CO_TRY(co_await open_tunnel(*stream, tunnel, options_->limits));
  if (secured) co_return co_await secure(std::move(stream), url, connector(loop, http1_only));
  co_return std::move(stream);
}

tls::Client& ClientPool::tls_client(Loop& loop) const {
  return options_->tls != nullptr ? *options_->tls : loop.group().slots().get<DefaultTls>().client;
}

/// Returns the connector, or the one that offers only HTTP/1.1.
tls::Connector& ClientPool::connector(Loop& loop, bool http1_only) {
  auto& connector = http1_only ? http1_connector_ : connector_;
  if (!connector && http1_only) {
    std::vector<std::string> protocols = {"http/1.1"};
    connector.emplace(loop, tls_client(loop), std::move(protocols));
  } else if (!connector) {
    connector.emplace(loop, tls_client(loop));
  }
  return *connector;
}

/// Performs the handshake with the host of `url`.
Task<Result<AnyStream>> ClientPool::secure(AnyStream stream, const Url& url,
                                           tls::Connector& connector) {
  std::string host(url.host());
  auto connected = co_await connector.connect(std::move(stream), std::move(host));
  if (connected) co_return AnyStream(std::move(*connected));
  const tls::Failure& failure = connected.error();
  loop::Platform& platform = (co_await this_context()).loop->platform();
  if (failure.code() != Errc::cancelled && platform.now() >= next_log_) {
    next_log_ = after(platform.now(), std::chrono::seconds(1));
    platform.log("weir: " + std::string(url.origin()) + ": " + failure.text());
  }
  co_return fail(failure.code());
}

/// Adds the pool to those that reports show.
void ClientPool::join_reports(Loop& loop) noexcept {
  if (loop_ != nullptr) return;
  loop_ = &loop;
  try {
    loop.slots().get<CoreClients>().pools.push_back(*this);
  } catch (const std::bad_alloc&) {
    // No report shows it.
  }
}

std::unexpected<std::error_code> ClientPool::fail_request(const Url& url,
                                                          std::error_code error) const noexcept {
  if (loop_ != nullptr) ConnectTargets::on_request_failed(*loop_, key_of(url), error);
  return fail(error);
}

}  // namespace weir::http
