// I/O operations of a loop. An Operation is one I/O request; it lives in the frame that awaits it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/os/address.hpp"

namespace weir::loop {

// Datagrams: messages that arrive whole or not at all.

/// A received datagram, or several that the kernel has joined.
struct Datagram {
  Buffer buffer;                    ///< lent by the core; empty if the datagram was empty
  os::Address peer;                 ///< address of the sender
  std::size_t truncated_bytes = 0;  ///< lost bytes at the end that did not fit into the buffer
  /// Size in bytes of each datagram if the kernel has joined several in the buffer. The last one
  /// may be shorter. 0 means a single datagram. It is set only if ReceiveDatagramsOperation::gro
  /// was requested.
  std::size_t segment_size = 0;

  /// Calls `visit(Bytes)` for each datagram in the buffer, oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    const Bytes all = buffer;
    const std::size_t step = segment_size == 0 ? all.size() : segment_size;
    std::size_t begin = 0;
    do {
      visit(all.subspan(begin, std::min(step, all.size() - begin)));
      begin += step;
    } while (begin < all.size());
  }
};

/// A datagram to send. The bytes and the address stay valid until the send has finished.
struct OutgoingDatagram {
  Bytes bytes;
  os::Address peer;  ///< destination; none: the address that the socket is connected to
};

class Backend;
struct Socket;

/// The common part of every operation. An Operation is started on a backend and finishes exactly
/// once. If it did not finish in the start function, the backend queues its Runnable on the loop
/// when it finishes.
/// Lifetime: the backend owns a pending operation and every buffer that it names. The caller
/// neither moves nor destroys them before the operation has finished.
class Operation : public Runnable {
 public:
  enum class Kind : std::uint8_t {
    receive,
    send,
    accept,
    connect,
    file,
    receive_datagrams,
    send_datagrams,
  };
  enum class State : std::uint8_t { idle, pending, finished };

  Kind kind() const noexcept { return kind_; }
  State state() const noexcept { return state_; }
  /// Returns the socket of the operation; nullptr for a file operation.
  Socket* socket() const noexcept { return socket_; }
  /// Returns the outcome, valid when finished. No error means success. Errc::cancelled means that
  /// the operation had no effect, except that a cancelled send may have sent a part.
  std::error_code error() const noexcept { return error_; }

  /// Backends call these functions in start functions and at the end.
  void pending_on(Socket& socket) noexcept {
    socket_ = &socket;
    pending();
  }
  void pending() noexcept {
    state_ = State::pending;
    error_.clear();
  }
  void finish(std::error_code error = {}) noexcept {
    error_ = error;
    state_ = State::finished;
  }

 protected:
  Operation(Kind kind, Function function) noexcept : Runnable(function), kind_(kind) {}
  ~Operation() { assert(state_ != State::pending); }

 private:
  Kind kind_;
  State state_ = State::idle;
  Socket* socket_ = nullptr;
  std::error_code error_;
};

/// Receives at least one byte of the data that has arrived. The bytes go into `target` if it is
/// not empty, else into a buffer lent by the core. If the peer has finished sending, this and
/// every later receive fails with Errc::end_of_stream.
struct ReceiveOperation : Operation {
  explicit ReceiveOperation(Function function) noexcept : Operation(Kind::receive, function) {}
  MutableBytes target;
  std::size_t count = 0;  ///< out: number of bytes in `target`
  Buffer buffer;          ///< out: the bytes, if `target` is empty
};

/// Sends all of `pieces` in order, or fails; see also `partial`.
/// Lifetime: the pieces and their bytes stay valid until the operation has finished.
struct SendOperation : Operation {
  explicit SendOperation(Function function) noexcept : Operation(Kind::send, function) {}
  std::span<const Bytes> pieces;
  /// True if shut_down_sending() follows immediately. The kernel may keep the last bytes until
  /// then, to send both in one packet.
  bool last = false;
  /// True if the send never waits. It finishes immediately, and `sent` counts the bytes that the
  /// kernel has taken. It is no error if the kernel takes only a part or nothing.
  bool partial = false;
  /// Out, updated while pending: number of bytes that the kernel has taken. A failed send over a
  /// layer, such as TLS, counts each byte that the kernel may have taken.
  std::size_t sent = 0;
};

/// Accepts one connection.
struct AcceptOperation : Operation {
  explicit AcceptOperation(Function function) noexcept : Operation(Kind::accept, function) {}
  Descriptor accepted;  ///< out: a non-blocking, close-on-exec descriptor
};

/// Connects a stream socket.
struct ConnectOperation : Operation {
  explicit ConnectOperation(Function function) noexcept : Operation(Kind::connect, function) {}
  os::Address peer;
};

/// Receives at least one datagram, and at most as many as wait and one system call takes, in the
/// order of arrival. A socket error is reported once; the socket stays usable.
struct ReceiveDatagramsOperation : Operation {
  explicit ReceiveDatagramsOperation(Function function) noexcept
      : Operation(Kind::receive_datagrams, function) {}
  /// Results; not empty. The operation uses a buffer of `bytes_max` bytes again if an element
  /// already has one. The elements hold no buffers while the operation waits for the first
  /// datagram.
  std::span<Datagram> target;
  std::uint32_t bytes_max = Buffer::default_capacity;  ///< limit for one datagram; not 0
  bool gro = false;                                    ///< see DatagramOptions::gro
  std::size_t count = 0;  ///< out: number of elements of `target` that were filled
};

/// Sends datagrams in order, each whole or not at all. The operation ends when all are sent or one
/// fails.
/// Lifetime: the datagrams and their bytes stay valid until the operation has finished.
struct SendDatagramsOperation : Operation {
  explicit SendDatagramsOperation(Function function) noexcept
      : Operation(Kind::send_datagrams, function) {}
  std::span<const OutgoingDatagram> datagrams;
  /// Out, updated while pending: number of datagrams that the kernel has taken.
  std::size_t sent = 0;
};

/// Reads, writes or syncs an open file of the platform. The alignment leaves room for io_uring's
/// tags.
struct alignas(16) FileOperation : Operation {
  enum class Action : std::uint8_t {
    read,   ///< some bytes into `target`, at least one; a `count` of 0: end of file at `offset`
    write,  ///< some bytes of `source`, at least one
    sync,   ///< all written data, to storage that survives a loss of power
  };
  explicit FileOperation(Function function) noexcept : Operation(Kind::file, function) {}
  Action action = Action::read;
  int file = -1;
  std::uint64_t offset = 0;  ///< at most os::file_offset_max
  MutableBytes target;       ///< not empty for a read
  Bytes source;              ///< not empty for a write
  std::size_t count = 0;     ///< out: number of bytes read or written
  bool cancelling = false;   ///< for backends: true after cancel()
};

/// A callback that the backend calls once when a connection is dead in both directions: reset by
/// the peer, or shut down in both directions. A peer that has only finished sending is not dead. An
/// observer of input is called earlier: when no receive is pending and a receive would not wait,
/// because bytes, the end of the stream or an error have arrived.
class HangupObserver {
 public:
  using Function = void (*)(HangupObserver&);
  enum class Event : std::uint8_t { hangup, input };
  explicit HangupObserver(Function function, Event event = Event::hangup) noexcept
      : function_(function), event_(event) {}
  HangupObserver(const HangupObserver&) = delete;
  HangupObserver& operator=(const HangupObserver&) = delete;
  /// The backend calls it on the thread of the loop, inside wait(), a start function or
  /// observe_hangup(). It must not start, cancel or close any operation or socket directly; it
  /// queues such work on the loop.
  void on_hangup() { function_(*this); }
  bool observes_input() const noexcept { return event_ == Event::input; }

 protected:
  ~HangupObserver() = default;

 private:
  Function function_;
  Event event_;
};

}  // namespace weir::loop
