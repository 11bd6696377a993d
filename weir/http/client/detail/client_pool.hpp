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
#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/client.hpp"

namespace weir::http {

class ClientPool;
class H2ClientConnection;
class PooledConnection;
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

/// The place of a connection of HTTP/2 in a list of connections.
struct Http2Node : weir::detail::ListNode {
  explicit Http2Node(H2ClientConnection& owner) noexcept : connection(owner) {}
  H2ClientConnection& connection;
};

/// Counts what a ClientPool has now, as metrics of its core.
/// Threads: the loop's, except for reading.
class ClientCounters final : MetricSource {
 public:
  ClientCounters() noexcept = default;
  ~ClientCounters() { detach(); }
  /// Reports the numbers as metrics of `loop` from now on.
  void report_to(Loop& loop) noexcept { loop.metrics().add(*this); }

  weir::detail::Counter open;        ///< connections, in use and idle
  weir::detail::Counter idle;        ///< idle connections of HTTP/1.1
  weir::detail::Counter http2_idle;  ///< idle connections of HTTP/2
  weir::detail::Counter waiting;     ///< requests that wait for a connection

 private:
  static std::uint64_t idle_of(const ClientCounters& counters) {
    return counters.idle.value() + counters.http2_idle.value();
  }
  /// The core may change a number between two reads.
  static std::uint64_t active_of(const ClientCounters& counters) {
    const std::uint64_t open = counters.open.value();
    const std::uint64_t idle = idle_of(counters);
    return open > idle ? open - idle : 0;
  }
  static constexpr MetricInfo info(std::string_view state) {
    return {.name = "http.client.open_connections",
            .unit = "{connection}",
            .help = "Number of outbound HTTP connections that are active or idle.",
            .label = "http.connection.state",
            .label_value = state};
  }
  void collect(MetricSnapshot& sum) const override {
    constexpr auto now = Metric::Kind::gauge;
    using Row = weir::detail::MetricRow<ClientCounters>;
    static constexpr Row rows[]{
        {"http client connections active", active_of, info("active"), now},
        {"http client connections idle", idle_of, info("idle"), now},
        {"http client requests waiting",
         weir::detail::count_of<&ClientCounters::waiting>,
         {"weir.http.client.requests.waiting", "{request}",
          "Requests that wait for a connection of an HTTP client."},
         now},
    };
    weir::detail::collect_rows<ClientCounters>(sum, rows, *this);
  }
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
  class Lease;
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

  /// A place in the list of an origin or of the pool.
  struct Node : weir::detail::ListNode {
    explicit Node(PooledConnection& owner) noexcept : connection(owner) {}
    PooledConnection& connection;
  };
  /// The place of a request in a queue.
  struct QueueNode : weir::detail::ListNode {
    explicit QueueNode(AutoResetEvent& event) noexcept : changed(event) {}
    AutoResetEvent& changed;
  };
  using Queue = weir::detail::List<QueueNode>;
  class Waiting;
  /// An origin that has connections or requests. A Unix socket is one origin for all http URLs, and
  /// so is a proxy without tunnels.
  struct Origin {
    explicit Origin(std::size_t connections_max) noexcept
        : permits(connections_max), permits_max(connections_max) {}
    std::string_view name;
    Semaphore permits;
    const std::size_t permits_max;
    std::size_t idle_count = 0;           // of `idle`
    std::size_t queued = 0;               // of `waiting`
    weir::detail::List<Node> idle;        // the last used one first
    weir::detail::List<Http2Node> http2;  // the connections that may carry another request
    Queue waiting;                        // requests, in the order of arrival
    std::size_t opening = 0;              // leases whose connection may become one of HTTP/2
    std::size_t users = 0;                // leases, and connections that are idle or dead
    Instant opened = Instant::min();      // when the last connection was opened
    bool is_http1 = false;                // the last connection that was opened speaks HTTP/1.1
    std::size_t requests_max = 1;         // of the last connection whose settings have arrived
  };
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
  static void notify_first(const Queue& queue) noexcept;
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
  Queue waiting_for_room_;               // first requests of origins, in the order of arrival
  std::unique_ptr<ResponseFieldReader> response_fields_;
  ConnectionObserver* observer_ = nullptr;
};

/// A connection of a client, in use or idle. No operation is pending on an idle connection: the
/// loop reports any byte, the end of the stream and a reset to the observer. The timer stays armed
/// while the connection is in use, so that a request neither starts nor cancels it.
/// Threads: its loop's.
class PooledConnection : loop::HangupObserver, loop::Timer {
 public:
  /// `stream` was connected now.
  explicit PooledConnection(AnyStream stream) noexcept;

  Stream& stream() noexcept { return *stream_; }
  AnyStream take_stream() noexcept { return std::move(stream_); }
  /// Returns true if the certificate of the server no longer proves its identity, so that the
  /// connection takes no new request; see TlsInfo::proof_ended().
  bool proof_ended() const noexcept;

 private:
  friend ClientPool;

  ClientPool* pool_ = nullptr;            // that of an idle connection
  ClientPool::Origin* origin_ = nullptr;  // that of an idle connection
  ClientPool::Node in_origin_{*this};     // also in the list of dead ones
  ClientPool::Node in_pool_{*this};
  bool dead_ = false;
  Instant opened_;
  Instant idle_until_ = never;
  AnyStream stream_;
};

/// The right to use one connection, and that connection. A moved-from lease has no right.
/// Threads: one core's.
class ClientPool::Lease {
 public:
  /// Makes the lease of a connection that no pool counts. It is closed after its use.
  explicit Lease(BlockPtr<PooledConnection> connection) noexcept
      : connection_(std::move(connection)) {}
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  /// Closes the connection, if there is one.
  ~Lease() { release(); }

  /// Takes the idle connection that was used last.
  /// Returns: false if no connection is idle.
  bool take_idle();
  /// Closes the connection, if there is one, and opens another: to the origin, to a proxy, or
  /// through a tunnel.
  /// Errors: ClientError (connect_failed, connect_timed_out, timed_out; those of open_tunnel());
  /// tls::Error; Errc::cancelled.
  /// Cancel: aborts the attempt.
  Task<Result<>> connect(const Url& url, Instant deadline);
  /// Returns the stream of a lease that has a connection.
  Stream& stream() const noexcept { return connection_->stream(); }
  /// Returns true if the server of the connection that connect() has opened speaks HTTP/2.
  bool is_http2() const noexcept { return http2_; }
  /// Takes the connection out. It counts as open until ClientPool::on_http2_closed().
  BlockPtr<PooledConnection> take_connection() noexcept { return std::move(connection_); }
  /// Takes the stream of a connection of HTTP/1.1 out, which the pool then does not count any more.
  AnyStream take_stream() noexcept {
    AnyStream stream = connection_->take_stream();
    close_connection();
    return stream;
  }

  /// Gives up the right. The connection becomes idle for at most `idle_max`.
  void release_for_reuse(Duration idle_max);
  /// Gives up the right and closes the connection.
  void release() noexcept;

 private:
  friend ClientPool;
  Lease(ClientPool& pool, Origin& origin) noexcept : pool_(&pool), origin_(&origin) {
    ++origin.users;
  }
  void close_connection() noexcept;
  static void give_up(SemaphorePermit& right, const Queue& waiting) noexcept;
  void begin_opening() noexcept;
  void end_opening() noexcept;

  ClientPool* pool_ = nullptr;  // nullptr for a connection that no pool counts
  Origin* origin_ = nullptr;
  SemaphorePermit of_origin_;
  SemaphorePermit of_pool_;
  BlockPtr<PooledConnection> connection_;
  // The end of connect_timeout, if the request has waited for a connection that did not open.
  Instant connect_until_ = never;
  bool opening_ = false;  // counted in Origin::opening
  bool http2_ = false;
};

struct ClientPool::Place {
  std::optional<Lease> lease = {};
  H2ClientConnection* http2 = nullptr;
};

}  // namespace weir::http
