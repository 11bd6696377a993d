#include "weir/http/server/detail/accept_connections.hpp"

#include <functional>
#include <new>
#include <string>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/handshake_node.hpp"
#include "weir/http/server/detail/open_connections.hpp"
#include "weir/net/listen/detail/listener_state.hpp"
#include "weir/net/proxy_protocol.hpp"
#include "weir/runtime/checks/detail/start_checks.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

// Largest number of accepts in a row, after which the other tasks of the loop run. Rejected
// connections that the peer has left end then. A row of rejections alone stays below
// rejections_max.
constexpr unsigned accepts_in_a_row = 16;
static_assert(accepts_in_a_row < OpenConnections::rejections_max);

// Time in which a client may still perform its handshake when its server drains.
constexpr Duration handshake_drain_grace = std::chrono::seconds(1);

/// Cancels a handshake at the end of its time, or after handshake_drain_grace if the server drains.
/// Threads: the loop's.
class HandshakeLimit final : public HandshakeNode, loop::Timer {
 public:
  HandshakeLimit(ServerState& server, const os::Address& peer, ConnectionPermit& permit,
                 CancelSource& handshake, Instant end)
      : loop::Timer(&on_timer),
        server_(server),
        loop_(server.loop()),
        permit_(permit),
        handshake_(handshake),
        begun_(loop_.now()),
        network_(os::client_network(peer)) {
    loop_.timers().start(*this, end);
    if (server.draining()) {
      drain();
    } else {
      server.connections().add(*this);
    }
  }

  ~HandshakeLimit() {
    if (!permit_) server_.connections().eviction_ended();
  }

  void drain() override {
    const Instant end = after(loop_.now(), handshake_drain_grace);
    if (end < deadline()) loop_.timers().start(*this, end);
  }
  Instant begun() const noexcept override { return begun_; }
  const os::IpBytes& network() const noexcept override { return network_; }
  ConnectionPermit evict() override {
    HandshakeNode::unlink();
    ConnectionPermit given = std::move(permit_);
    handshake_.cancel();
    return given;
  }

 private:
  static void on_timer(loop::Timer& timer) {
    static_cast<HandshakeLimit&>(timer).handshake_.cancel();
  }

  ServerState& server_;
  Loop& loop_;
  ConnectionPermit& permit_;  // none after evict()
  CancelSource& handshake_;
  Instant begun_;
  os::IpBytes network_;
};

/// Reads the header of the PROXY protocol. Counts a header that is malformed.
Task<Result<AnyStream>> read_proxy_header(ServerState& server, AnyStream stream) {
  auto read = co_await server.proxy_protocol()->read_header(std::move(stream));
  if (!read && read.error() == Errc::bad_input) server.counters().bad_proxy_headers.add();
  co_return read;
}

/// Counts a connection whose time has passed before its first request.
void count_silent(ServerState& server, Instant end) noexcept {
  if (server.loop().now() >= end) server.counters().silent_connections.add();
}

/// Reads the header of a proxy and performs the handshake, if there are any, and then serves the
/// connection as another child of `connections`. An idle connection thus has no more frames than a
/// plain one. The Acceptor counts a failure.
Task<> perform_handshake(Scope& connections, ConnectionPermit permit, AnyStream stream,
                         bool proxied) {
  ServerState& server = permit.server();
  Loop& loop = server.loop();
  const Instant end = after(loop.now(), server.limits().first_request_timeout);
  const Context own = co_await this_context();
  CancelSource handshake(own.cancel);
  const Context within{&loop, &handshake};
  try {
    std::optional<HandshakeLimit> limit(std::in_place, server, stream->peer_address(), permit,
                                        handshake, end);
    if (proxied) {
      auto reading = in_context(within, read_proxy_header(server, std::move(stream)));
      auto read = co_await std::move(reading);
      if (!read) co_return count_silent(server, end);
      stream = std::move(*read);
    }
    if (server.acceptor() != nullptr) {
      auto accepting = in_context(within, server.acceptor()->accept(std::move(stream)));
      auto accepted = co_await std::move(accepting);
      if (!accepted) co_return count_silent(server, end);
      stream = std::move(*accepted);
    }
    limit.reset();
    if (!permit) co_return;  // the handshake ended when it had been evicted
    connections.spawn(serve_connection(std::move(permit), std::move(stream), end));
  } catch (const std::bad_alloc&) {
    ConnectionCounters::made(loop).dropped.add();
  }
}

/// Closes the connection if there is no memory to serve it; the other connections continue.
void start_connection(Scope& connections, ServerState& server, tcp::Stream stream) noexcept {
  try {
    auto permit = server.connections().acquire_permit(stream);
    const bool secure = server.acceptor() != nullptr;
    const bool proxied = server.proxy_protocol() != nullptr &&
                         server.proxy_protocol()->expects_header(stream.peer_address());
    if (permit && (secure || proxied)) {
      connections.spawn(
          perform_handshake(connections, std::move(*permit), std::move(stream), proxied));
    } else if (permit) {
      connections.spawn(serve_connection(std::move(*permit), std::move(stream)));
    } else {
      server.counters().connections_rejected.add();
      // An answer over TLS would cost a handshake.
      if (!secure) connections.spawn(reject_connection(server, std::move(stream)));
    }
  } catch (const std::bad_alloc&) {
    ConnectionCounters::made(connections.loop()).dropped.add();
  }
}

Task<Result<>> accept_all(Scope& connections, ServerState& server, tcp::Listener given) {
  // Close the listener when this function returns, not when its connections have ended, which may
  // take long. A late client is then refused instead of waiting in vain, and another process may
  // use the port.
  tcp::Listener listener = std::move(given);
  for (unsigned accepted = 0; !connections.cancelled(); ++accepted) {
    if (accepted % accepts_in_a_row == accepts_in_a_row - 1) {
      std::ignore = co_await sleep(Duration::zero());
    }
    WEIR_CO_TRY(auto stream, co_await listener.accept());
    start_connection(connections, server, std::move(stream));
  }
  co_return fail(Errc::cancelled);
}

/// Returns all that the memory of the server depends on, except for its limits.
MemoryBoundOptions memory_options_of(const ServerState& server, const RouteDemands& routes,
                                     unsigned cores) noexcept {
  MemoryBoundOptions options;
  options.cores = cores;
  options.body_max = routes.body_max;
  options.handler_bytes =
      static_cast<std::size_t>(weir::detail::sum({options.handler_bytes, routes.request_bytes}));
  options.core_bytes = routes.core_bytes;
  options.tls = server.tls() != nullptr ? &server.tls()->options() : nullptr;
  options.http2 = server.plain_http2() != PlainHttp2::off;
  options.websockets = routes.websockets;
  options.websocket_compression = routes.compression;
  options.proxy_protocol = server.proxy_protocol() != nullptr;
  return options;
}

/// Returns what the server asks of its machine. Its memory counts only if the program has limited
/// the connections, because the default is as many as the descriptors allow.
checks::Demands demands_of(const ServerState& server, const RouteDemands& routes,
                           const Endpoint& endpoint) {
  checks::Demands demands{.backlog = ListenOptions().backlog, .endpoints = {endpoint}};
  const Limits& limits = server.limits();
  if (limits.connections_max == 0) return demands;
  const auto cores = static_cast<unsigned>(server.loop().group().loops().size());
  demands.connections_max = limits.connections_max;
  demands.descriptors_own = checks::server_descriptors(cores) + cores * routes.descriptors;
  demands.memory_bytes = memory_bound(limits, memory_options_of(server, routes, cores)).total();
  return demands;
}

/// Ends idle connections soon after a reload has replaced the CAs of their clients, so that these
/// do not send requests in vain.
Task<> watch_trust(ServerState& server) {
  const tls::Server& tls = *server.tls();
  if (tls.options().client_certificates == tls::ClientCertificates::none) co_return;
  for (std::uint64_t seen = tls.generation();;) {
    const Result<> slept = co_await sleep(tls.options().watch->poll_interval);
    if (!slept) co_return;
    if (tls.generation() == seen) continue;
    seen = tls.generation();
    server.connections().drain_unproven();
  }
}

}  // namespace

Task<Result<>> accept_connections(Scope& connections, ServerState& server, tcp::Listener given) {
  server.set_connection_scope(connections);
  if (server.tls() == nullptr || !server.tls()->options().watch) {
    co_return co_await accept_all(connections, server, std::move(given));
  }
  // The files are watched as long as the server accepts.
  const auto watched = [&](Scope& watching) -> Task<Result<>> {
    watching.spawn(server.tls()->watch());
    watching.spawn(watch_trust(server));
    const Result<> accepted = co_await accept_all(connections, server, std::move(given));
    watching.cancel();
    co_return accepted;
  };
  co_return co_await with_scope(OnFailure::isolate, watched);
}

Task<Result<tcp::Listener>> open_listener(ServerState& server, Endpoint endpoint,
                                          bool through_drain) {
  server.connections().set_endpoint(endpoint);
  if (auto checked = server.router().check(); !checked) {
    server.router().log_errors(server.loop().platform());
    co_return fail(checked.error());
  }
  if (server.tls() != nullptr) {
    const auto loaded = co_await server.tls()->load_once();
    if (!loaded) co_return fail(loaded.error().code());
  }
  // A proxy takes its descriptors now, so that the limit of connections below is right.
  const RouteDemands routes = server.routes().table().demands(server.loop());
  if (checks::StartChecks* const checks = checks::StartChecks::find(server.loop())) {
    checks->log(demands_of(server, routes, endpoint));
    if (server.limits().connections_max == 0) {
      checks->log_default_connections(server.connections().permits_max());
    }
  }
  if (through_drain) co_return co_await tcp::listen_through_drain(endpoint);
  co_return co_await tcp::listen(endpoint);
}

Task<Result<>> listen_and_serve(Scope&, ServerState& server, Endpoint endpoint) {
  WEIR_CO_TRY(auto listener, co_await open_listener(server, endpoint));
  co_return co_await with_scope(OnFailure::isolate, accept_connections, std::ref(server),
                                std::move(listener));
}

}  // namespace weir::http
