// The state that the connections of one server on one core share: limits, date, counters, drain.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"

namespace weir::http {

// Streams that have sent their last byte and stay open for a moment, so that the peer can read
// it.

/// Keeps streams whose sending side is shut down, until their time is over or a newer stream
/// needs the entry. A peer that still sends to a closed stream gets a reset, which may cost it
/// the response (RFC 9112 §9.6). No task reads from these streams or waits for them.
/// Threads: the loop's.
/// Lifetime: the destructor closes the streams that are left.
class LingeringStreams : Timer {
 public:
  explicit LingeringStreams(Loop& loop) noexcept : Timer(&expire), loop_(loop) {}

  /// Keeps the stream for at most `time`; it replaces the oldest one if all entries are used.
  void add(tcp::Stream stream, Duration time) noexcept {
    std::optional<Entry>& entry = entries_[next_];
    next_ = (next_ + 1) % entries_.size();
    entry.emplace(Entry{std::move(stream), after(loop_.now(), time)});
    if (!armed()) loop_.timers().start(*this, entry->until);
  }

 private:
  // Part of the descriptors that are reserved for other things than connections.
  static constexpr std::size_t entries_max = 16;
  struct Entry {
    tcp::Stream stream;
    Instant until;
  };

  /// Closes the streams whose time is over; the rest wait for the timer's next expiry.
  static void expire(Timer& self) {
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

struct ServerCounters {
  Counter connections_accepted;
  Counter connections_rejected;  ///< connections beyond connections_max
  Counter connections_open;
  Counter silent_connections;  ///< connections closed because no byte ever came
  Counter slow_readers;        ///< connections closed because of Limits::write_rate
  Counter requests;            ///< parsed heads
  Counter responses;           ///< responses handed over for sending
  Counter handler_failures;
  std::array<Counter, parse_error_count> parse_errors;  ///< rejected requests, by reason
};

/// A connection as its server sees it: the server can drain it.
class DrainableConnection : public ListNode {
 public:
  virtual void drain() = 0;

 protected:
  ~DrainableConnection() = default;
};

/// The state of one server on one core.
/// Threads: one loop's, except for reading the counters.
/// Lifetime: outlives its connections.
class ServerState final : DrainObserver, MetricSource {
 public:
  ServerState(Loop& loop, const Router& router, const Limits& limits);
  ~ServerState();

  Loop& loop() const noexcept { return loop_; }
  const Router& router() const noexcept { return router_; }
  /// Returns the router's routes as this core serves them now.
  RouteSnapshot& routes() noexcept { return routes_; }
  const Limits& limits() const noexcept { return limits_; }
  /// Returns the prefix of request ids; see request_id_prefix().
  const std::string& id_prefix() const noexcept { return id_prefix_; }
  bool draining() const noexcept { return draining_; }
  /// Makes the connections finish their requests and close. It happens automatically when the
  /// loop drains.
  void drain();

  /// Returns the date for a Date header, at most one second old.
  const Date& date() noexcept {
    if (loop_.now() >= date_until_) refresh_date();
    return date_;
  }
  /// Returns the head of a common response with this media type, of at most
  /// ResponseHeadCache::type_size_max bytes.
  const ResponseHeadCache& response_head_cache(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!response_head_cache_.is_for(content_type)) response_head_cache_.begin(now, content_type);
    return response_head_cache_;
  }

  HostLineCache& host_line_cache() noexcept { return host_line_cache_; }
  LingeringStreams& lingering_streams() noexcept { return lingering_streams_; }

  /// The right to one of the connections that may be open at the same time, on all cores of the
  /// runtime together.
  class ConnectionPermit {
   public:
    ConnectionPermit() noexcept = default;  ///< no permit
    ConnectionPermit(ConnectionPermit&& other) noexcept
        : server_(std::exchange(other.server_, nullptr)) {}
    ~ConnectionPermit() {
      if (server_ != nullptr) server_->permits_in_use().fetch_sub(1, std::memory_order_relaxed);
    }
    ServerState& server() const noexcept { return *server_; }

   private:
    friend ServerState;
    explicit ConnectionPermit(ServerState& server) noexcept : server_(&server) {}
    ServerState* server_ = nullptr;
  };
  /// Returns a permit for one more connection; nullopt if all permits are in use.
  std::optional<ConnectionPermit> try_acquire_permit() noexcept;

  /// Adds or removes a connection that has a permit.
  void add(DrainableConnection& connection) noexcept;
  void remove(DrainableConnection& connection) noexcept;

  /// Half of the descriptors that are reserved for other things than connections.
  static constexpr std::size_t rejections_max = 32;
  /// A connection beyond the limit, while the server answers it with 503.
  class Rejection {
   public:
    explicit Rejection(ServerState& server) noexcept : server_(server) {
      server_.counters_.connections_rejected.add();
      ++server_.rejections_;
    }
    ~Rejection() { --server_.rejections_; }
    Rejection(const Rejection&) = delete;
    Rejection& operator=(const Rejection&) = delete;
    /// Returns true if more than rejections_max rejected connections still wait for the peer to
    /// read the answer. This connection is then closed directly behind its own answer.
    bool too_many() const noexcept { return server_.rejections_ > rejections_max; }

   private:
    ServerState& server_;
  };

  ServerCounters& counters() noexcept { return counters_; }
  /// Returns the counters in words, parse errors by reason: "3 connections, 12 requests, 1
  /// bad_host".
  std::string summary() const;
  void count_parse_error(ParseError error) noexcept {
    counters_.parse_errors[static_cast<std::size_t>(error)].add();
  }

 private:
  std::atomic<std::size_t>& permits_in_use() const noexcept {
    return ServerConnections::of(loop_).open;
  }
  void collect(MetricSnapshot& sum) const override;
  void refresh_date() noexcept;
  static void on_drain(DrainObserver& self);

  Loop& loop_;
  const Router& router_;
  RouteSnapshot routes_;
  Limits limits_;
  std::string id_prefix_;
  std::size_t connections_max_;
  std::size_t rejections_ = 0;
  bool draining_;
  HostLineCache host_line_cache_;
  LingeringStreams lingering_streams_;
  Date date_;
  Instant date_until_;
  ResponseHeadCache response_head_cache_;
  List<DrainableConnection> connections_;
  ServerCounters counters_;
};

}  // namespace weir::http
