// The state that the connections of one server on one core share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weir/base/detail/list.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/connection_reserve.hpp"
#include "weir/http/server/detail/open_connections.hpp"
#include "weir/http/server/detail/open_websockets.hpp"
#include "weir/http/server/detail/request_recorder.hpp"
#include "weir/http/server/detail/response_heads.hpp"
#include "weir/http/server/detail/server_counters.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/lingering_streams.hpp"
#include "weir/task/scope.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

/// The state of one server on one core, which the server's connections share.
/// Threads: one loop's, except for reading the counters.
/// Lifetime: outlives its connections.
class ServerState : public weir::detail::ListNode {
 public:
  /// The server has no endpoint until OpenConnections::set_endpoint(); that of `options` is not
  /// used. A `reserve` takes the place of Limits::connections_max.
  ServerState(Loop& loop, const Router& router, const ServeOptions& options,
              ConnectionReserve* reserve = nullptr);

  Loop& loop() const noexcept { return loop_; }
  const Router& router() const noexcept { return router_; }
  const Limits& limits() const noexcept { return limits_; }
  /// Returns the prefix of request ids; see request_id_prefix().
  const std::string& id_prefix() const noexcept { return id_prefix_; }
  /// Returns the router's routes as this core serves them now.
  RouteSnapshot& routes() noexcept { return routes_; }
  ServerCounters& counters() noexcept { return counters_; }
  const ServerCounters& counters() const noexcept { return counters_; }
  /// Returns the recorder of ended requests; nullptr if the server has no observer.
  RequestRecorder* recorder() noexcept { return recorder_.get(); }
  OpenConnections& connections() noexcept { return connections_; }
  OpenWebSockets& websockets() noexcept { return websockets_; }
  LingeringStreams& lingering_streams() noexcept { return lingering_streams_; }
  ResponseHeads& heads() noexcept { return heads_; }
  HostLineCache& host_line_cache() noexcept { return host_line_cache_; }
  /// Returns the TLS of the server, and its acceptor on this core; nullptr: a plain server.
  tls::Server* tls() const noexcept { return tls_.get(); }
  PlainHttp2 plain_http2() const noexcept { return plain_http2_; }
  /// Returns the proxies whose connections begin with a header; nullptr if there are none.
  const ProxyProtocol* proxy_protocol() const noexcept { return proxy_protocol_.get(); }
  /// Returns the reader of the fields of HTTP/2, which is made for the first connection.
  RequestFieldReader& request_fields() {
    if (request_fields_ == nullptr) make_request_fields();
    return *request_fields_;
  }
  /// Forgets the table of a connection that ends; see FieldReader::forget().
  void forget_fields(const HpackTable& table) noexcept {
    if (request_fields_ != nullptr) request_fields_->forget(table);
  }
  tls::Acceptor* acceptor() noexcept { return acceptor_ ? &*acceptor_ : nullptr; }

  /// Returns the scope of the connections, whose children may spawn others. accept_connections()
  /// sets it.
  Scope* connection_scope() const noexcept { return connection_scope_; }
  void set_connection_scope(Scope& scope) noexcept { connection_scope_ = &scope; }

  bool draining() const noexcept { return connections_.draining(); }
  /// Makes the connections finish their requests and close. It happens automatically when the
  /// loop drains.
  void drain() { connections_.drain(); }

 private:
  void make_request_fields();

  Loop& loop_;
  const Router& router_;
  Limits limits_;
  std::string id_prefix_;
  RouteSnapshot routes_;
  ServerCounters counters_;
  std::unique_ptr<RequestRecorder> recorder_;
  OpenConnections connections_;
  OpenWebSockets websockets_;
  LingeringStreams lingering_streams_;
  ResponseHeads heads_;
  HostLineCache host_line_cache_;
  std::shared_ptr<tls::Server> tls_;
  std::optional<tls::Acceptor> acceptor_;
  PlainHttp2 plain_http2_;
  Scope* connection_scope_ = nullptr;
  std::shared_ptr<const ProxyProtocol> proxy_protocol_;
  std::unique_ptr<RequestFieldReader> request_fields_;
};

}  // namespace weir::http
