// The HTTP server that a runtime runs on each core.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "weir/base/result.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir {
class ProxyProtocol;
}
namespace weir::tls {
class Server;
}

namespace weir::http {

class ServerObserver;

/// Tells if a plain connection may begin with the preface of HTTP/2 (RFC 9113 §3.3). Over TLS the
/// client chooses by ALPN; see tls::ServerOptions::protocols. Its names in a configuration are
/// those of the enumerators.
enum class PlainHttp2 : std::uint8_t {
  off,              ///< HTTP/1.1
  prior_knowledge,  ///< the first bytes of the client choose HTTP/2 or HTTP/1.1
  only,             ///< HTTP/2
};

}  // namespace weir::http

template <>
inline constexpr std::array weir::json::enumerators<weir::http::PlainHttp2>{
    weir::json::Named{weir::http::PlainHttp2::off, "off"},
    weir::json::Named{weir::http::PlainHttp2::prior_knowledge, "prior_knowledge"},
    weir::json::Named{weir::http::PlainHttp2::only, "only"}};

namespace weir::http {

/// ServeOptions is the endpoint of a server, the limits that its clients must respect, and its TLS.
struct ServeOptions {
  Endpoint endpoint = Endpoint::any(8080);
  Limits limits = {};
  /// HTTPS with this server's certificates; nullptr: HTTP. All cores share it, and each serve()
  /// loads it if the program has not. The handshake counts as part of
  /// Limits::first_request_timeout. A connection beyond Limits::connections_max is closed without a
  /// response, because a response would need a handshake. A client that speaks plain HTTP gets 400
  /// with a line that names https.
  std::shared_ptr<tls::Server> tls = {};
  PlainHttp2 plain_http2 = PlainHttp2::off;
  /// Reads the header of the PROXY protocol from the connections of these proxies, before TLS.
  /// Request::peer_address() is then the address of their client. A malformed header closes the
  /// connection. nullptr: no proxy. Its time is part of Limits::first_request_timeout.
  std::shared_ptr<const ProxyProtocol> proxy_protocol = {};
  /// Receives the ended requests of each core; nullptr: none. It
  /// outlives the server.
  ServerObserver* observer = nullptr;
};

/// Serves HTTP/1.1 and HTTP/2 with the routes of `router`, until the loop of `scope` drains or the
/// task is cancelled. It is meant for Runtime::run_on_each_core(): every core listens on its own.
/// The task completes when its last connection has ended, and then logs what the server counted. A
/// client that resets its connection cancels the handler of its request. A client of HTTP/1.1 that
/// only stops sending still gets its answers; one of HTTP/2 cancels its handlers.
/// Errors: those of tcp::listen(), Errc::conflict if Router::check() fails, those of
/// tls::Server::load(), Errc::closed after a drain.
/// Cancel: closes the listener immediately and cancels the connections.
/// Threads: the loop's. All cores share `router`.
/// Lifetime: `router` outlives the task.
Task<Result<>> serve(Scope& scope, const Router& router, ServeOptions options);

/// A handler that sends clients of plain HTTP to the same host by HTTPS, with 308. It is the whole
/// router of a second server: `plain.fallback(http::RedirectToHttps());`.
/// Threads: any.
class RedirectToHttps {
 public:
  explicit RedirectToHttps(std::uint16_t port = 443) noexcept : port_(port) {}
  Response operator()(const Request& request) const;

 private:
  std::uint16_t port_;
};

/// Serves the router on every core until the process is told to stop; the end of main():
/// `return http::run(router, argc, argv);`. It reads http::ProgramOptions::from_args(), handles
/// SIGINT and SIGTERM, and drains. With --tls-cert and --tls-key, or --tls-self-signed, it serves
/// HTTPS. With --http2-plain, plain connections may begin with HTTP/2. A program with other tasks
/// or options calls Runtime and serve() itself. Returns: the exit status of the process; see
/// Runtime::run_on_each_core().
int run(const Router& router, int argc, char** argv, const Limits& limits = {});
/// Serves the router on every core of `platform`; the main function of a host in a sim::World.
/// Returns: the exit status of the program.
int run(const Router& router, loop::Platform& platform,
        const ServeOptions& options = {.endpoint = Endpoint::any(80)});

}  // namespace weir::http
