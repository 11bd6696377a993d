// A WebSocket connection on a stream: reading, sending, pings, the closing handshake.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http/ws/detail/frame.hpp"
#include "weir/http/ws/detail/session.hpp"
#include "weir/http/ws/detail/topic_hub.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_uses.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {

/// Returns the bytes that a connection with these limits and this compression holds at most,
/// without those of its stream.
std::uint64_t websocket_bytes_max(const WebSocketLimits& limits,
                                  const std::optional<WebSocketCompression>& compression) noexcept;

/// The part of a WsConnection that exists while something happens on it.
struct WsActivity final : loop::Runnable, CancelNode, loop::HangupObserver {
  WsActivity(WsConnection& owner, WsRole role, const WebSocketLimits& limits,
             bool deflates) noexcept;
  static void on_cancel(CancelNode& self);

  struct Receive : loop::ReceiveOperation {
    explicit Receive(WsConnection& owner) noexcept;
    WsConnection& connection;
  };
  struct Send : loop::SendOperation {
    explicit Send(WsConnection& owner) noexcept;
    WsConnection& connection;
  };
  WsConnection& connection() noexcept { return receive.connection; }

  // The receive from the stream.
  //
  //   idle --start_receive()--> pending --its end--> idle
  //   pending --rest()--> ending --its end--> idle, and the activity ends
  //   ending --activate()--> pending; its end then starts another receive
  enum class ReceiveState : std::uint8_t {
    idle,
    pending,
    ending,  // pending, and cancelled so that the activity can end
  };

  // The memory that the bytes of the last result lie in.
  //
  //   none --a part of a message is read--> in_input --start_receive()--> lent
  //   none --a message is collected or decompressed--> in_message
  //   in_input --start_receive(), and the input owns no memory--> none
  //   in_input, lent, in_message --the next read--> none
  enum class ResultPlace : std::uint8_t { none, in_input, lent, in_message };

  void change(ReceiveState next) noexcept;
  void change(ResultPlace next) noexcept;
  bool receiving() const noexcept { return receive_state != ReceiveState::idle; }
  bool has_held() const noexcept { return held.kind == WsEvent::Kind::message; }

  // The small members lie in the padding of the last base and together.
  bool queued = false;  // it is in the ready queue, or will be in the next turn
  bool used = true;     // something has happened since the last check
  bool hung_up = false;
  bool within_frame = false;
  bool writing = false;
  ReceiveState receive_state = ReceiveState::idle;
  ResultPlace result_place = ResultPlace::none;
  WsSession session;
  // Input.
  Receive receive;
  Buffer input;             // bytes that the session has not taken
  Buffer lent;              // the memory of the last result, if the input has been replaced
  Buffer message;           // the message that is collected, or that was returned last
  WsEvent held{};           // a part of a message that no read has taken, if has_held()
  WebSocketMessage result;  // of a read, if has_result
  bool has_result = false;
  bool collects_text = false;       // `message` is a text
  weir::detail::TurnUses receives;  // that have finished immediately
  std::optional<WebSocketCloseCode> close_order;
  // Output.
  static constexpr std::size_t pieces_max = TopicMember::messages_max;
  Send send;
  std::array<Bytes, pieces_max> pieces;            // of the send
  std::array<TopicFrameRef, pieces_max> messages;  // of topics that the send refers to
  Buffer sent_buffer;                              // the memory of its first piece
  weir::detail::List<TopicMember::Place> topics;   // topics whose messages wait
  Buffer output;                                   // the frames behind them
  weir::detail::List<WebSocketSend> senders;  // the first one may have written a part of its frame
  WsMask mask;                                // of the frame of the first sender
  std::size_t progress = 0;                   // bytes of the send that had been taken at
  Instant progress_since{};
  // The end.
  std::error_code error;               // reads fail, if set
  std::string close_reason;            // of the own Close, later of the peer's
  Instant close_until = never;         // then the connection is cut
  ManualResetEvent failed;             // reads fail from now on
  loop::Runnable* finished = nullptr;  // the caller of finish() that waits
};

static_assert(sizeof(WsActivity) <= 1024, "a larger object takes a block of twice the size");

/// A WebSocket connection between its handshake and its end. While nothing happens, it consists of
/// this object only, and observes the input of its stream. Bytes and sends make a WsActivity, which
/// ends when nothing has happened for a second.
/// Threads: one loop's.
/// Lifetime: `limits` outlives it. finish() has returned before it is destroyed.
class WsConnection final : public WebSocket, StreamLayer, loop::Timer, loop::HangupObserver {
 public:
  /// `input` are bytes behind the handshake. `subprotocol` is nullptr for none. `deflate` is
  /// nullptr unless compression was negotiated. A cancellation of `parent`, unless it is nullptr,
  /// cancels the handler.
  WsConnection(AnyStream stream, WsRole role, const WebSocketLimits& limits, Buffer input,
               std::unique_ptr<const std::string> subprotocol, CancelSource* parent,
               std::unique_ptr<WsDeflate> deflate = nullptr);
  ~WsConnection();

  AnyStream& stream() noexcept { return stream_; }
  const AnyStream& stream() const noexcept { return stream_; }
  Loop& loop() const noexcept { return stream_->loop(); }
  /// Returns the source of the handler's task, which is cancelled if the connection is lost while
  /// the handler does not read.
  CancelSource& handler() noexcept { return handler_; }
  WsRole role() const noexcept { return role_; }
  std::string_view subprotocol() const noexcept {
    return subprotocol_ == nullptr ? std::string_view() : *subprotocol_;
  }
  WebSocketCloseCode close_code() const noexcept { return close_code_; }
  std::string_view close_reason() const noexcept;
  /// Returns why reads fail, or no error.
  std::error_code error() const noexcept {
    if (activity_ != nullptr) return activity_->error;
    return lost_ ? std::make_error_code(std::errc::not_enough_memory) : std::error_code();
  }
  bool may_send() const noexcept;

  // The waits of handlers; see WebSocketRead and WebSocketSend.

  /// Returns true if a read has its result.
  bool try_read(const WebSocketRead& read) {
    return drops() ? static_cast<bool>(error()) : take(read.whole());
  }
  bool begin_read(WebSocketRead& read);
  void withdraw(WebSocketRead& read) noexcept;
  Result<WebSocketMessage> taken();
  /// Copies a message to the output. Returns false if a part has to wait.
  bool try_send(WebSocketSend& send);
  void begin_send(WebSocketSend& send) noexcept;
  void withdraw(WebSocketSend& send) noexcept;

  /// Returns how the messages of topics are compressed; nothing if they are sent as they are.
  std::optional<WsSharedCompression> shared_compression() const noexcept {
    return deflate_ == nullptr ? std::nullopt : deflate_->shared();
  }
  /// Sends messages of a topic: immediately if nothing waits, else from the queue of `member`.
  /// Returns: the number of messages that it has taken. The topic may still drop them.
  std::size_t deliver(TopicMember& member, std::span<const TopicFrameRef> messages) noexcept;

  /// Sends a Close behind the messages that wait, unless one was sent or received.
  void begin_close(WebSocketCloseCode code, std::string_view reason);
  /// Drops the messages that still arrive, after begin_close(). Reads wait for the end.
  void drop_messages() noexcept;
  /// Waits for the end of the connection, after drop_messages(). There is no error yet.
  EventWait<ManualResetEvent> wait_for_end() noexcept { return activity_->failed.wait(); }
  /// Limits the time until the connection is cut to WebSocketLimits::close_timeout, although the
  /// Close may have to wait. It follows begin_close().
  void limit_close() noexcept;
  /// Sends a Close, because the server drains or the service is replaced. The connection is cut and
  /// the handler is cancelled after WebSocketLimits::close_timeout.
  void drain(WebSocketCloseCode code) noexcept;
  /// Ends the connection immediately.
  void abort(std::error_code error) noexcept;
  /// Performs the closing handshake, unless it was performed, until the stream has no pending
  /// operation. No read or send waits. `code` is that of the own Close. Without memory, the
  /// connection is aborted. A cancellation of `cancel` aborts it too.
  /// Returns: true if that has finished; else `finished` is put into the ready queue at the end.
  bool start_finish(WebSocketCloseCode code, loop::Runnable& finished,
                    CancelSource* cancel) noexcept;
  class FinishAwaiter;
  /// `co_await connection.finish(code)` does the same for a task.
  /// Cancel: aborts the connection.
  FinishAwaiter finish(WebSocketCloseCode code) noexcept;
  /// Returns true if the peer should be able to read the last bytes, after finish().
  bool lingers() const noexcept { return !lost_; }

 private:
  friend WsActivity;

  // The end as the handler sees it. The closing handshake is the state of the session.
  //
  //   open --a read returns the error--> told
  //   open, told --drop_messages() or start_finish()--> dropping
  //   dropping --finish() has finished--> finished
  enum class HandlerState : std::uint8_t {
    open,
    told,      // a read of the handler has returned the error, or will
    dropping,  // the handler reads no more, and messages that arrive are dropped
    finished,
  };

  // The ping that checks a silent peer (RFC 6455 §5.5.2).
  //
  //   none --the peer is silent--> due --it is written--> sent --bytes of the peer--> none
  //   due --a Close was sent or is due--> none
  enum class PingState : std::uint8_t {
    none,
    due,   // it waits for room between two frames
    sent,  // nothing was heard of the peer since
  };

  void change(HandlerState next) noexcept;
  void change(PingState next) noexcept;
  bool drops() const noexcept { return handler_state_ >= HandlerState::dropping; }
  bool is_finished() const noexcept { return handler_state_ == HandlerState::finished; }
  void set_told() noexcept;
  void set_dropping() noexcept;
  void on_heard() noexcept;
  WsActivity& activate();
  void rest() noexcept;
  void end_activity() noexcept;
  bool can_rest() const noexcept;
  void queue() noexcept;
  void queue_next_turn() noexcept;
  /// Performs a step of a callback. Without memory, the connection ends.
  template <class Step>
  void guard(const Step& step) noexcept {
    try {
      step();
    } catch (const std::bad_alloc&) {
      abort(std::make_error_code(std::errc::not_enough_memory));
    }
  }
  /// Performs a callback of the loop.
  template <class Step>
  void call(const Step& step) noexcept {
    guard(step);
    end_if_quiet();
  }
  void run();
  void check();
  void arm(Instant now) noexcept;
  void check_ping(Instant now);

  bool start_receive();
  bool may_receive() noexcept;
  void on_received();
  void read_on();
  void look_ahead();
  bool take(bool whole);
  bool has_event() const noexcept;
  WsEvent next_event();
  bool handle(const WsEvent& event);
  void release_result() noexcept;
  void collect(const WsEvent& event);
  enum class Decompressed : std::uint8_t {
    result,      // the read has its result
    next_event,  // the part has been used up
    next_turn,   // the rest of the part is held for the next turn
    ended,       // the reading has ended with an error
  };
  Decompressed take_compressed(WsEvent part, bool whole);
  void give(const WsEvent& event, Bytes bytes, bool ends) noexcept;
  void set_error(std::error_code error) noexcept;
  void lose(std::error_code error) noexcept;

  void pump_output();
  void fill_output();
  void write_controls();
  bool start_write();
  std::size_t add_messages(std::size_t count);
  bool has_messages() const noexcept;
  bool blocks_topic() const noexcept;
  void on_sent();
  bool copy(WebSocketSend& send);
  bool copy_compressed(WebSocketSend& send);
  void begin_frame(WebSocketSend& send);
  void refuse_senders() noexcept;
  std::optional<WsMaskKey> next_mask();
  bool quiet() const noexcept;
  void drop_input();
  void end() noexcept;
  void end_if_quiet() noexcept;
  /// Returns true if no more frames may be appended to the output. An empty one is not full,
  /// whatever the limit is.
  bool output_is_full() const noexcept {
    return !activity_->output.empty() && activity_->output.size() >= limits_.output_max;
  }

  // The small members lie in the padding of the base.
  WsRole role_;
  HandlerState handler_state_ = HandlerState::open;
  PingState ping_ = PingState::none;
  bool lost_ = false;  // the connection has ended without the closing handshake; nothing is sent
  bool input_seen_ = false;  // by the observer of an idle connection
  bool draining_ = false;
  WebSocketCloseCode close_code_ = WebSocketCloseCode::abnormal;
  AnyStream stream_;
  const WebSocketLimits& limits_;
  BlockPtr<WsActivity> activity_;
  std::unique_ptr<WsDeflate> deflate_;
  WebSocketRead* reader_ = nullptr;
  CancelSource handler_;
  std::unique_ptr<const std::string> subprotocol_;  // nullptr for none
  Instant heard_;                                   // the last bytes of the peer
};

/// The awaiter of WsConnection::finish().
class WsConnection::FinishAwaiter : public Waiter {
 public:
  FinishAwaiter(WsConnection& connection, WebSocketCloseCode code) noexcept
      : connection_(connection), code_(code) {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    return !connection_.start_finish(code_, *this, context().cancel);
  }
  void await_resume() const noexcept {}

 private:
  WsConnection& connection_;
  WebSocketCloseCode code_;
};

inline WsConnection::FinishAwaiter WsConnection::finish(WebSocketCloseCode code) noexcept {
  return {*this, code};
}

}  // namespace weir::http
