// Streams on io_uring: a receive that stays armed, one send at a time, detection of hang-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/detail/uring/socket.hpp"

namespace weir::loop::uring {

// The bytes that arrived on a stream before an operation received them.

/// A first-in first-out queue of buffers. It counts the memory that it holds, not only the bytes
/// that wait. A peer that sends byte by byte must not pin a whole read buffer with each byte.
/// Small arrivals are therefore copied together, into buffers that grow with the amount of waiting
/// data. The empty queue takes one pointer, since each idle stream has one.
/// Threads: the loop's.
class ReceiveQueue {
 public:
  /// The largest arrival that is copied instead of kept in the buffer in which it arrived.
  static constexpr std::size_t small_max = Buffer::default_capacity / 4;

  ReceiveQueue() noexcept = default;
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  bool empty() const noexcept { return last_ == nullptr; }
  /// Returns the bytes of memory in the queued buffers.
  std::size_t memory_used() const noexcept { return empty() ? 0 : last_->memory_used; }

  /// Appends a buffer.
  /// Errors: throws std::bad_alloc, and has queued nothing then.
  void push(Buffer buffer);
  /// Appends a copy of at most small_max bytes.
  /// Errors: throws std::bad_alloc, and has queued nothing then.
  void push_copy(Bytes bytes);

  /// Removes and returns the oldest buffer. The queue is not empty.
  Buffer pop() noexcept;
  /// Moves the oldest bytes into `target`, as many as are queued or fit. Returns their number.
  std::size_t read(MutableBytes target) noexcept;

 private:
  struct Chunk {
    explicit Chunk(Buffer bytes) noexcept : buffer(std::move(bytes)) {}
    Buffer buffer;
    Chunk* next = nullptr;        // the first chunk, if this is the last one
    std::size_t memory_used = 0;  // of the whole queue, if this is the last chunk
  };

  Chunk* last_ = nullptr;
};

/// A stream. The kernel receives on its own from the first receive() or observe_hangup() on. Bytes
/// that arrive while no operation receives are queued. Receiving pauses when `unread_max` bytes
/// wait or the buffers of waiting bytes take that much memory. It resumes when half of that has
/// been read. A poll request watches for hang-ups during the pause, and after the peer has
/// finished.
///
/// The first requests receive only once each. A connection that serves a single exchange, with or
/// without a handshake of TLS, then leaves no armed request that has to be cancelled.
///
/// The kernel (6.18) can lose a reset that comes while an armed receive delivers data: the request
/// stays armed forever and reports nothing. A stream whose receive stays armed after data is
/// therefore hangup_unconfirmed. check_hangup() adds one poll request beside the receive. If the
/// poll reports an end, the stream cancels the receive and starts it again.
///
/// A send never waits in the kernel. If the peer has no room, a poll request that stays armed tells
/// when to go on. After the peer has finished sending, a send that waits in the kernel (Linux 6.18)
/// would wake immediately, 128 times. It would then block a thread of the kernel, and a
/// cancellation could miss it.
class Stream : public SocketState {
 public:
  Stream(int value, std::size_t unread_max) noexcept;

  bool receive(BackendContext& context, ReceiveOperation& operation);
  bool send(BackendContext& context, SendOperation& operation);
  bool connect(BackendContext& context, ConnectOperation& operation);
  void cancel(BackendContext& context, Operation& operation);
  Result<> shut_down_sending(BackendContext& context);
  void observe_hangup(BackendContext& context, HangupObserver* observer);
  /// Cancels the armed requests. No operation is pending.
  void stop(BackendContext& context);

  void completed(BackendContext& context, const Completion& completion);
  /// Tries again to arm the receive, which found no memory or no buffer.
  void resume(BackendContext& context);
  /// Adds a poll request beside an armed receive that is hangup_unconfirmed, so that no end is
  /// missed.
  void check_hangup(BackendContext& context);

 private:
  void receive_completed(BackendContext& context, const Completion& completion);
  void send_completed(BackendContext& context, int result);
  void sendable_completed(BackendContext& context, const Completion& completion);
  void connect_completed(BackendContext& context, int result);
  void hangup_completed(BackendContext& context, const Completion& completion);

  void arm_receive(BackendContext& context);
  void arm_hangup(BackendContext& context);
  void keep_armed(BackendContext& context);
  bool should_receive() const noexcept;
  void arrived(BackendContext& context, std::uint16_t buffer, std::size_t size);
  void queue(BackendContext& context, std::uint16_t buffer, std::size_t size, std::size_t used);
  void receive_failed(BackendContext& context, int error);
  void take_unread(ReceiveOperation& operation) noexcept;
  void submit_send(BackendContext& context);
  void wait_until_sendable(BackendContext& context);
  bool send_partially(BackendContext& context, SendOperation& operation);
  /// Returns true if the errno of a send says that the peer has reset the stream.
  bool is_reset(int error) const noexcept;
  void submit_connect(BackendContext& context);
  void mark_dead(BackendContext& context);
  void report_input(BackendContext& context);

  // The receives of a TLS connection with one request: ClientHello, then Finished and the request.
  static constexpr unsigned single_receives = 2;

  bool receive_armed_ : 1 = false;  // true until its last completion
  bool multishot_ : 1 = false;      // true if the receive stays armed, up to a limit of bytes
  std::uint8_t arrivals_ : 2 = 0;   // receives with bytes, at most single_receives
  bool hangup_armed_ : 1 = false;
  bool hangup_unconfirmed_ : 1 = false;  // true if in BackendContext::hangup_unconfirmed
  bool waiting_for_buffer_ : 1 = false;  // true if in BackendContext::waiting_for_buffer
  bool sendable_armed_ : 1 = false;
  bool send_waits_ : 1 = false;         // true if the pending send waits for the poll
  bool output_cancelling_ : 1 = false;  // true if the pending send or connect has been cancelled
  bool ended_ : 1 = false;              // true if the peer has finished sending
  bool finished_ : 1 = false;           // true if this side has finished sending
  bool reset_ : 1 = false;  // true if a send failed with a reset, which is reported only once
  bool dead_ : 1 = false;
  std::int16_t error_ = 0;  // errno of every further receive
  std::uint32_t unread_max_;
  ReceiveQueue receive_queue_;
  ReceiveOperation* receiving_ = nullptr;
  Operation* output_ = nullptr;  // a send or a connect
  HangupObserver* observer_ = nullptr;
};

static_assert(sizeof(Stream) <= 64, "there is one for each idle connection");

/// The memory of one backend's streams. It saves the header that a block of BlockPool has. It
/// keeps the memory of closed streams for later ones.
/// Threads: the backend's.
/// Lifetime: outlives its streams.
class StreamMemory {
 public:
  StreamMemory() noexcept = default;
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  /// Errors: throws std::bad_alloc.
  Stream& create(int value, std::size_t unread_max);
  void destroy(Stream& stream) noexcept;

 private:
  struct Free {
    Free* next;
  };
  // With a sanitizer, each stream has a block of its own, so that a use after its end is found. A
  // chunk is smaller than a buffer: it would take the buffer of which all pages are in use, and
  // the next one would then need as many.
  static constexpr std::size_t chunk_streams = BlockPool::caches_free_blocks ? 128 : 1;

  std::vector<void*> chunks_;
  Free* free_ = nullptr;
};

}  // namespace weir::loop::uring
