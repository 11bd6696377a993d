// The HTTP/2 side of a connection: it turns frames into streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/h2/h2_carrier.hpp"
#include "weir/http/server/detail/h2/h2_connection_state.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

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
  void wait_for_scope(H2Carrier& exchange) noexcept { waiting_ = &exchange; }
  /// Wakes the writer, which sends what is in the output of the session.
  void wake_writer() { output_ready_.set(); }
  /// Counts bytes of a body that `exchange` has collected. Below the limit all bodies grow; above
  /// it only one.
  void add_collected(H2Carrier& exchange, std::size_t count);
  /// Returns true if the client may have to wait because of that limit.
  bool needs_window(const H2Carrier& exchange) const noexcept {
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
  std::size_t send_in_place(H2Carrier& exchange, Bytes body, bool end_stream);
  /// Checks from now on how fast the client allows bytes to be sent.
  void watch_progress() noexcept;
  /// Resets a stream, unless it is closed. Without memory, the connection ends.
  void reset(H2Carrier& exchange, H2Error error) noexcept;
  /// Destroys an exchange.
  void end(H2Carrier& exchange) noexcept;
  /// Keeps an exchange that is answered, until the client has sent the rest of the body.
  void linger(H2Carrier& exchange) noexcept;
  /// Calls `see` with the exchange of each open stream, the oldest first, until it returns false.
  template <class See>
  void visit(const See& see) const {
    const H2CarrierNode* each = exchanges_.front();
    while (each != nullptr && see(*static_cast<const H2Carrier*>(each))) {
      each = exchanges_.next(*each);
    }
  }

 private:
  /// What the reader waits for.
  enum class Wait : std::uint8_t {
    more_input,  ///< all of it is used up, or cannot be used
    output,      ///< the writer has to take the output
    delay,       ///< the session asks for a delay
    share,       ///< the requests have used their share of the turn
    run,         ///< a request waits for run()
  };

  Task<> serve(Scope& scope);
  Task<End> read_all();
  Task<> write_all();
  Wait handle_input();
  Task<bool> output_taken();
  /// Returns true if the client must read before the server reads more.
  bool output_full() const noexcept {
    return session_.output().size() >= server_.limits().h2.output_max;
  }
  /// Ends the connection, because there is no memory for its output.
  void give_up() noexcept;
  bool handle(const H2Event& event);
  void lose(const H2Event& event);
  void open(const H2Event& event);
  void count_malformed() noexcept;
  void fail_block();
  void read_trailers(const H2Event& event);
  bool pump();
  void abort_exchanges();
  void drop_collected(H2Carrier& exchange);
  Instant deadline() noexcept;
  void on_deadline();
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
  weir::detail::List<H2CarrierNode> exchanges_;
  BlockPtr<H2Carrier> spare_;  // for the next request
  AutoResetEvent output_ready_;
  AutoResetEvent output_taken_;
  Scope* scope_ = nullptr;        // of run()
  H2Carrier* waiting_ = nullptr;  // the exchange that waits for run()
  Duration delay_{};              // of the session, before it takes more input
  bool share_used_ = false;       // the requests have used their share of the turn
  std::size_t new_data_ = 0;      // bytes of bodies since the last yield() of the reader
  std::uint64_t collected_ = 0;   // bytes of bodies
  H2Carrier* growing_ = nullptr;  // the one whose body grows above the limit
  Instant frame_since_ = never;   // when the present incomplete frame began
  std::uint32_t frame_ = 0;       // its number
  std::uint32_t sent_ = 0;        // bytes of DATA until the last check
  Instant next_check_ = never;    // of the progress of the streams
  Instant drain_until_ = never;   // when the drain stops to wait for its PING
  bool wrote_in_place_ = false;   // since the start of pump()
  bool ending_ = false;           // the writer sends the rest and ends
};

}  // namespace weir::http
