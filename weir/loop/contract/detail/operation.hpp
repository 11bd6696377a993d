// Operations: one piece of input or output each, living in the frame of who waits for it.
#pragma once

#include <cstdint>
#include <span>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/loop/datagram.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/os/address.hpp"

namespace weir {

class Backend;
struct Socket;

/// What every operation has. It is started on a backend, finishes exactly once, and when it did
/// not finish at once its Runnable is then queued on the loop. Until it has finished, the backend
/// owns it and every buffer that it names: it is neither moved nor destroyed before.
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
  /// nullptr for a file's.
  Socket* socket() const noexcept { return socket_; }
  /// No error: it succeeded. Errc::cancelled: it did nothing. Valid when finished.
  std::error_code error() const noexcept { return error_; }

  /// For backends: called by start functions and at the end.
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

/// Receives what has arrived, at least one byte: into `target` when that is not empty, else into a
/// buffer lent by the core. The peer's end of sending is Errc::end_of_stream, on every call again.
struct ReceiveOperation : Operation {
  explicit ReceiveOperation(Function function) noexcept : Operation(Kind::receive, function) {}
  MutableBytes target;
  std::size_t count = 0;  ///< out: bytes in `target`
  Buffer buffer;          ///< out: the bytes, when there was no target
};

/// Sends all of `pieces`, in order, or fails. The pieces and what they name stay valid until the
/// operation has finished.
struct SendOperation : Operation {
  explicit SendOperation(Function function) noexcept : Operation(Kind::send, function) {}
  std::span<const Bytes> pieces;
  std::size_t sent = 0;  ///< out, kept up to date while pending: bytes the kernel has taken
};

/// Accepts one connection.
struct AcceptOperation : Operation {
  explicit AcceptOperation(Function function) noexcept : Operation(Kind::accept, function) {}
  Descriptor accepted;  ///< out: non-blocking, close-on-exec
};

/// Connects a stream socket.
struct ConnectOperation : Operation {
  explicit ConnectOperation(Function function) noexcept : Operation(Kind::connect, function) {}
  os::Address peer;
};

/// Receives datagrams: at least one, as many as wait and as one system call takes, in the order in
/// which they arrived. An error is the socket's and is told once; the socket goes on.
struct ReceiveDatagramsOperation : Operation {
  explicit ReceiveDatagramsOperation(Function function) noexcept
      : Operation(Kind::receive_datagrams, function) {}
  /// Not empty. A buffer of `bytes_max` that is there already is used again. While none has arrived
  /// they hold no buffers.
  std::span<Datagram> target;
  std::uint32_t bytes_max = Buffer::default_capacity;  ///< of one; not 0
  bool joined = false;                                 ///< see DatagramOptions::joined
  std::size_t count = 0;                               ///< out: the first so many of `target`
};

/// Sends datagrams in order, each whole or not at all, until all are sent or one cannot be. They
/// and what they name stay valid until the operation has finished.
struct SendDatagramsOperation : Operation {
  explicit SendDatagramsOperation(Function function) noexcept
      : Operation(Kind::send_datagrams, function) {}
  std::span<const OutgoingDatagram> datagrams;
  std::size_t sent = 0;  ///< out, kept up to date while pending: datagrams the kernel has taken
};

/// Reads, writes or syncs an open file of the host. Aligned for io_uring's tags.
struct alignas(16) FileOperation : Operation {
  enum class Action : std::uint8_t {
    read,   ///< some bytes into `target`, at least one; a `count` of 0: the file ends at `offset`
    write,  ///< some bytes of `source`, at least one
    sync,   ///< everything that was written, to where a loss of power leaves it
  };
  explicit FileOperation(Function function) noexcept : Operation(Kind::file, function) {}
  Action action = Action::read;
  int file = -1;
  std::uint64_t offset = 0;  ///< at most os::file_offset_max
  MutableBytes target;       ///< not empty, to read
  Bytes source;              ///< not empty, to write
  std::size_t count = 0;     ///< out: bytes read or written
  bool cancelling = false;   ///< for backends: cancel() was called
};

/// Told once when a connection is dead both ways: reset by the peer, or shut down in both
/// directions. A peer that only finished sending is not dead.
class HangupWatcher {
 public:
  using Function = void (*)(HangupWatcher&);
  explicit HangupWatcher(Function function) noexcept : hung_up_(function) {}
  HangupWatcher(const HangupWatcher&) = delete;
  HangupWatcher& operator=(const HangupWatcher&) = delete;
  /// Called by the backend, on the loop's thread, inside wait() or a start function; it must not
  /// start, cancel or close anything by itself but queue that on the loop.
  void hung_up() { hung_up_(*this); }

 protected:
  ~HangupWatcher() = default;

 private:
  Function hung_up_;
};

}  // namespace weir
