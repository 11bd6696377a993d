// A connection of HTTP/2 of a client, which carries many requests at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/detail/turn_uses.hpp"

namespace weir::http {

class H2ClientExchange;

/// The place of an H2ClientExchange in the list of its connection.
class H2ClientExchangeNode : public weir::detail::ListNode {
 protected:
  ~H2ClientExchangeNode() = default;
};

/// Carries the requests of one HTTP/2 connection. It has no coroutine: the ends of its two
/// operations continue its work. All output of one turn of the loop goes into one write.
///
/// It begins to read while a stream is open. Once such a read has ended and no stream is open, no
/// operation is pending, and the loop reports input.
/// A silent server with an open stream is asked by PING; see ClientLimits::ping_interval.
/// Threads: its loop's.
/// Lifetime: it destroys itself after close(), when the kernel uses none of its memory. A request
/// is told when its connection is closed.
class H2ClientConnection final : loop::HangupObserver, StreamLayer {
 public:
  /// Begins the connection. `lease` has a stream to a server of HTTP/2.
  /// Errors: throws std::bad_alloc.
  H2ClientConnection(ClientPool& pool, ClientPool::Lease&& lease);
  H2ClientConnection(const H2ClientConnection&) = delete;
  H2ClientConnection& operator=(const H2ClientConnection&) = delete;
  ~H2ClientConnection();

  /// Returns true if the connection can carry another request now.
  bool may_open() const noexcept;
  bool is_idle() const noexcept { return exchanges_.empty(); }
  /// Returns true if the field list of this head is not longer than the server allows. Before its
  /// settings arrive, the server allows any length.
  bool accepts(std::string_view scheme, std::string_view head) const noexcept;
  /// Closes the connection. Its requests fail with `error`.
  void close(std::error_code error) noexcept;

  Http2Node& in_origin() noexcept { return in_origin_; }
  Http2Node& in_pool() noexcept { return in_pool_; }

  // For exchanges.

  H2Session& session() noexcept { return session_; }
  HpackEncoderState& encoder() noexcept { return encoder_; }
  Loop& loop() const noexcept { return loop_; }
  /// Returns true if the server has answered a request.
  bool was_used() const noexcept { return was_used_; }
  const Stream& stream() const noexcept { return connection_->stream(); }
  /// Keeps the connection for an exchange, whose stream opens later.
  void add(H2ClientExchange& exchange) noexcept;
  /// Opens the stream of an exchange. may_open() is true (asserted).
  /// Errors: throws std::bad_alloc.
  void open(H2ClientExchange& exchange);
  /// Forgets an exchange, and resets its stream if it is open.
  void end(H2ClientExchange& exchange) noexcept;
  /// Returns `count` bytes of an exchange to the windows.
  void consume(H2ClientExchange& exchange, std::size_t count) noexcept;
  /// Sends the output of the session soon.
  void wake_writer() noexcept { queue_turn(); }
  /// Asks the server by PING if nothing has arrived since `since`. The connection carries no new
  /// request until something arrives.
  void probe(Instant since) noexcept;
  /// Takes no new request if the proof of the peer has ended, and closes if it has none. It may
  /// destroy the connection.
  void end_if_unproven() noexcept;
  /// Returns the number of bytes that were given to the stream or wait for that.
  std::uint64_t bytes_queued() const noexcept { return taken_ + session_.output().size(); }

 private:
  friend class ClosingH2Connections;

  struct Reading : loop::ReceiveOperation {
    explicit Reading(H2ClientConnection& owner) noexcept;
    H2ClientConnection& connection;
  };
  struct Writing : loop::SendOperation {
    explicit Writing(H2ClientConnection& owner) noexcept;
    H2ClientConnection& connection;
  };
  /// The work at the end of a turn: a write of all output, and the next read.
  struct Turn : loop::Runnable {
    explicit Turn(H2ClientConnection& owner) noexcept;
    H2ClientConnection& connection;
  };
  struct Clock : loop::Timer {
    explicit Clock(H2ClientConnection& owner) noexcept;
    H2ClientConnection& connection;
  };

  /// The life of the connection:
  ///
  ///     usable <---> suspected
  ///        |             |
  ///        +-> retired <-+
  ///               |
  ///            closed
  ///
  /// A request that waits too long makes it suspected. Any input, such as the ACK of a PING
  /// (RFC 9113 §6.7), makes it usable again. GOAWAY (RFC 9113 §6.8), its age, the end of the
  /// server's proof and a failed write retire it.
  enum class Life : std::uint8_t {
    usable,     ///< carries new requests
    suspected,  ///< carries no new request until something arrives
    retired,    ///< carries its present requests to their ends, and no new one
    closed,     ///< carries nothing; it exists until its operations have ended
  };
  /// The reading side: none -> observed -> reported -> reading -> none. An open stream needs no
  /// report.
  enum class Input : std::uint8_t {
    none,
    observed,  ///< the loop will report input
    reported,  ///< the loop has reported input, which is not read yet
    reading,   ///< an operation is pending, or its runnable has not run yet
  };
  /// The writing side: idle <-> writing, until a write fails.
  enum class Output : std::uint8_t {
    idle,
    writing,  ///< an operation is pending, or its runnable has not run yet
    lost,     ///< a write has failed; answers may still have arrived
  };

  void change(Life next) noexcept;
  void change(Input next) noexcept;
  void change(Output next) noexcept;
  bool closed() const noexcept { return life_ == Life::closed; }
  /// Calls `work(*this)`, and destroys the connection afterwards if it is closed.
  template <class Work>
  void run(const Work& work) noexcept;
  void queue_turn() noexcept;
  void queue_next_turn() noexcept;
  void read();
  void write();
  void on_received();
  void on_sent();
  void lose_output();
  void process();
  /// Returns true if the session can have another event now.
  bool handle(const H2Event& event);
  void on_headers(const H2Event& event);
  void on_trailers(const H2Event& event);
  void on_discarded(const H2Event& event);
  void on_goaway(std::uint32_t last_stream);
  void fail_exchange(H2ClientExchange& exchange, std::error_code error);
  void retire() noexcept;
  void observe_input() noexcept;
  void stop_observing() noexcept;
  void expect_answer() noexcept;
  void set_clock() noexcept;
  void on_clock();
  void notify_waiting() noexcept;
  void destroy_if_unused() noexcept;
  bool has_operations() const noexcept;

  Http2Node in_origin_{*this};
  Http2Node in_pool_{*this};  // then in the list of closing ones
  ClientPool* pool_;
  ClientPool::Lease lease_;                // the rights; it has no connection
  BlockPtr<PooledConnection> connection_;  // the stream
  Loop& loop_;
  const ClientLimits& limits_;
  H2Session session_;
  HpackTable table_;
  HpackEncoderState encoder_;
  weir::detail::List<H2ClientExchangeNode> exchanges_;
  Reading reading_{*this};
  Writing writing_{*this};
  Turn turn_{*this};
  Clock clock_{*this};
  Buffer input_;
  Buffer sending_;
  Bytes sending_piece_;
  std::uint64_t taken_ = 0;       // bytes that were taken out of the session
  Instant usable_until_;          // the connection is too old then
  Instant idle_until_ = never;    // of a connection without requests
  Instant heard_;                 // when bytes arrived, or the first stream was opened
  Instant answer_until_ = never;  // of a PING
  Instant resume_at_ = never;     // the end of a delay for a server that causes too much work
  Life life_ = Life::usable;
  Input input_state_ = Input::none;
  Output output_state_ = Output::idle;
  bool was_used_ = false;     // a fact for the repetition of requests, in any state
  bool turn_queued_ = false;  // turn_ is in a queue of the loop
  bool running_ = false;      // run() is on the stack, and destroys the connection
  weir::detail::TurnUses reads_;
};

/// The closed connections of a loop with an operation that has not ended. It is an object of the
/// loop, and frees those that are left when the loop ends.
/// Threads: the loop's.
class ClosingH2Connections {
 public:
  ClosingH2Connections() = default;
  ~ClosingH2Connections();
  /// Returns the object of `loop`. The first call makes it.
  /// Errors: throws std::bad_alloc.
  static ClosingH2Connections& of(Loop& loop) { return loop.slots().get<ClosingH2Connections>(); }
  void add(Http2Node& node) noexcept { connections_.push_back(node); }

 private:
  weir::detail::List<Http2Node> connections_;
};

}  // namespace weir::http
