// The state that the connections of one server on one core share.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/open_connections.hpp"
#include "weir/http/server/detail/server_counters.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/lingering_streams.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

// The parts of response heads that the connections share.

/// Caches the date of the present second, and the common head with this date.
/// Threads: the loop's.
class ResponseHeads {
 public:
  explicit ResponseHeads(Loop& loop) noexcept
      : loop_(loop), date_(loop.platform().wall_time()), date_until_(loop.now()) {}

  /// Returns the date for a Date header, at most one second old.
  const Date& date() noexcept {
    if (loop_.now() >= date_until_) refresh();
    return date_;
  }
  /// Returns the head of a common response with this media type, of at most
  /// ResponseHeadCache::type_size_max bytes.
  const ResponseHeadCache& common(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!common_.is_for(content_type)) common_.begin(now, content_type);
    return common_;
  }

 private:
  void refresh() noexcept;

  Loop& loop_;
  Date date_;
  Instant date_until_;
  ResponseHeadCache common_;
};

/// The state of one server on one core, which the server's connections share.
/// Threads: one loop's, except for reading the counters.
/// Lifetime: outlives its connections.
class ServerState {
 public:
  /// `tls` is ServeOptions::tls.
  ServerState(Loop& loop, const Router& router, const Limits& limits,
              std::shared_ptr<tls::Server> tls = {});

  Loop& loop() const noexcept { return loop_; }
  const Router& router() const noexcept { return router_; }
  const Limits& limits() const noexcept { return limits_; }
  /// Returns the prefix of request ids; see request_id_prefix().
  const std::string& id_prefix() const noexcept { return id_prefix_; }
  /// Returns the router's routes as this core serves them now.
  RouteSnapshot& routes() noexcept { return routes_; }
  ServerCounters& counters() noexcept { return counters_; }
  const ServerCounters& counters() const noexcept { return counters_; }
  OpenConnections& connections() noexcept { return connections_; }
  LingeringStreams& lingering_streams() noexcept { return lingering_streams_; }
  ResponseHeads& heads() noexcept { return heads_; }
  HostLineCache& host_line_cache() noexcept { return host_line_cache_; }
  /// Returns the TLS of the server, and its acceptor on this core; nullptr: a plain server.
  tls::Server* tls() const noexcept { return tls_.get(); }
  tls::Acceptor* acceptor() noexcept { return acceptor_ ? &*acceptor_ : nullptr; }

  bool draining() const noexcept { return connections_.draining(); }
  /// Makes the connections finish their requests and close. It happens automatically when the
  /// loop drains.
  void drain() { connections_.drain(); }

 private:
  Loop& loop_;
  const Router& router_;
  Limits limits_;
  std::string id_prefix_;
  RouteSnapshot routes_;
  ServerCounters counters_;
  OpenConnections connections_;
  LingeringStreams lingering_streams_;
  ResponseHeads heads_;
  HostLineCache host_line_cache_;
  std::shared_ptr<tls::Server> tls_;
  std::optional<tls::Acceptor> acceptor_;
};

}  // namespace weir::http
