// The framing of HTTP/2: one request and its response as one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/exchange.hpp"
#include "weir/http/server/detail/linger.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/ws/detail/h2_tunnel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class H2Connection;

/// The place of an H2Carrier in the list of its connection.
class H2CarrierNode : public weir::detail::ListNode {
 protected:
  ~H2CarrierNode() = default;
};

/// Carries one Exchange over one stream, in one block of the core. A handler that does not wait is
/// answered without a coroutine. Any other request has a coroutine, which run() is. The stream of a
/// CONNECT may become the tunnel of a WebSocket (RFC 8441).
///
/// ```text
///   fresh ---> sending -------+
///     |  \                    v
///     |   +---> running ---> ended ---> lingering
///     +-----------------------^
/// ```
/// Threads: those of the connection.
/// Lifetime: the connection creates it; it destroys itself through H2Connection::end(). If the
/// client still sends the body of an answered request, it lingers before that; see Linger.
class H2Carrier final : public H2Stream,
                        public H2CarrierNode,
                        public Carrier,
                        public H2TunnelCarrier {
 public:
  explicit H2Carrier(H2Connection& connection) noexcept;
  ~H2Carrier();

  RequestHead& head() noexcept { return exchange_.head(); }
  const Call& call() const noexcept { return exchange_.call(); }
  /// Returns true if the request was answered without a wait, so that the carrier can carry another
  /// one after reuse().
  bool reusable() const noexcept { return reusable_; }
  void reuse() noexcept;

  /// Spawns the coroutine of a request that has to wait.
  void spawn_run();

  // Events of the stream. Each of them may destroy the carrier.

  /// Begins the request of an accepted stream, whose head is complete. The bytes behind a CONNECT
  /// are no body (RFC 9110 §9.3.6).
  void begin(bool is_connect);
  /// Answers a request whose head is rejected, instead of begin().
  void reject_head(ParseError error);
  /// Adds bytes of the body.
  void on_data(Bytes bytes, bool end_stream);
  Headers& received_trailers() noexcept { return trailers_; }
  /// Ends the body after trailers.
  void on_end();
  /// Ends the body with the error of its trailers, which exceed a limit or have a forbidden field.
  void on_rejected_trailers(ParseError error);
  /// The stream was reset, or the connection is lost: nothing more can be received or sent.
  void on_gone();
  /// Sends a part of what waits; the stream is the next sender.
  void send_part();
  /// Counts a time in which the client has not allowed bytes to be sent. `sent` are the bytes of
  /// DATA of the whole connection. Returns true if the client reads too slowly.
  bool is_too_slow(Duration waited, std::uint32_t sent) noexcept;
  /// Returns true if a part of the response waits to be sent.
  bool has_pending() const noexcept { return !pending_.empty(); }
  /// Returns true if the request is answered, and the rest of its body is dropped as it arrives.
  bool lingers() const noexcept { return state_ == State::lingering; }
  /// Begins to linger. Throws std::bad_alloc if there is no memory for a WINDOW_UPDATE.
  void begin_linger();
  /// Ends a carrier that has lingered long enough.
  void check_linger();
  /// Returns the bytes of the body that are collected so far.
  std::size_t collected() const noexcept { return collected_; }
  /// Returns the same, and forgets them.
  std::size_t take_collected() noexcept { return std::exchange(collected_, 0); }
  /// Returns the bytes by which the window of a body that is collected should grow.
  std::size_t withheld() const noexcept { return withheld_; }
  /// Lets the client send more of that body.
  void allow_more();

  // The parts of a Carrier.

  os::Address peer_address() const override;
  const TlsInfo* tls() const noexcept override;
  const void* connection() const noexcept override { return &connection_; }
  bool is_http2() const noexcept override { return true; }
  bool is_connect() const noexcept override { return tunnel_ == TunnelState::asked; }
  bool gone() const noexcept override { return gone_ || closed(); }
  Taken take(Wanted wanted, Bytes& piece) override;
  void release_piece() override;
  Task<Result<>> wait_for_input(Instant until) override;
  std::uint64_t input_bytes() const noexcept override { return received_; }
  bool may_arrive() const noexcept override;
  const Headers& trailers() const noexcept override { return trailers_; }

  Task<Result<>> send_interim(const ResponseHead& head) override;
  void send_head(const ResponseHead& head, bool ends) override;
  Sent send_common(const Response& response) override;
  Sent send_message(const ResponseHead& head, std::string_view text) override;
  std::uint64_t unsent() const noexcept override { return pending_.size(); }
  Task<Result<>> send_rest(const ResponseHead& head, std::string_view text) override;
  Task<Result<>> send_piece(Bytes piece) override;
  void end(std::string_view trailers) override;
  Task<Result<>> flush() override;
  void open_websocket(BlockPtr<ServedWebSocket> socket) override;

  // The tunnel of a WebSocket.

  Result<> finish_writing() override;
  void close_tunnel() noexcept override { observe_hangup(nullptr); }
  Loop& loop() const noexcept override;

 private:
  enum class State : std::uint8_t {
    fresh,      ///< the request has not begun, or is answered in place
    sending,    ///< the writer of the connection sends the rest of the response
    running,    ///< run() destroys the carrier
    ended,      ///< the request has ended
    lingering,  ///< the rest of its body is dropped as it arrives
  };
  /// The bytes behind the head of a CONNECT.
  enum class TunnelState : std::uint8_t {
    none,   ///< the request is no CONNECT
    asked,  ///< a success would begin a tunnel
    open,   ///< the stream carries a WebSocket
    ended,  ///< the WebSocket has ended
  };

  void change(State next) noexcept;
  void take_next(Exchange::Next next);
  Task<> run();
  Task<> serve();
  Task<> serve_websocket();
  void finish() noexcept;
  bool may_linger() const noexcept;
  void drop_late(std::size_t count, bool end_stream);
  bool is_tunnel() const noexcept { return tunnel_ == TunnelState::open; }
  bool has_input() const noexcept override { return !arrived_.empty(); }
  Buffer take_input() override;
  std::error_code input_error() const noexcept override;
  bool is_gone() const noexcept override { return gone_; }
  bool may_send() const noexcept override { return !gone() && !local_ended(); }
  bool send_piece_now(Bytes piece) override;
  void drop_piece() noexcept override;
  template <class Write>
  void write_headers(std::size_t size, const Write& write, bool ends);
  bool send_text(std::string_view text);
  void wait_to_send(bool ends);
  void add_arrived(Bytes bytes);
  void begin_collecting();
  void limit_share();
  std::size_t take_returned(std::size_t count) noexcept;
  void return_lent();
  void drop_arrived();
  void add_collected(std::size_t count);

  H2Connection& connection_;
  Exchange exchange_;
  // The body of the request.
  Buffer lent_;     // the last piece of take()
  Buffer arrived_;  // the bytes behind it
  Headers trailers_;
  AutoResetEvent input_;  // something has arrived
  std::uint64_t received_ = 0;
  std::size_t collected_ = 0;
  std::size_t withheld_ = 0;  // bytes that the window of the stream lacks, because of bodies_max
  std::size_t returned_ = 0;  // bytes of both buffers that the window of the connection has back
  std::optional<Linger> linger_;  // of an answered request
  // The response.
  Bytes pending_;            // bytes that wait to be sent
  ManualResetEvent output_;  // the pending bytes have been sent
  RateTracker write_rate_;
  std::uint32_t sent_since_check_ = 0;
  BlockPtr<ServedWebSocket> websocket_;
  std::error_code tunnel_error_;  // of the input of a tunnel
  State state_ = State::fresh;
  TunnelState tunnel_ = TunnelState::none;
  bool reusable_ = true;       // nothing has waited
  bool pending_ends_ = false;  // the stream ends with the pending bytes
  bool collects_ = false;      // the body is wanted whole
  bool gone_ = false;          // the peer, or the connection
};

}  // namespace weir::http
