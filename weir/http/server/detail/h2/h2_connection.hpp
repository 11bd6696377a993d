// The HTTP/2 side of a connection and of its requests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/server/detail/call.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/linger.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/ws/detail/h2_tunnel.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class H2Connection;

/// The state that an HTTP/2 connection keeps while it is idle.
struct H2ConnectionState {
  explicit H2ConnectionState(ServerState& server) noexcept;

  /// Returns the end of the time in which a connection without streams may be silent.
  Instant idle_deadline(const ServerState& server) const noexcept;

  H2Session session;
  HpackTable table;
  HpackEncoderState encoder;
  Instant idle_since;          ///< the end of the last stream
  BlockPtr<os::Address> peer;  ///< the result of Connection::peer_address(), if it was called
};

/// The place of an H2Exchange in the list of its connection.
class ExchangeNode : public weir::detail::ListNode {
 protected:
  ~ExchangeNode() = default;
};

/// Carries one Call over one stream, in one block of the core. A handler that does not wait is
/// answered without a coroutine. Any other request has a coroutine, which run() is.
/// Threads: those of the connection.
/// Lifetime: the connection creates it; it destroys itself through H2Connection::end(). If the
/// client still sends the body of an answered request, the exchange lingers before that; see
/// Linger.
class H2Exchange final : public H2Stream,
                         public ExchangeNode,
                         public BodySource,
                         public H2TunnelCarrier {
 public:
  explicit H2Exchange(H2Connection& connection) noexcept;
  H2Exchange(const H2Exchange&) = delete;
  H2Exchange& operator=(const H2Exchange&) = delete;
  ~H2Exchange() override;

  RequestHead& head() noexcept { return call_.head(); }
  const Call& call() const noexcept { return call_; }
  /// Returns true if the request was answered without a wait, so that the exchange can carry
  /// another one after reuse().
  bool reusable() const noexcept { return !waited_; }
  void reuse() noexcept;

  /// Spawns the coroutine of a request that has to wait.
  void spawn_run();

  // Events of the stream. Each of them may destroy the exchange.

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
  /// Returns true if the response waits for the end of a body that the handler does not read.
  bool awaits_end() const noexcept { return awaits_end_; }
  /// Returns true if the request is answered, and the rest of its body is dropped as it arrives.
  bool lingers() const noexcept { return linger_.has_value(); }
  /// Begins to linger. Throws std::bad_alloc if there is no memory for a WINDOW_UPDATE.
  void begin_linger();
  /// Ends an exchange that has lingered long enough.
  void check_linger();
  /// Returns the bytes of the body that are collected so far.
  std::size_t collected() const noexcept { return collected_; }
  /// Returns the same, and forgets them.
  std::size_t take_collected() noexcept { return std::exchange(collected_, 0); }
  /// Returns the bytes by which the window of a body that is collected should grow.
  std::size_t withheld() const noexcept { return withheld_; }
  /// Lets the client send more of that body.
  void allow_more();
  /// Counts a time in which such a body should have arrived. Answers 408 if it is too slow.
  void check_body(Duration waited);

  // The tunnel of a WebSocket.

  Result<> finish_writing() override;
  void close_tunnel() noexcept override;
  Loop& loop() const noexcept override;

  // The body, as the handler reads it.

  BodyLength length() const noexcept override { return length_; }
  const Headers& trailers() const noexcept override { return trailers_; }
  os::Address peer_address() const override;
  const TlsInfo* tls() const noexcept override;
  bool is_http2() const noexcept override { return true; }
  const void* connection() const noexcept override { return &connection_; }

 private:
  class Sink;
  /// The bytes behind the head of a CONNECT.
  enum class TunnelState : std::uint8_t {
    none,   ///< the request is no CONNECT
    asked,  ///< a success would begin a tunnel
    open,   ///< the stream carries a WebSocket
    ended,  ///< the WebSocket has ended
  };
  bool is_tunnel() const noexcept { return tunnel_ == TunnelState::open; }

  Task<> run();
  Task<> respond();
  Task<> drop_body();
  Task<> serve_websocket();
  bool has_input() const noexcept override { return !arrived_.empty(); }
  Buffer take_input() override;
  std::error_code input_error() const noexcept override;
  bool is_gone() const noexcept override { return gone_; }
  bool may_send() const noexcept override { return !gone_ && !closed() && !local_ended(); }
  bool send_piece_now(Bytes piece) override;
  void drop_piece() noexcept override;
  Task<> send_stream();
  bool send_response();
  bool send_text(std::string_view text);
  void send_head(bool ends);
  void reject(ParseError error);
  void answer_now();
  void limit_body();
  bool needs_no_more() const noexcept;
  std::unexpected<std::error_code> fail_read() noexcept;
  bool wait_for_end();
  void end_wait();
  void report_end() noexcept;
  void finish() noexcept;
  bool may_linger() const noexcept;
  void drop_late(std::size_t count, bool end_stream);
  void return_lent();
  Task<Result<>> send_piece(Bytes piece);
  Task<Result<Bytes>> read_piece() override;
  Task<Result<std::string_view>> collect() override;
  Task<Result<>> fetch();
  std::uint64_t announced_bytes() const noexcept { return length_.bytes().value_or(0); }
  void add_arrived(Bytes bytes);
  void limit_share();
  std::size_t take_returned(std::size_t count) noexcept;
  void drop_arrived();
  void add_collected(std::size_t count);
  Status body_error_status() const noexcept;

  H2Connection& connection_;
  Call call_;
  // The body of the request.
  BodyLength length_;
  Buffer lent_;     // the last piece of read()
  Buffer arrived_;  // the bytes behind it
  Headers trailers_;
  ManualResetEvent input_;  // something has arrived
  RateTracker body_rate_;
  std::uint64_t body_max_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t received_at_check_ = 0;
  std::size_t collected_ = 0;
  std::size_t withheld_ = 0;  // bytes that the window of the stream lacks, because of bodies_max
  std::size_t returned_ = 0;  // bytes of both buffers that the window of the connection has back
  std::error_code body_error_;
  std::optional<Linger> linger_;  // of an answered request
  // The response.
  Bytes pending_;            // bytes that wait to be sent
  ManualResetEvent output_;  // the pending bytes have been sent
  RateTracker write_rate_;
  std::uint32_t sent_since_check_ = 0;
  TunnelState tunnel_ = TunnelState::none;
  bool pending_ends_ = false;    // the stream ends with the pending bytes
  bool collects_ = false;        // collect() takes the body; body_max_ bounds it
  bool drops_ = false;           // the rest of the body is dropped as it arrives
  bool error_was_read_ = false;  // read() has returned body_error_
  bool awaits_continue_ = false;
  bool awaits_end_ = false;
  bool head_sent_ = false;
  bool waited_ = false;  // the request has waited
  bool runs_ = false;    // run() destroys the exchange
  bool gone_ = false;
};

/// Serves the requests of one HTTP/2 connection at the same time. A Connection creates an
/// H2Connection when bytes arrive, and destroys it when the connection is idle again. advance()
/// answers requests without a coroutine if none has to wait. Otherwise run() has a coroutine that
/// reads, one that writes, and one for each handler that waits. The output of one turn of the loop
/// goes into one write. Large bodies on plain connections go into writes of their own.
/// Threads: its loop's.
/// Lifetime: `state` outlives the H2Connection.
class H2Connection : public ConnectionIo {
 public:
  /// `input` may be empty.
  H2Connection(ServerState& server, Connection& connection, H2ConnectionState& state,
               Buffer input) noexcept;
  ~H2Connection();

  /// Handles the input until a request has to wait. Call it at most once, before run().
  /// Returns: true if the connection is idle after output() is sent. Otherwise run() must follow.
  bool advance() noexcept;

  /// The reason for the end of run().
  enum class End : std::uint8_t {
    idle,    ///< no stream has been open for a while
    closed,  ///< the connection ends; the peer should be able to read the last bytes
    broken,  ///< nothing can be sent any more
  };
  /// Serves until the peer leaves or breaks a rule, the server has drained, or the connection has
  /// been idle for `idle_grace`.
  /// Returns: the reason for the end.
  /// Cancel: cancels the handlers and closes the connection.
  Task<End> run();

  ServerState& server() noexcept { return server_; }
  H2Session& session() noexcept { return session_; }
  HpackEncoderState& encoder() noexcept { return state_.encoder; }
  /// Returns the context of the requests.
  Context context() const noexcept { return owner_.context(); }
  /// Returns the scope of the requests that wait, or nullptr before run().
  Scope* scope() const noexcept { return scope_; }
  /// Makes run() call spawn_run() of `exchange` when there is a scope. No input is taken before.
  void wait_for_scope(H2Exchange& exchange) noexcept { waiting_ = &exchange; }
  /// Wakes the writer, which sends what is in the output of the session.
  void wake_writer() { output_ready_.set(); }
  /// Counts bytes of a body that `exchange` has collected. Below the limit all bodies grow; above
  /// it only one.
  void add_collected(H2Exchange& exchange, std::size_t count);
  /// Returns true if the client may have to wait because of that limit.
  bool needs_window(const H2Exchange& exchange) const noexcept {
    return exchange.withheld() >= server_.limits().h2.stream_window / 2;
  }
  /// Returns the bytes that the body of one stream may keep of the connection's window, unless
  /// read() takes them.
  std::size_t window_share() const noexcept {
    const H2Limits& limits = server_.limits().h2;
    return std::max(limits.connection_window, window_default) / std::max(limits.streams_max, 1U);
  }
  /// Returns true if a body of `size` bytes should be sent with send_in_place().
  bool sends_in_place(std::size_t size) noexcept {
    return size >= in_place_min && stream().tls() == nullptr;
  }
  /// Sends as much of a body as the kernel takes without waiting, from the memory of the body. Only
  /// send_part() calls this function.
  /// Returns: the number of bytes of the body that were sent; 0 is possible, as for a small part.
  std::size_t send_in_place(H2Exchange& exchange, Bytes body, bool end_stream);
  /// Checks from now on how fast the client allows bytes to be sent.
  void watch_progress() noexcept;
  /// Resets a stream, unless it is closed. Without memory, the connection ends.
  void reset(H2Exchange& exchange, H2Error error) noexcept;
  /// Destroys an exchange.
  void end(H2Exchange& exchange) noexcept;
  /// Keeps an exchange that is answered, until the client has sent the rest of the body.
  void linger(H2Exchange& exchange) noexcept;
  /// Calls `see` with the exchange of each open stream, the oldest first, until it returns false.
  template <class See>
  void visit(const See& see) const {
    const ExchangeNode* each = exchanges_.front();
    while (each != nullptr && see(*static_cast<const H2Exchange*>(each))) {
      each = exchanges_.next(*each);
    }
  }

 private:
  Task<> serve(Scope& scope);
  Task<bool> read_all();
  Task<> write_all();
  bool handle_input();
  Task<bool> output_taken();
  /// Returns true if the client must read before the server reads more.
  bool output_full() const noexcept {
    return session_.output().size() >= server_.limits().h2.output_max;
  }
  /// Ends the connection, because there is no memory for its output.
  void give_up() noexcept;
  bool handle(const H2Event& event);
  void lose(const H2Event& event);
  bool open(const H2Event& event);
  void count_malformed() noexcept;
  void fail_block();
  bool read_trailers(const H2Event& event);
  bool pump();
  void abort_exchanges();
  void drop_collected(H2Exchange& exchange);
  Instant deadline() noexcept;
  bool on_deadline();
  void check_progress(Instant now);
  bool is_idle() const noexcept;
  bool may_become_idle(Instant until) const noexcept;
  bool finished() const noexcept {
    return session_.failed() || broken() || (session_.drained() && session_.streams_held() == 0);
  }

  static constexpr Duration check_interval = std::chrono::seconds(1);
  static constexpr Duration drain_grace = std::chrono::seconds(1);
  // Smaller bodies are copied, so that they share a write with other output.
  static constexpr std::size_t in_place_min = 64 * 1024;          // of a body
  static constexpr std::size_t in_place_allowed_min = 32 * 1024;  // allowed by the windows
  // Bytes of bodies after which the reader lets the handlers run.
  static constexpr std::size_t new_data_max = 48 * 1024;
  // run() keeps its coroutines for this time, so that a busy connection does not make them again.
  static constexpr Duration idle_grace = std::chrono::milliseconds(100);

  ServerState& server_;
  Connection& owner_;
  H2ConnectionState& state_;
  H2Session& session_;
  weir::detail::List<ExchangeNode> exchanges_;
  BlockPtr<H2Exchange> spare_;  // for the next request
  AutoResetEvent output_ready_;
  AutoResetEvent output_taken_;
  Scope* scope_ = nullptr;         // of run()
  H2Exchange* waiting_ = nullptr;  // the exchange that waits for run()
  Duration delay_{};               // of the session, before it takes more input
  bool share_used_ = false;        // the requests have used their share of the turn
  std::size_t new_data_ = 0;       // bytes of bodies since the last yield() of the reader
  std::uint64_t collected_ = 0;    // bytes of bodies
  H2Exchange* growing_ = nullptr;  // the one whose body grows above the limit
  Instant frame_since_ = never;    // when the present incomplete frame began
  std::uint32_t frame_ = 0;        // its number
  std::uint32_t sent_ = 0;         // bytes of DATA until the last check
  Instant next_check_ = never;     // of the progress of the streams
  Instant drain_until_ = never;    // when the drain stops to wait for its PING
  bool wrote_in_place_ = false;    // since the start of pump()
  bool ending_ = false;            // the writer sends the rest and ends
};

}  // namespace weir::http
