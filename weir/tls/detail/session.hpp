// Session: an established TLS connection, with its inner stream and the operations on both levels.
#pragma once

#include <cerrno>
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

/// The bytes that a session sends, and its operation on the inner stream. It exists only while the
/// session sends or has bytes to send, and after a write has failed.
/// Threads: one core's.
struct SessionOutput : loop::SendOperation, weir::detail::ListNode {
  explicit SessionOutput(Session& owner) noexcept;

  /// Queues the output in the next turn of the loop.
  struct NextTurn : loop::Timer {
    explicit NextTurn(SessionOutput& owner) noexcept : loop::Timer(&on_timer), output(owner) {}
    static void on_timer(loop::Timer& timer);
    SessionOutput& output;
  };

  Session& session;
  NextTurn next_turn{*this};
  Buffer output;   // sealed, not yet given to the inner stream
  Buffer sending;  // used by the inner send
  Bytes sending_piece;
  loop::SendOperation* writer = nullptr;
  std::size_t piece = 0;         // index of the piece of the writer that is sealed next
  std::size_t piece_offset = 0;  // bytes of this piece that are sealed
  std::size_t batch_plain = 0;   // bytes of the writer in the output
  bool busy = false;             // until on_sent(), after the inner send or in the next turn
  std::error_code end;           // why writing has ended
  bool cancelling = false;       // the writer was cancelled, and the inner send continues
};

/// The closed sessions of a loop whose last record is still being sent. It is an object of the
/// loop, and frees those that are left when the loop ends.
/// Threads: the loop's.
class ClosingSessions {
 public:
  ClosingSessions() = default;
  ~ClosingSessions();
  /// Returns the ClosingSessions of `loop`. The first call makes the object.
  /// Errors: throws std::bad_alloc.
  static ClosingSessions& of(Loop& loop) {
    AeadCore::of(loop);  // the loop destroys it later, because record layers use it until their end
    return loop.slots().get<ClosingSessions>();
  }
  void add(SessionOutput& session) noexcept { sessions_.push_back(session); }

 private:
  weir::detail::List<SessionOutput> sessions_;
};

/// The state of a tls::Stream. At most one receive and one send of the inner stream are pending,
/// each for the operation of the same kind above it. The end of an inner operation continues the
/// upper one in the same runnable. The session is the inner receive.
///
/// Answers to received records (KeyUpdate, alerts) wait in the output for the next write, or for
/// the close. RFC 8446, 4.6.3 asks for no earlier answer.
///
/// Very many idle sessions may exist, so an idle one is small.
/// Threads: one core's.
class Session : loop::ReceiveOperation, StreamLayer {
 public:
  /// `input` holds bytes behind the handshake, and `output` bytes that are still to be sent.
  /// Errors: throws std::bad_alloc.
  Session(AnyStream inner, std::unique_ptr<RecordLayer> records,
          std::shared_ptr<const TlsInfo> info, Buffer input, Buffer output);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns the session of an open stream.
  static Session& of(Stream& stream) noexcept { return *stream.session_; }
  const weir::Stream& inner() const noexcept { return *inner_; }
  weir::Stream& inner() noexcept { return *inner_; }
  const RecordLayer& records() const noexcept { return *records_; }
  const TlsInfo& info() const noexcept { return *info_; }

  // The functions of a stream; see weir::Stream and Backend.
  bool receive(loop::ReceiveOperation& operation);
  bool send(loop::SendOperation& operation);
  void cancel(loop::Operation& operation);
  std::size_t sent_of(const loop::SendOperation& operation) const noexcept;
  Result<> finish_writing();
  Result<> set_close_mode(CloseMode mode);
  /// Returns true if a receive would not wait.
  bool has_data() const noexcept {
    return !plain_.empty() || read_end_ || !input().empty() || records_->has_input();
  }
  /// Sends close_notify if the kernel has room, unless the mode is CloseMode::reset, and closes the
  /// inner stream. The session destroys itself later if the kernel still uses its output.
  static void close(BlockPtr<Session> session) noexcept;
  /// Frees a closed session after the end of its loop, which has closed the socket.
  static void abandon(BlockPtr<Session> session) noexcept;

 private:
  friend struct SessionOutput;
  /// Bytes of data in one send of the inner stream. Large writes are sealed in parts, whose records
  /// fit into a block of a core's pool.
  static constexpr std::size_t batch_max = 3 * RecordLayer::plain_max;
  static_assert(batch_max + 4 * 64 <= BlockPool::block_max);
  /// Largest number of batches in one turn of the loop. Other work of the core then comes first.
  static constexpr int batches_per_turn = 4;

  /// Returns the received bytes that are not opened yet.
  Buffer& input() noexcept { return buffer; }
  const Buffer& input() const noexcept { return buffer; }
  SessionOutput& output();
  void release_output() noexcept;
  /// Returns why writing has ended; no error: it has not.
  std::error_code write_end() const noexcept {
    if (records_failed_) return system_error(EPIPE);
    return output_ == nullptr ? std::error_code() : output_->end;
  }

  bool advance_read(loop::ReceiveOperation& operation);
  bool deliver(loop::ReceiveOperation& operation);
  RecordLayer::Opened open_input();
  void open_records() noexcept;
  void take_received() noexcept;
  void on_received();

  bool advance_send(loop::SendOperation& operation);
  void seal_batch(const loop::SendOperation& operation);
  void seal(Bytes plain);
  void seal_end();
  bool start_output();
  void finish_batch(loop::SendOperation& operation) noexcept;
  static bool end_send(loop::SendOperation& operation, std::error_code error) noexcept;
  void on_sent();
  void on_flushed();

  AnyStream inner_;
  std::unique_ptr<RecordLayer> records_;
  std::shared_ptr<const TlsInfo> info_;
  Buffer plain_;  // opened, not yet read
  BlockPtr<SessionOutput> output_;
  loop::ReceiveOperation* reader_ = nullptr;
  std::error_code read_end_;      // why reading has ended
  bool records_failed_ = false;   // the record layer has failed, so that nothing can be sent
  bool read_cancelling_ = false;  // the reader was cancelled, and its inner receive has data
  bool close_sealed_ = false;     // close_notify is in the output or sent
  bool finished_ = false;         // finish_writing() was called
  bool closing_ = false;          // closed; destroyed when the inner send has ended
  CloseMode close_mode_ = CloseMode::orderly;
};

}  // namespace weir::tls::detail
