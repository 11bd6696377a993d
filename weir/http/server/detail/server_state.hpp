// The state that the connections of one server on one core share.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/http/server/server_observer.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/lingering_streams.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

class Connection;
class OpenConnections;
class ServerState;

// The counters of the server.

/// Counts the events on the connections of a server, and reports the counts as metrics of the core.
/// Threads: the loop's, except for reading.
class ServerCounters final : MetricSource {
 public:
  explicit ServerCounters(Loop& loop) { loop.metrics().add(*this); }
  ~ServerCounters() { detach(); }

  void count_parse_error(ParseError error) noexcept {
    parse_errors[static_cast<std::size_t>(error)].add();
  }
  /// Returns the counters in words, parse errors by reason: "3 connections, 12 requests, 1
  /// bad_host".
  std::string summary() const;

  weir::detail::Counter connections_accepted;
  weir::detail::Counter connections_rejected;  ///< connections beyond connections_max
  weir::detail::Counter connections_evicted;   ///< idle connections closed for others
  weir::detail::Counter connections_open;
  weir::detail::Counter websockets;  ///< connections that became WebSockets
  weir::detail::Counter websockets_open;
  weir::detail::Counter http2_connections;  ///< connections that speak HTTP/2
  weir::detail::Counter http2_streams;      ///< streams that clients have opened
  weir::detail::Counter http2_streams_open;
  weir::detail::Counter http2_streams_reset;    ///< open streams that either side has reset
  weir::detail::Counter http2_streams_refused;  ///< streams beyond the limits
  weir::detail::Counter silent_connections;     ///< connections closed because no byte ever came
  weir::detail::Counter bad_proxy_headers;  ///< connections closed because of their PROXY header
  weir::detail::Counter slow_readers;       ///< connections closed because of Limits::write_rate
  weir::detail::Counter requests;           ///< parsed heads
  weir::detail::Counter responses;          ///< responses handed over for sending
  weir::detail::Counter handler_failures;
  std::array<weir::detail::Counter, parse_error_count>
      parse_errors;  ///< rejected requests, by reason

 private:
  void collect(MetricSnapshot& sum) const override;
};

// The ended requests, for the observer of the server.

/// Collects the records of ended requests, and passes them to the observer at the end of the turn
/// or when the array is full.
/// Threads: the loop's, except for reading the metrics.
class RequestRecorder final : TurnObserver, MetricSource {
 public:
  RequestRecorder(Loop& loop, ServerObserver& observer) noexcept;
  ~RequestRecorder();

  /// Counts a request that begins. Returns its time.
  Instant begin() noexcept {
    active_.add();
    return loop_.now();
  }
  /// Adds a request that has ended.
  void end(const EndedRequest& request) noexcept {
    active_.subtract();
    if (count_ == 0) loop_.observe_turn_end(*this);
    records_[count_] = request;
    if (++count_ == records_.size()) flush();
  }

 private:
  void flush() noexcept;
  void collect(MetricSnapshot& sum) const override;

  Loop& loop_;
  ServerObserver& observer_;
  weir::detail::Counter active_;  // requests that have begun and not ended
  std::size_t count_ = 0;
  std::array<EndedRequest, 64> records_;
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
  /// Returns the block of a common response of HTTP/2 in the same way.
  const ResponseBlockCache& common_block(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!common_block_.is_for(content_type)) common_block_.begin(now, content_type, ++blocks_);
    return common_block_;
  }

 private:
  void refresh() noexcept;

  Loop& loop_;
  Date date_;
  Instant date_until_;
  ResponseHeadCache common_;
  ResponseBlockCache common_block_;
  std::uint64_t blocks_ = 0;  // number of blocks that common_block_ has had
};

// The connections that a server may open, has open and rejects, on one core.

/// Connections for one server on all cores, apart from those of the other servers. The server thus
/// answers even if the others have all their connections open. A limit of the others that comes
/// from the number of descriptors is lower by this number while a server has the reserve.
/// Threads: any.
/// Lifetime: outlives its servers.
class ConnectionReserve {
 public:
  explicit ConnectionReserve(std::size_t size) noexcept : size_(size) {}
  std::size_t size() const noexcept { return size_; }
  /// Returns the number of open connections, which only the permits of its servers change.
  std::atomic<std::size_t>& open() noexcept { return open_; }

  /// Returns the sum of all reserves that servers of the group of `loop` have.
  /// Errors: throws std::bad_alloc.
  static const std::atomic<std::size_t>& sum_of(Loop& loop) { return Sum::of(loop).size; }

  /// A use of a reserve by the server of one core; it may have none.
  class Use {
   public:
    Use(ConnectionReserve* reserve, Loop& loop);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ConnectionReserve* reserve() const noexcept { return reserve_; }

   private:
    ConnectionReserve* reserve_;
    Loop& loop_;
  };

 private:
  struct Sum {
    static Sum& of(Loop& loop) { return loop.group().slots().get<Sum>(); }
    std::mutex mutex;                  // guards `servers` of all reserves of the group
    std::atomic<std::size_t> size{0};  // relaxed: only the number matters
  };

  std::size_t size_;
  std::size_t servers_ = 0;
  std::atomic<std::size_t> open_{0};  // relaxed: only the number matters
};

/// The number of open connections of one server on all cores of its runtime, which
/// Limits::connections_max limits. The server of a core is known by its router and its endpoint.
/// Threads: any.
struct ServerConnectionCount {
  /// Returns the count of the servers of the group of `loop` with this router and endpoint.
  /// Errors: throws std::bad_alloc.
  static std::shared_ptr<ServerConnectionCount> of(Loop& loop, const Router& router,
                                                   const Endpoint& endpoint);

  std::atomic<std::size_t> open{0};  // relaxed: only the number matters
};

/// The place of a Connection in the list of its server's open connections. It has no virtual
/// function, because a virtual table would make each idle connection 16 bytes larger.
class ConnectionNode : public weir::detail::ListNode {
 protected:
  ~ConnectionNode() = default;
};

/// A TLS handshake, after which a connection opens, or a WebSocket, which a connection has become.
class DrainNode : public weir::detail::ListNode {
 public:
  virtual void drain() = 0;

 protected:
  ~DrainNode() = default;
};

/// The right to one open connection. One limit of permits holds for all cores of the runtime
/// together: that of the server, of its ConnectionReserve, or of all servers without either.
class ConnectionPermit {
 public:
  ConnectionPermit() noexcept = default;  ///< no permit
  ConnectionPermit(ConnectionPermit&& other) noexcept
      : server_(std::exchange(other.server_, nullptr)) {}
  ConnectionPermit& operator=(ConnectionPermit&& other) noexcept {
    std::swap(server_, other.server_);
    return *this;
  }
  ~ConnectionPermit();
  explicit operator bool() const noexcept { return server_ != nullptr; }
  /// Returns the server that gave the permit.
  ServerState& server() const noexcept { return *server_; }
  /// Gives the right to another permit of the same server, and keeps only the server. Call
  /// forget() before the destructor.
  ConnectionPermit give_away() const noexcept { return ConnectionPermit(*server_); }
  void forget() noexcept { server_ = nullptr; }

 private:
  friend OpenConnections;
  explicit ConnectionPermit(ServerState& server) noexcept : server_(&server) {}
  ServerState* server_ = nullptr;
};

/// A TLS handshake or the read of a PROXY header, before a connection opens.
class HandshakeNode : public DrainNode {
 public:
  virtual Instant begun() const noexcept = 0;
  virtual const os::IpBytes& network() const noexcept = 0;
  /// Cancels the handshake, and gives up its permit.
  virtual ConnectionPermit evict() = 0;

 protected:
  ~HandshakeNode() = default;
};

/// A connection beyond the limit, or an evicted one, while the server answers it with 503.
class Rejection {
 public:
  explicit Rejection(ServerState& server) noexcept;
  ~Rejection();
  Rejection(const Rejection&) = delete;
  Rejection& operator=(const Rejection&) = delete;
  /// Returns true if more than OpenConnections::rejections_max rejected connections still wait for
  /// the peer to read the answer. This connection is then closed directly after its own answer.
  bool too_many() const noexcept;

 private:
  OpenConnections& connections_;
};

/// Limits the connections of a server, and drains those that are open.
/// Threads: the loop's.
class OpenConnections : DrainObserver {
 public:
  /// Half of the descriptors that a server does not use for connections.
  static constexpr std::size_t rejections_max = 32;
  /// Largest number of evicted connections of a core whose tasks have not ended.
  static constexpr std::size_t evictions_max = 16;

  /// `most` is Limits::connections_max, unless there is a `reserve`.
  OpenConnections(ServerState& server, Loop& loop, std::size_t most, ConnectionReserve* reserve);
  /// Counts apart from the servers of the same router at other endpoints. Call it before the first
  /// permit.
  /// Errors: throws std::bad_alloc.
  void set_endpoint(const Endpoint& endpoint);
  ~OpenConnections() { assert(open_.empty()); }

  /// Returns the number of permits. All servers of a runtime without a limit share them.
  std::size_t permits_max() const noexcept;
  /// Returns a permit for one more connection; nullopt if all permits are in use.
  std::optional<ConnectionPermit> try_acquire_permit() noexcept;
  /// Returns a permit for a new connection. If all permits are in use, a connection or a handshake
  /// of this core gives up its own, and closes soon. It has had no request for 1 s. It belongs to
  /// the network of the new connection, or to a network with at least two more connections and an
  /// eighth of a sample. A client with many connections thus costs only itself. Among the sample,
  /// the network with the most connections gives up the one that has waited longest.
  /// Returns: nullopt if no connection can give way, or if evictions_max have not ended.
  std::optional<ConnectionPermit> acquire_permit(const Stream& stream);
  /// Tells that the task of an evicted connection has ended.
  void eviction_ended() noexcept { --evictions_; }

  /// Adds or removes a connection that has a permit.
  void add(ConnectionNode& connection) noexcept;
  void remove(ConnectionNode& connection) noexcept;

  /// Adds a handshake or a WebSocket, which drain() then calls unless it has ended.
  void add(HandshakeNode& handshake) noexcept { handshakes_.push_back(handshake); }
  void add(DrainNode& websocket) noexcept { websockets_.push_back(websocket); }

  /// Calls `see` for each open connection, the oldest first, until it returns false.
  template <class See>
  void visit(const See& see) const {
    ConnectionNode* each = open_.front();
    while (each != nullptr && see(*each)) each = open_.next(*each);
  }

  /// Drains the open connections whose proof has ended; see Connection::proof_ended().
  void drain_unproven();

  bool draining() const noexcept { return draining_; }
  /// Drains the open connections, handshakes and WebSockets, and every later connection.
  void drain();

 private:
  void release_permit() noexcept;
  friend ConnectionPermit;
  friend Rejection;
  ServerState& server_;
  ConnectionReserve::Use reserve_;
  std::atomic<std::size_t>& all_open_;          // of all servers of the runtime, or of the reserve
  std::shared_ptr<ServerConnectionCount> own_;  // nullptr: connections_max_ limits all_open_
  std::size_t connections_max_;
  // Connections of reserves, which connections_max_ includes; nullptr if it does not.
  const std::atomic<std::size_t>* reserved_;
  std::size_t rejections_ = 0;
  std::size_t evictions_ = 0;
  bool draining_;
  weir::detail::List<ConnectionNode> open_;
  ConnectionNode* next_sampled_ = nullptr;        // nullptr: the front of open_
  weir::detail::List<HandshakeNode> handshakes_;  // the oldest first
  weir::detail::List<DrainNode> websockets_;
};

/// Keeps the scope of the connections open while connections are WebSockets, which are no tasks.
/// Threads: the loop's.
class OpenWebSockets {
 public:
  /// `open` is ServerCounters::websockets_open.
  OpenWebSockets(Loop& loop, const weir::detail::Counter& open) noexcept
      : loop_(loop), open_(open) {}
  /// Keeps the scope open until no WebSocket is open. At least one is open now.
  /// Errors: throws std::bad_alloc.
  void keep_open(Scope& connections);
  void on_closed() noexcept;

 private:
  class AllClosedAwaiter;
  Task<> wait();

  Loop& loop_;
  const weir::detail::Counter& open_;
  loop::Runnable* waiter_ = nullptr;  // of wait()
  bool waits_ = false;
};

// The state itself.

/// The servers of one core, for reports. It is a slot of the loop.
struct CoreServers {
  weir::detail::List<ServerState> servers;
};

/// The state of one server on one core, which the server's connections share.
/// Threads: one loop's, except for reading the counters.
/// Lifetime: outlives its connections.
class ServerState : public weir::detail::ListNode {
 public:
  /// `tls`, `plain_http2`, `proxy_protocol` and `observer` are those of ServeOptions. A `reserve`
  /// takes the place of Limits::connections_max.
  ServerState(Loop& loop, const Router& router, const Limits& limits,
              std::shared_ptr<tls::Server> tls = {}, PlainHttp2 plain_http2 = PlainHttp2::off,
              std::shared_ptr<const ProxyProtocol> proxy_protocol = {},
              ServerObserver* observer = nullptr, ConnectionReserve* reserve = nullptr);

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
