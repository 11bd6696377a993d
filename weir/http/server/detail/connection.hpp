// One connection of an HTTP server: its stream, its idle state, its timer and its permit.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/state_table.hpp"
#include "weir/http/server/detail/connection_node.hpp"
#include "weir/http/server/detail/connection_permit.hpp"
#include "weir/http/server/detail/connection_totals.hpp"
#include "weir/http/server/detail/linger.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/os/address.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ConnectionIo;
class H2Connection;
class H1Connection;
struct H2ConnectionState;

/// Serves the connection until the peer leaves, the peer breaks a rule, or the server drains. No
/// action of the peer is an error of the task. The permit is released when the stream is closed
/// or moved to LingeringStreams.
/// The first request must begin before `first_request_until`, if Limits does not end it earlier.
/// Cancel: cancels the handlers, waits for them and closes the connection.
Task<> serve_connection(ConnectionPermit permit, AnyStream stream,
                        Instant first_request_until = never);

/// Answers 503 to a connection beyond the limit, lingers and closes it. A lingering connection
/// holds no buffer.
/// Cancel: closes immediately.
Task<> reject_connection(ServerState& server, AnyStream stream);

/// A Connection is the state of a connection while it is idle; very many may exist. A connection
/// with a request also has a ConnectionIo.
///
/// One timer serves all deadlines of requests, and stays armed between reads. The timer is lazy: a
/// deadline costs a few stores and is compared with the clock only when the timer fires. A timeout
/// of the Stream would start and cancel a timer for each request, about 140 instructions and a
/// reading of the clock. It would also make an idle connection 48 bytes larger, and a drain could
/// not shorten it.
///
/// A Connection is a parameter of the coroutine that serves it, and can be moved until open(), so
/// that the frame holds the stream only once.
/// Threads: its loop's.
/// Lifetime: its server outlives it.
class Connection final : public ConnectionNode, loop::Timer {
 public:
  /// The present read: the bytes that the peer is expected to send, or the end of the read. Each
  /// read begins with `none` and ends with it.
  enum class ReadState : std::uint8_t {
    none,     ///< no read
    request,  ///< the first bytes of a request
    head,     ///< the rest of a head
    body,     ///< bytes of a body
    http2,    ///< any bytes of HTTP/2
    expired,  ///< the deadline has passed, and the read was cancelled
  };

  /// A connection without a permit; it is never open.
  explicit Connection(AnyStream stream) noexcept
      : loop::Timer(&on_timer), stream_(std::move(stream)) {}
  Connection(ConnectionPermit permit, AnyStream stream, Instant first_request_until) noexcept
      : loop::Timer(&on_timer),
        permit_(std::move(permit)),
        stream_(std::move(stream)),
        read_deadline_(first_request_until) {}
  Connection(Connection&& other) noexcept
      : ConnectionNode(),
        loop::Timer(&on_timer),
        permit_(std::move(other.permit_)),
        stream_(std::move(other.stream_)),
        read_deadline_(other.read_deadline_) {
    assert(other.life_ == Life::unopened && !other.armed());
    assert(other.io_ == nullptr && !other.was_active() && other.peer_ == nullptr);
  }
  ~Connection();

  /// Registers the connection for the drain; it must not be moved any more. `cancel` is the
  /// cancel source of the task that serves it.
  void open(CancelSource* cancel) noexcept;
  bool cancelled() const noexcept { return cancel_ != nullptr && cancel_->cancelled(); }
  /// Returns the context of the task that serves an open connection.
  Context context() const noexcept { return {&server().loop(), cancel_}; }
  /// Returns the server of an open connection.
  ServerState& server() const noexcept { return permit_.server(); }
  Stream& stream() noexcept { return *stream_; }
  /// Returns the loop by a virtual call; server().loop() costs less for an open connection.
  Loop& loop() const noexcept { return stream_->loop(); }
  /// Returns the address of the peer. The first call asks the kernel, which forgets the address
  /// when the peer resets the connection; later calls return the same.
  os::Address peer_address();
  /// Returns os::client_network() of the peer.
  os::IpBytes network() const noexcept;

  /// Shortens the wait for a request or for its head.
  void drain();

  /// Returns the time since which the connection waits for a request and has none; `never` if it
  /// has a request or a part of one, or if the end of its proof bounds the wait.
  Instant idle_since() const noexcept;
  /// Returns the time from which the connection may give way to another one, because it is idle or
  /// its head of HTTP/1 does not arrive; `never` if it has a request. Bytes of a younger one may
  /// still be on their way.
  Instant may_be_evicted_from() const noexcept;
  static constexpr Duration idle_before_eviction = std::chrono::seconds(1);
  static constexpr Duration head_before_eviction = std::chrono::seconds(2);
  /// Ends the wait of a connection that may be evicted, which serves no further request and closes
  /// soon. Returns its permit.
  ConnectionPermit evict() noexcept;
  bool evicted() const noexcept { return life_ == Life::evicted; }

  /// The awaiter of a read with a deadline, which costs no coroutine frame.
  template <class Plain>
  class DeadlineAwaiter : public Plain::Awaiter {
    using Base = typename Plain::Awaiter;

   public:
    DeadlineAwaiter(Connection& connection, ReadState what, Instant deadline,
                    const Plain& plain) noexcept
        : Base(plain), connection_(connection) {
      connection.begin_read(what, deadline);
    }
    auto await_resume() noexcept {
      auto read = Base::await_resume();
      if (read) {
        connection_.totals_.add_received(size_of(*read));
      } else {
        read = fail(connection_.to_timeout(read.error()));
      }
      connection_.change(ReadState::none);
      return read;
    }

   protected:
    Connection& connection() const noexcept { return connection_; }

   private:
    Connection& connection_;
  };
  using ReadAwaiter = DeadlineAwaiter<Read>;
  using ReadIntoAwaiter = DeadlineAwaiter<ReadInto>;
  /// Reads like Stream::read() and Stream::read_into(), until `deadline`. The caller awaits the
  /// result immediately: `co_await connection.read(ReadState::head, deadline)`.
  /// Errors: those of Stream::read(); Errc::timed_out after the deadline.
  /// Cancel: that of Stream::read().
  ReadAwaiter read(ReadState what, Instant deadline) noexcept {
    return {*this, what, deadline, stream_->read()};
  }
  ReadIntoAwaiter read_into(MutableBytes target, ReadState what, Instant deadline) noexcept {
    return {*this, what, deadline, stream_->read_into(target)};
  }
  /// Returns the age of an open connection, and the bytes of HTTP that it has read and written.
  /// It does not count the bytes of TLS, nor input that is dropped when the connection ends.
  const ConnectionTotals& totals() const noexcept { return totals_; }
  /// Counts bytes that were written.
  void count_sent(std::size_t bytes) noexcept { totals_.add_sent(bytes); }
  ReadState read_state() const noexcept { return read_state_; }
  /// Returns the deadline of the present read.
  Instant read_deadline() const noexcept { return read_deadline_; }
  /// Makes the deadline of the present read earlier; ignores a later `deadline`. Call it only
  /// during a read.
  void shorten_deadline(Instant deadline) noexcept {
    if (deadline < read_deadline_) watch_read(deadline);
  }

  /// Counts one use of the loop's turn. Returns true if this connection has had its share of the
  /// turn, so that other connections come first. Reads and writes that never wait would otherwise
  /// block the other connections.
  bool turn_budget_used() noexcept {
    // The turn number is cut to 16 bits. Two turns with one number cost only an unneeded wait.
    const auto turn = static_cast<std::uint16_t>(loop().counters().turns.value());
    if (std::exchange(budget_turn_, turn) != turn) turn_uses_ = 0;
    return ++turn_uses_ > turn_budget;
  }

  /// Returns the ConnectionIo that works on the stream's bytes; nullptr while the connection is
  /// idle.
  ConnectionIo* io() const noexcept { return io_; }
  /// Returns true if there has ever been a ConnectionIo.
  bool was_active() const noexcept { return protocol_ != Protocol::unknown; }
  /// Creates the H1Connection for `bytes`, the first bytes of a request.
  H1Connection& activate(Buffer bytes);
  /// Returns the H1Connection of an open connection that is not idle.
  H1Connection& http1() const noexcept;
  /// Changes to HTTP/2, for the rest of the connection. There is no H1Connection any more.
  void begin_http2();
  bool is_http2() const noexcept { return protocol_ == Protocol::http2; }
  /// Creates the H2Connection for `bytes`, which may be empty.
  H2Connection& activate_http2(Buffer bytes);
  /// Returns the H2Connection of an open connection that is not idle.
  H2Connection& http2() const noexcept;
  /// Destroys the H1Connection or the H2Connection. All requests are answered, or the connection is
  /// broken.
  void deactivate() noexcept;

  /// Gives up the stream and the permit of a connection that becomes a WebSocket. The connection is
  /// closed from now on.
  struct Parts {
    ConnectionPermit permit;
    AnyStream stream;
    Buffer input;
  };
  Parts release() noexcept;
  /// Gives up the stream of an evicted connection, whose task ends now.
  AnyStream take_stream() noexcept {
    assert(evicted());
    return std::move(stream_);
  }

  /// Returns true if the certificate of the peer no longer proves its identity. The connection then
  /// takes no new request; the present ones run to their ends. See TlsInfo::proof_ended().
  bool proof_ended() const noexcept { return has_proof_ && now_unproven(); }
  /// Returns when the proof ends by time; `never` without a certificate.
  Instant proof_deadline() const noexcept;
  /// Returns true if the connection ends after its present requests.
  bool ends() const noexcept { return server().draining() || proof_ended(); }

  /// Returns the deadline of the first bytes of the next request, or of any bytes of HTTP/2.
  Instant request_deadline() const noexcept;
  /// Time for the rest of a head when the server drains.
  static constexpr Duration drain_grace_head = std::chrono::seconds(2);

  /// Shuts down the sending side, then reads and drops what the peer still sends, within the bounds
  /// of Linger.
  /// Cancel: closes immediately.
  Task<> linger(const Limits& limits, LateInput expected = LateInput::none);
  /// Moves the stream to LingeringStreams, where the peer can still read the last response.
  void linger_detached() noexcept;

 private:
  friend ConnectionIo;
  static constexpr std::uint8_t turn_budget = 16;

  /// The life of the connection: unopened -> open -> released, or open -> evicted. Its destructor
  /// closes it in any state.
  enum class Life : std::uint8_t {
    unopened,  ///< may be moved; without a permit it stays so
    open,      ///< its server knows it
    evicted,   ///< its server knows it, but another connection has its permit
    released,  ///< has become a WebSocket, which has its stream and its permit
  };
  /// The protocol: unknown -> http1 -> http2, or unknown -> http2. A plain connection becomes one
  /// of HTTP/2 by the preface (RFC 9113 §3.3), one of TLS by ALPN (RFC 9113 §3.2).
  enum class Protocol : std::uint8_t {
    unknown,  ///< no byte has been used
    http1,
    http2,
  };

  void change(Life next) noexcept;
  void change(Protocol next) noexcept;
  void change(ReadState next) noexcept {
    // A read that cannot begin, because there is no memory, leaves its state to the next read.
    using S = ReadState;
    static constexpr weir::detail::StateTable<S, 6> table{
        {S::none, {S::request, S::head, S::body, S::http2}},
        {S::request, {S::none, S::expired, S::request, S::head, S::body, S::http2}},
        {S::head, {S::none, S::expired, S::request, S::head, S::body, S::http2}},
        {S::body, {S::none, S::expired, S::request, S::head, S::body, S::http2}},
        {S::http2, {S::none, S::expired, S::request, S::head, S::body, S::http2}},
        {S::expired, {S::none}},
    };
    table.change(read_state_, next);
  }
  /// Notes that there is a ConnectionIo. The protocol is HTTP/1 unless it is known already.
  void set_io(ConnectionIo& io) noexcept {
    assert(io_ == nullptr);
    io_ = &io;
    if (protocol_ == Protocol::unknown) change(Protocol::http1);
  }
  bool is_open() const noexcept { return life_ == Life::open || life_ == Life::evicted; }
  static std::size_t size_of(const Buffer& bytes) noexcept { return bytes.size(); }
  static std::size_t size_of(std::size_t bytes) noexcept { return bytes; }
  static void on_timer(loop::Timer& timer);
  void forget_peer() noexcept;
  bool now_unproven() const noexcept;
  void begin_read(ReadState what, Instant deadline) noexcept {
    change(what);
    watch_read(deadline);
  }
  void watch_read(Instant deadline) noexcept {
    read_deadline_ = deadline;
    watch_until(deadline);
  }
  /// Returns Errc::timed_out if the deadline of the read caused `error`; else `error`.
  std::error_code to_timeout(std::error_code error) const noexcept {
    const bool timed_out = read_state_ == ReadState::expired && error == Errc::cancelled;
    return timed_out ? make_error_code(Errc::timed_out) : error;
  }
  Instant check_read(Instant now);
  Duration request_wait() const noexcept;
  void watch_until(Instant deadline) noexcept {
    if (!armed() || deadline < loop::Timer::deadline()) loop().timers().start(*this, deadline);
  }

  // The small members lie in the padding of Timer's last word.
  ReadState read_state_ = ReadState::none;
  Life life_ : 2 = Life::unopened;
  Protocol protocol_ : 2 = Protocol::unknown;
  bool has_proof_ : 1 = false;  // a certificate of the peer was verified
  std::uint8_t turn_uses_ = 0;
  std::uint16_t budget_turn_ = 0;
  ConnectionPermit permit_;  // released after the stream is closed
  AnyStream stream_;
  Instant read_deadline_{};  // at first, the latest begin of the first request
  ConnectionIo* io_ = nullptr;
  // Both are in blocks of the core. A connection has at most one, by is_http2().
  union {
    H2ConnectionState* http2_;
    os::Address* peer_ = nullptr;  // the result of peer_address(), if it was called
  };
  CancelSource* cancel_ = nullptr;
  ConnectionTotals totals_;
};

}  // namespace weir::http
