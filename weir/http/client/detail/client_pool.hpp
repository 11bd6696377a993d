// The connections of a client: those in use, and those that wait for the next request to their
// origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/detail/client_counters.hpp"
#include "weir/http/client/detail/client_lease.hpp"
#include "weir/http/client/detail/client_origin.hpp"
#include "weir/http/client/detail/pooled_connection.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/client.hpp"

namespace weir::http {

class ClientPool;
class ResponseFieldReader;

/// The clients of one core that have opened a connection, for reports. It is a slot of the loop.
struct CoreClients {
  weir::detail::List<ClientPool> pools;
};

/// The present connections and requests of one client to one origin.
struct OriginReport {
  std::string_view origin;   ///< as in ConnectTarget; valid during the call that gets it
  std::size_t open = 0;      ///< connections, in use and idle
  std::size_t idle = 0;      ///< idle connections of HTTP/1.1
  std::size_t open_max = 0;  ///< ClientLimits::connections_per_origin_max
  std::size_t opening = 0;   ///< connections that may speak HTTP/2 and are being opened
  std::size_t waiting = 0;   ///< requests that wait for a connection
};

/// Is told when the requests that a connection to an origin carries at a time may have changed; see
/// ClientPool::requests_per_connection().
/// Threads: the pool's.
class ConnectionObserver {
 public:
  using Changed = void (*)(ConnectionObserver& observer);
  explicit ConnectionObserver(Changed changed) noexcept : changed_(changed) {}
  void tell() { changed_(*this); }

 private:
  Changed changed_;
};

/// Opens the connections of one client, keeps those that are idle, and limits their number.
///
/// Idle connections are used in the order last in, first out. The chosen one was idle for the
/// shortest time, so its server is least likely to be closing it. The connections that a lower load
/// does not need reach their idle timeout.
///
/// Two semaphores limit the connections: one of each origin, and one of all. Requests wait in the
/// queue of their origin, in the order of arrival. The first request of each queue takes a right of
/// its origin. If all connections_max connections are in use, that request also waits in the queue
/// of the pool. It keeps both places until it has a connection. A busy origin therefore delays no
/// request to another. If there are connections_max, a new connection replaces the one that has
/// been idle for the longest time.
///
/// A connection of HTTP/2 carries many requests. It has its rights until it is closed; an idle one
/// is closed if a request to another origin needs the right. Requests wait for a connection that
/// is being opened to an origin that may speak HTTP/2, instead of opening another.
/// Threads: one core's.
/// Lifetime: outlives its leases (asserted).
class ClientPool : public weir::detail::ListNode {
 public:
  using Lease = ClientLease;
  /// The right to a connection, or a connection of HTTP/2 that can carry another request.
  struct Place;

  /// `options` outlive the object.
  explicit ClientPool(const ClientOptions& options) noexcept;
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;
  /// Closes all idle connections.
  ~ClientPool();

  /// Returns true if a new connection for `url` may be one of HTTP/2.
  bool may_speak_http2(const Url& url) const noexcept;
  /// Returns true if the last connection that was opened to the origin of `url` speaks HTTP/1.1.
  bool speaks_http1(const Url& url) noexcept {
    const Origin* const origin = known_origin(key_of(url));
    return origin != nullptr && origin->is_http1;
  }
  /// Returns how many requests a connection to the origin of `url` carries at a time, as far as the
  /// pool knows: 1 for HTTP/1.1, and until a server of HTTP/2 has sent its settings.
  std::size_t requests_per_connection(const Url& url) noexcept;
  /// Sets who is told of changes of requests_per_connection(); nullptr: nobody.
  /// Lifetime: the observer outlives the pool, or the call that replaces it.
  void observe_connections(ConnectionObserver* observer) noexcept { observer_ = observer; }
  /// Returns a connection of HTTP/2 to the origin of `url` that can carry another request now.
  /// Returns nullptr if there is none, or if a request waits already.
  H2ClientConnection* http2_for(const Url& url) noexcept;
  /// Returns the right to use a connection to the origin of `url`, if that needs no wait.
  std::optional<Lease> try_acquire(const Url& url);
  /// Waits for the right to use a connection to the origin of `url`, or for a connection of HTTP/2
  /// that can carry another request. The wait ends at `deadline`, or after queue_timeout.
  ///
  /// If another request opens the first connection when the wait begins, connect_timeout bounds the
  /// wait instead. The limit changes once to queue_timeout: when a connection opens, or when the
  /// request joins the queue of the pool. No wait is longer than both limits together.
  /// Returns: the right, or the connection of HTTP/2.
  /// Errors: ClientError (queue_full, queue_timed_out, connect_timed_out, timed_out);
  /// Errc::cancelled.
  /// Cancel: leaves the queue.
  Task<Result<Place>> acquire(const Url& url, Instant deadline);
  /// Makes a connection of HTTP/2 out of that of a lease.
  /// Errors: throws std::bad_alloc.
  H2ClientConnection& add_http2(Lease&& lease);

  /// Opens a connection of HTTP/1.1 that the pool does not count.
  /// Errors: ClientError::connect_failed; tls::Error; Errc::cancelled.
  /// Cancel: closes the connection.
  Task<Result<AnyStream>> open_http1(const Url& url, Loop& loop);

  /// Returns the number of open connections, in use and idle.
  std::size_t open_count() const noexcept { return counters_.open.value(); }
  std::size_t idle_count() const noexcept {
    return counters_.idle.value() + counters_.http2_idle.value();
  }

  /// Calls `see` with an OriginReport for each origin that has connections or requests, until it
  /// returns false.
  template <class See>
  void visit_origins(const See& see) const {
    for (const auto& [name, origin] : origins_) {
      OriginReport report{.origin = name};
      report.open_max = options_->limits.connections_per_origin_max;
      report.idle = origin.idle_count;
      report.open = report.idle + origin.permits_max - origin.permits.available();
      report.opening = origin.opening;
      report.waiting = origin.queued;
      if (!see(report)) return;
    }
  }
  /// Counts a request that failed for another reason than a connection that could not be opened.
  /// Returns fail(error).
  std::unexpected<std::error_code> fail_request(const Url& url,
                                                std::error_code error) const noexcept;

  // For connections of HTTP/2.

  const ClientLimits& limits() const noexcept { return options_->limits; }
  /// Returns the reader of fields of all connections. The first call makes it.
  /// Errors: throws std::bad_alloc.
  ResponseFieldReader& response_fields();
  void on_http2_idle() noexcept { counters_.http2_idle.add(); }
  void on_http2_busy() noexcept { counters_.http2_idle.subtract(); }
  /// Returns true if a request waits for the right to a connection of any origin.
  bool needs_room() const noexcept { return !waiting_for_room_.empty(); }
  void on_http2_closed() noexcept { counters_.open.subtract(); }
  /// Lets the first request that waits look at the connections of the origin of `lease` again.
  void on_http2_changed(const Lease& lease) noexcept;
  /// Notes that a server carries this number of requests on a connection.
  void on_http2_settings(const Lease& lease, std::size_t requests_max);
  /// Sends a PING on the other connections to the origin of `lease`. A connection with requests was
  /// lost, and the others may have been lost with it. They carry no new request until something
  /// arrives.
  void on_http2_lost(const Lease& lease) noexcept;

 private:
  friend PooledConnection;
  friend ClientLease;
  using Origin = ClientOrigin;
  using Node = PooledConnection::Node;

  class Waiting;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  Task<Result<AnyStream>> open_stream(const Url& url, Loop& loop, bool http1_only = false);
  Task<Result<AnyStream>> secure(AnyStream stream, const Url& url, tls::Connector& connector);
  tls::Client& tls_client(Loop& loop) const;
  tls::Connector& connector(Loop& loop, bool http1_only);
  void join_reports(Loop& loop) noexcept;
  std::string_view key_of(const Url& url) const noexcept;
  Origin* known_origin(std::string_view name) noexcept;
  Origin& origin_of(const Url& url);
  static void notify_first(const RequestQueue& queue) noexcept;
  bool has_room() const noexcept {
    return permits_.available() > 0 || counters_.http2_idle.value() > 0;
  }
  static bool is_opening(const Origin& origin) noexcept {
    return origin.opening > 0 && !origin.is_http1;
  }
  static H2ClientConnection* http2_of(const Origin& origin) noexcept;
  /// Closes idle connections of HTTP/2 whose peer no longer proves its identity.
  static void end_unproven(const Origin& origin) noexcept;
  bool try_take_of_pool(SemaphorePermit& permit) noexcept;
  void add_idle(Origin& origin, BlockPtr<PooledConnection>& connection, Duration idle_max);
  BlockPtr<PooledConnection> take_idle(Origin& origin);
  void make_room();
  void on_input(PooledConnection& connection) noexcept;
  void on_timer(PooledConnection& connection) noexcept;
  void close(PooledConnection& connection) noexcept;
  void leave(Origin& origin) noexcept;

  const ClientOptions* options_;
  Loop* loop_ = nullptr;                           // set when the first connection is opened
  std::optional<tls::Connector> connector_;        // made for the first https URL
  std::optional<tls::Connector> http1_connector_;  // for https proxies and WebSockets
  Instant next_log_{};                             // no failed handshake is logged earlier
  std::size_t connections_max_;
  Semaphore permits_;
  std::unordered_map<std::string, Origin, Hash, std::equal_to<>> origins_;
  Origin* last_origin_ = nullptr;  // that of the last request, if it is still in use
  weir::detail::List<Node>
      idle_;  // those of all origins, the one that has been idle for the longest time first
  weir::detail::List<Node>
      dead_;  // those that are closed in this turn, since input or an end has arrived
  weir::detail::List<Http2Node> http2_;  // connections of all origins, the oldest one first
  ClientCounters counters_;              // idle connections of HTTP/2 have rights
  RequestQueue waiting_for_room_;        // first requests of origins, in the order of arrival
  std::unique_ptr<ResponseFieldReader> response_fields_;
  ConnectionObserver* observer_ = nullptr;
};

struct ClientPool::Place {
  std::optional<Lease> lease = {};
  H2ClientConnection* http2 = nullptr;
};

}  // namespace weir::http
