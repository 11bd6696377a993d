// Session: an established TLS connection, with its inner stream and the operations on both levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/detail/records/record_layer.hpp"
#include "weir/tls/stream.hpp"

namespace weir::tls::detail {

class Session;

/// The closed sessions of a loop whose last record is still being sent. It is an object of the
/// loop, and frees those that are left when the loop ends.
/// Threads: the loop's.
class ClosingSessions {
 public:
  ClosingSessions() = default;
  ~ClosingSessions();
  /// Returns those of `loop`. The first call makes the object.
  /// Errors: throws std::bad_alloc.
  static ClosingSessions& of(Loop& loop) {
    AeadCore::of(loop);  // the loop destroys it later, because record layers use it until their end
    return loop.slots().get<ClosingSessions>();
  }
  void add(Session& session) noexcept { sessions_.push_back(session); }

 private:
  weir::detail::List<Session> sessions_;
};

/// The state of a tls::Stream. At most one receive and one send of the inner stream are pending,
/// each for the operation of the same kind above it. The end of an inner operation continues the
/// upper one in the same runnable.
///
/// Answers to received records (KeyUpdate, alerts) wait in the output for the next write, or for
/// the close. RFC 8446, 4.6.3 asks for no earlier answer.
/// Threads: one core's.
class Session : public weir::detail::ListNode, StreamLayer {
 public:
  /// `input` holds bytes behind the handshake, and `output` bytes that are still to be sent.
  /// Errors: throws std::bad_alloc.
  Session(AnyStream inner, std::unique_ptr<RecordLayer> records, TlsInfo info, Buffer input,
          Buffer output);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns the session of an open stream.
  static Session& of(Stream& stream) noexcept { return *stream.session_; }
  const weir::Stream& inner() const noexcept { return *inner_; }
  weir::Stream& inner() noexcept { return *inner_; }
  const TlsInfo& info() const noexcept { return info_; }

  // The functions of a stream; see weir::Stream and Backend.
  bool receive(loop::ReceiveOperation& operation);
  bool send(loop::SendOperation& operation);
  void cancel(loop::Operation& operation);
  std::size_t sent_of(const loop::SendOperation& operation) const noexcept;
  Result<> finish_writing();
  /// Returns true if a receive would not wait.
  bool has_data() const noexcept {
    return !plain_.empty() || read_end_ || !input_.empty() || records_->has_input();
  }
  /// Sends close_notify if the kernel has room, and closes the inner stream. The session destroys
  /// itself later if the kernel still uses its output.
  static void close(BlockPtr<Session> session) noexcept;
  /// Frees a closed session after the end of its loop, which has closed the socket.
  static void abandon(BlockPtr<Session> session) noexcept;

 private:
  /// Bytes of data in one send of the inner stream. Large writes are sealed in parts, so that they
  /// need no more memory.
  static constexpr std::size_t batch_max = 4 * RecordLayer::plain_max;

  struct InnerReceive : loop::ReceiveOperation {
    explicit InnerReceive(Session& owner) noexcept
        : loop::ReceiveOperation(
              [](loop::Runnable& self) { static_cast<InnerReceive&>(self).session.on_received(); }),
          session(owner) {}
    Session& session;
  };
  struct InnerSend : loop::SendOperation {
    explicit InnerSend(Session& owner) noexcept
        : loop::SendOperation(
              [](loop::Runnable& self) { static_cast<InnerSend&>(self).session.on_sent(); }),
          session(owner) {}
    Session& session;
  };

  bool advance_read(loop::ReceiveOperation& operation);
  bool deliver(loop::ReceiveOperation& operation);
  void open_records() noexcept;
  void take_received() noexcept;
  void on_received();

  bool advance_send(loop::SendOperation& operation);
  void seal_batch(const loop::SendOperation& operation);
  void seal(Bytes plain);
  bool start_output();
  void finish_batch(loop::SendOperation& operation) noexcept;
  static bool end_send(loop::SendOperation& operation, std::error_code error) noexcept;
  void on_sent();
  void on_flushed();

  AnyStream inner_;
  ClosingSessions& closing_sessions_;
  std::unique_ptr<RecordLayer> records_;
  TlsInfo info_;
  InnerReceive receive_{*this};
  InnerSend send_{*this};
  Buffer input_;    // received, not yet opened
  Buffer plain_;    // opened, not yet read
  Buffer output_;   // sealed, not yet given to the inner stream
  Buffer sending_;  // used by the inner send
  Bytes sending_piece_;
  loop::ReceiveOperation* reader_ = nullptr;
  loop::SendOperation* writer_ = nullptr;
  std::error_code read_end_;       // why reading has ended
  std::error_code write_end_;      // why writing has ended
  std::size_t piece_ = 0;          // index of the piece of the writer that is sealed next
  std::size_t piece_offset_ = 0;   // bytes of this piece that are sealed
  std::size_t batch_plain_ = 0;    // bytes of the writer in the output
  bool read_cancelling_ = false;   // the reader was cancelled, and its inner receive has data
  bool write_cancelling_ = false;  // the writer was cancelled, and its inner send continues
  bool send_pending_ = false;      // until on_sent()
  bool finished_ = false;          // close_notify is sealed
  bool closing_ = false;           // closed; destroyed when the inner send has ended
};

}  // namespace weir::tls::detail
