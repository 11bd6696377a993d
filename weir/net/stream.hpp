// The byte-stream interface of TCP connections, Unix sockets and the layers above them (TLS).
#pragma once

#include <cassert>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <span>
#include <string_view>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/close_mode.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/os/address.hpp"
#include "weir/task/context.hpp"

namespace weir {

class Read;
class ReadInto;
class Write;
template <class Plain>
class Timed;
class AnyStream;
class StreamLayer;
struct TlsInfo;
namespace os {
struct FilePart;
}  // namespace os

/// IoOptions limits one operation: `co_await stream.read({.timeout = 2s})`.
struct IoOptions {
  /// Limit for the wait, counted from the await: until the first bytes of a read, or the last of a
  /// write. Zero or less: the loop asks the kernel once and does not wait. Default: no limit.
  Duration timeout = Duration::max();
};

/// A connected, ordered, reliable stream of bytes. Operations return every action of the peer as a
/// value. The end of the peer's data is Errc::end_of_stream. A reset is ECONNRESET. A write to a
/// closed peer fails with EPIPE or ECONNRESET. One read and one write may be pending at the same
/// time, but not two of the same kind (asserted).
///
/// A timeout cancels the operation, which then fails with Errc::timed_out. It costs no coroutine
/// frame and no allocation: the timer lies in the awaiting frame beside the operation, and runs
/// only while the operation waits. A result beats the timeout, since a loop takes the results of
/// the kernel before it fires timers. Of a cancellation and a timeout, the first decides the error.
/// Threads: one loop's, that of the operations on it.
/// Lifetime: no operation is pending when it is moved or destroyed (asserted). Destroying it closes
/// it.
class Stream {
 public:
  virtual ~Stream() { assert(reading_ == nullptr && writing_ == nullptr); }
  Stream& operator=(const Stream&) = delete;

  /// Reads at least one byte into a buffer of the core. A waiting read holds no buffer.
  /// Returns: a Result<Buffer> from `co_await stream.read()`.
  /// Errors: Errc::end_of_stream, ECONNRESET, others of the kernel; Errc::timed_out;
  /// Errc::cancelled.
  /// Cancel: loses no data; the next read returns bytes that arrive later.
  Read read() noexcept;
  Timed<Read> read(IoOptions options) noexcept;
  /// Reads at least one byte into `target`, which is not empty (asserted).
  /// Returns: the number of bytes as a Result<std::size_t>, from `co_await`.
  /// Errors: Errc::end_of_stream, ECONNRESET, others of the kernel; Errc::timed_out;
  /// Errc::cancelled.
  /// Cancel: loses no data; the next read returns bytes that arrive later. `target` is free when
  /// the operation returns.
  /// Lifetime: `target` stays valid, and no other code uses it, until the return.
  ReadInto read_into(MutableBytes target) noexcept;
  Timed<ReadInto> read_into(MutableBytes target, IoOptions options) noexcept;
  /// Writes all bytes, or fails.
  /// Returns: a Result<> from `co_await stream.write(bytes)`.
  /// Errors: EPIPE or ECONNRESET if the peer has closed, others of the kernel; Errc::timed_out;
  /// Errc::cancelled.
  /// Cancel: returns when nothing uses the bytes any more. A part of them may have been sent, so
  /// the caller can only close the stream.
  /// Lifetime: the bytes stay valid until the return.
  Write write(Bytes bytes) noexcept;
  Timed<Write> write(Bytes bytes, IoOptions options) noexcept;
  Write write(std::string_view text) noexcept;
  Timed<Write> write(std::string_view text, IoOptions options) noexcept;
  /// Writes several pieces in order, in as few system calls as possible.
  /// Returns: a Result<> from `co_await stream.write(pieces)`.
  /// Errors: EPIPE or ECONNRESET if the peer has closed, others of the kernel; Errc::timed_out;
  /// Errc::cancelled.
  /// Cancel: returns when nothing uses the bytes any more. A part of them may have been sent, so
  /// the caller can only close the stream.
  /// Lifetime: the span and the bytes stay valid until the return.
  Write write(std::span<const Bytes> pieces) noexcept;
  Timed<Write> write(std::span<const Bytes> pieces, IoOptions options) noexcept;
  /// Writes as many bytes of several pieces as the kernel takes without waiting. No write is
  /// pending (asserted).
  /// Returns: the number of bytes written; 0 is possible. It is always 0 over a layer that copies
  /// the bytes, such as TLS.
  /// Errors: EPIPE or ECONNRESET if the peer has closed, others of the kernel.
  Result<std::size_t> try_write(std::span<const Bytes> pieces);
  /// Writes `before`, and then bytes of an open file without a copy, as many as the kernel takes
  /// without waiting for the peer. No write is pending (asserted). The caller makes sure that the
  /// bytes of the file are in memory, and sends at most 256 KiB per turn.
  /// Returns: the number of bytes written, those of `before` included; 0 is possible. It is always
  /// 0 over a layer that copies the bytes, such as TLS.
  /// Errors: EPIPE or ECONNRESET if the peer has closed, others of the kernel.
  Result<std::size_t> try_write_file(Bytes before, const os::FilePart& part) {
    assert(writing_ == nullptr);
    return send_file(before, part);
  }

  /// Tells the peer that no more data follows (half-close). Reading continues. No write is pending
  /// when it is called.
  virtual Result<> finish_writing() = 0;
  /// Closes both directions. No operation is pending when it is called. Later reads and writes fail
  /// with Errc::closed, the addresses are none, and another close() does nothing.
  virtual void close() = 0;
  /// Sets what the peer sees when the stream is closed or destroyed. A new stream has
  /// CloseMode::orderly. With CloseMode::reset, TCP resets the connection, and TLS sends no
  /// close_notify (RFC 9112 §9.8): a message that the end of the stream would complete is visibly
  /// cut off. A Unix socket cannot be reset. A tunnel of HTTP/2 always resets its stream unless
  /// finish_writing() was called before.
  /// Errors: Errc::closed after close(); the kernel's.
  virtual Result<> set_close_mode(CloseMode mode) = 0;

  Loop& loop() const noexcept { return *loop_; }
  virtual os::Address peer_address() const = 0;
  virtual os::Address local_address() const = 0;
  /// Returns the facts of the TLS connection; nullptr if the stream is plain or closed.
  virtual const TlsInfo* tls() const noexcept { return nullptr; }

  /// Cancels the pending read or write, if any, as cancelling its task would.
  void cancel_read() { cancel(reading_); }
  void cancel_write() { cancel(writing_); }
  /// Returns the number of bytes of the pending write that the kernel has taken; 0 if no write is
  /// pending.
  std::size_t pending_write_sent() const noexcept {
    return writing_ == nullptr ? 0 : sent_of(*static_cast<const loop::SendOperation*>(writing_));
  }
  /// Returns the number of sent bytes that the peer's host has not acknowledged yet.
  virtual std::size_t unacked_bytes() const = 0;
  /// Sets the observer of the end of the stream; nullptr: none. The loop calls the observer once,
  /// on its thread, when both directions are closed or the stream was reset. An observer of input
  /// is also called when a read would not wait, while none is pending. No read or write needs to be
  /// pending. This function calls the observer immediately if that is known to be so already.
  /// Lifetime: the observer stays valid until it was called, was replaced by another or by nullptr,
  /// or the stream was closed.
  virtual void observe_hangup(loop::HangupObserver* observer) = 0;

 protected:
  explicit Stream(Loop& loop) noexcept : loop_(&loop) {}
  Stream(const Stream& other) noexcept : loop_(other.loop_) {
    assert(other.reading_ == nullptr && other.writing_ == nullptr);
  }
  /// Sets the loop of the stream that is assigned to this one.
  void set_loop(Loop& loop) noexcept { loop_ = &loop; }

  // Hooks of a concrete stream, with the contracts of Backend's receive(), send() and cancel().
  virtual bool start_receive(loop::ReceiveOperation& operation) = 0;
  virtual bool start_send(loop::SendOperation& operation) = 0;
  virtual Result<std::size_t> send_file(Bytes, const os::FilePart&) { return 0; }
  virtual void cancel_operation(loop::Operation& operation) = 0;
  /// Returns the number of bytes of a pending send that the kernel has taken.
  virtual std::size_t sent_of(const loop::SendOperation& operation) const noexcept {
    return operation.sent;
  }
  /// Moves this stream into a new object of its class at `room`, which has AnyStream::size bytes.
  virtual Stream* move_to(void* room) noexcept = 0;

 private:
  friend class AnyStream;
  friend class StreamLayer;
  friend class Read;
  friend class ReadInto;
  friend class Write;
  template <class Op>
  friend class StreamAwaiter;
  void cancel(loop::Operation* operation) {
    if (operation != nullptr) cancel_operation(*operation);
  }

  Loop* loop_;
  loop::Operation* reading_ = nullptr;
  loop::Operation* writing_ = nullptr;
};

/// Base of the awaiters of a stream. The operation lives in the frame of the awaiting coroutine.
template <class Op>
class StreamAwaiter : protected Op, CancelNode {
 public:
  explicit StreamAwaiter(Stream& stream) noexcept
      : Op(&resume), CancelNode(stream_kind), stream_(stream) {
    assert(pending() == nullptr);
  }
  ~StreamAwaiter() { assert(pending() != static_cast<loop::Operation*>(this)); }

  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    if (!join(handle.promise().context().cancel)) stream_.cancel_operation(*this);
  }

 protected:
  bool started(bool finished) noexcept {
    if (!finished) pending() = this;
    return finished;
  }
  Stream& stream() noexcept { return stream_; }
  /// Cancels the operation; see Timed.
  bool cancel_for_timeout() {
    const bool waits = this->state() == loop::Operation::State::pending;
    if (!waits || ContextHolder::of(handle_).cancelled()) return false;
    stream_.cancel_operation(*this);
    return true;
  }

 private:
  /// Returns the stream's pointer to the pending operation of this kind.
  loop::Operation*& pending() const noexcept {
    if constexpr (std::same_as<Op, loop::ReceiveOperation>) {
      return stream_.reading_;
    } else {
      return stream_.writing_;
    }
  }
  static void resume(loop::Runnable& runnable) {
    auto& self = static_cast<StreamAwaiter&>(static_cast<Op&>(runnable));
    self.pending() = nullptr;
    self.leave();
    resume_coroutine(self.handle_);
  }
  static void on_cancel(CancelNode& node) {
    auto& self = static_cast<StreamAwaiter&>(node);
    self.stream_.cancel_operation(self);
  }
  static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
    return static_cast<const StreamAwaiter&>(node).handle_;
  }
  static constexpr CancelNode::Kind stream_kind{
      &on_cancel, std::same_as<Op, loop::ReceiveOperation> ? "read" : "write", &coroutine_of};

  Stream& stream_;
  std::coroutine_handle<> handle_;
};

/// The awaitable of Stream::read().
class [[nodiscard]] Read {
 public:
  explicit Read(Stream& stream) noexcept : stream_(&stream) {}
  class Awaiter : public StreamAwaiter<loop::ReceiveOperation> {
   public:
    explicit Awaiter(const Read& read) noexcept : StreamAwaiter(*read.stream_) {}
    bool await_ready() { return started(stream().start_receive(*this)); }
    Result<Buffer> await_resume() noexcept {
      if (error()) return fail(error());
      return std::move(buffer);
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*this); }

 private:
  Stream* stream_;
};

/// The awaitable of Stream::read_into().
class [[nodiscard]] ReadInto {
 public:
  ReadInto(Stream& stream, MutableBytes target) noexcept : stream_(&stream), target_(target) {
    assert(!target.empty());
  }
  class Awaiter : public StreamAwaiter<loop::ReceiveOperation> {
   public:
    explicit Awaiter(const ReadInto& read) noexcept : StreamAwaiter(*read.stream_) {
      target = read.target_;
    }
    bool await_ready() { return started(stream().start_receive(*this)); }
    Result<std::size_t> await_resume() const noexcept {
      if (error()) return fail(error());
      return count;
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*this); }

 private:
  Stream* stream_;
  MutableBytes target_;
};

/// The awaitable of Stream::write().
class [[nodiscard]] Write {
 public:
  Write(Stream& stream, Bytes bytes) noexcept : stream_(&stream), single_(bytes) {}
  Write(Stream& stream, std::span<const Bytes> pieces) noexcept
      : stream_(&stream), pieces_(pieces), several_(true) {}
  /// Marks the last write of a stream: `co_await stream.write(bytes).last()`. The caller calls
  /// finish_writing() immediately afterwards. The bytes, the close_notify of TLS and the end of the
  /// stream then share a packet. Otherwise the bytes may arrive late, and a further write over TLS
  /// fails with EPIPE.
  /// Cancel: that of Stream::write().
  Write& last() noexcept {
    last_ = true;
    return *this;
  }
  class Awaiter : public StreamAwaiter<loop::SendOperation> {
   public:
    explicit Awaiter(const Write& write) noexcept
        : StreamAwaiter(*write.stream_), single_(write.single_) {
      pieces = write.several_ ? write.pieces_ : std::span<const Bytes>(&single_, 1);
      SendOperation::last = write.last_;
    }
    bool await_ready() { return started(stream().start_send(*this)); }
    Result<> await_resume() const noexcept {
      if (error()) return fail(error());
      return {};
    }

   private:
    Bytes single_;
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*this); }

 private:
  Stream* stream_;
  Bytes single_;
  std::span<const Bytes> pieces_;
  bool several_ = false;
  bool last_ = false;
};

/// The awaitable of an operation with a timeout; see Stream. `Plain` is the awaitable without one.
/// Its awaiter has a function `bool cancel_for_timeout()`, which cancels the operation. It returns
/// false and has no effect if the operation has finished or its task is cancelled.
template <class Plain>
class [[nodiscard]] Timed {
 public:
  Timed(const Plain& plain, IoOptions options) noexcept : plain_(plain), options_(options) {}
  class Awaiter : public Plain::Awaiter, loop::Timer {
   public:
    Awaiter(const Plain& plain, IoOptions options) noexcept
        : Plain::Awaiter(plain), loop::Timer(&on_timer), options_(options) {}
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) {
      Loop& loop = *handle.promise().context().loop;
      loop.timers().start(*this, after(loop.platform().now(), options_.timeout));
      Plain::Awaiter::await_suspend(handle);
    }
    auto await_resume() noexcept {
      loop::Timer::cancel();
      auto result = Plain::Awaiter::await_resume();
      if (!result && expired_ && result.error() == Errc::cancelled) result = fail(Errc::timed_out);
      return result;
    }

   private:
    static void on_timer(loop::Timer& timer) {
      auto& self = static_cast<Awaiter&>(timer);
      self.expired_ = self.cancel_for_timeout();
    }

    bool expired_ = false;  // lies in the padding of Timer's last word
    IoOptions options_;
  };
  Awaiter operator co_await() const noexcept { return Awaiter(plain_, options_); }

 private:
  Plain plain_;
  IoOptions options_;
};

inline Read Stream::read() noexcept {
  return Read(*this);
}
inline Timed<Read> Stream::read(IoOptions options) noexcept {
  return {read(), options};
}
inline ReadInto Stream::read_into(MutableBytes target) noexcept {
  return {*this, target};
}
inline Timed<ReadInto> Stream::read_into(MutableBytes target, IoOptions options) noexcept {
  return {read_into(target), options};
}
inline Write Stream::write(Bytes bytes) noexcept {
  return {*this, bytes};
}
inline Timed<Write> Stream::write(Bytes bytes, IoOptions options) noexcept {
  return {write(bytes), options};
}
inline Write Stream::write(std::string_view text) noexcept {
  return {*this, to_bytes(text)};
}
inline Timed<Write> Stream::write(std::string_view text, IoOptions options) noexcept {
  return {write(text), options};
}
inline Write Stream::write(std::span<const Bytes> pieces) noexcept {
  return {*this, pieces};
}
inline Timed<Write> Stream::write(std::span<const Bytes> pieces, IoOptions options) noexcept {
  return {write(pieces), options};
}
inline Result<std::size_t> Stream::try_write(std::span<const Bytes> pieces) {
  assert(writing_ == nullptr);
  loop::SendOperation operation([](loop::Runnable&) {});
  operation.pieces = pieces;
  operation.partial = true;
  [[maybe_unused]] const bool finished = start_send(operation);
  assert(finished);
  if (operation.error()) return fail(operation.error());
  return operation.sent;
}

}  // namespace weir
