// The state that the connections of one server on one core share.
#pragma once

#include <algorithm>
#include <array>
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
#include "weir/net/any_stream.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

// Streams that have sent their last byte and stay open for a moment, so that the peer can read
// it.

/// Keeps streams whose sending side is shut down, until their time is over or a newer stream needs
/// the entry. A peer that still sends to a closed stream gets a reset, and may then lose the
/// response (RFC 9112 §9.6). No task reads from these streams or waits for them.
/// Threads: the loop's.
/// Lifetime: the destructor closes the streams that are left.
class LingeringStreams : loop::Timer {
 public:
  explicit LingeringStreams(Loop& loop) noexcept : loop::Timer(&expire), loop_(loop) {}

  /// Keeps the stream for at most `time`; it replaces the oldest one if all entries are used.
  void add(AnyStream stream, Duration time) noexcept {
    std::optional<Entry>& entry = entries_[next_];
    next_ = (next_ + 1) % entries_.size();
    entry.emplace(Entry{std::move(stream), after(loop_.now(), time)});
    if (!armed()) loop_.timers().start(*this, entry->until);
  }

 private:
  // Part of the descriptors that a server does not use for connections.
  static constexpr std::size_t entries_max = 16;
  struct Entry {
    AnyStream stream;
    Instant until;
  };

  /// Closes the streams whose time is over; the rest wait for the timer's next expiry.
  static void expire(loop::Timer& self) {
    auto& streams = static_cast<LingeringStreams&>(self);
    const Instant now = streams.loop_.now();
    Instant soonest = never;
    for (std::optional<Entry>& each : streams.entries_) {
      if (each && each->until <= now) each.reset();
      if (each) soonest = std::min(soonest, each->until);
    }
    streams.loop_.timers().start(streams, soonest);
  }

  Loop& loop_;
  std::array<std::optional<Entry>, entries_max> entries_;
  std::size_t next_ = 0;
};

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
