// The one byte-stream interface: what TCP, Unix sockets and layers above them (TLS) all are.
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
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/os/address.hpp"
#include "weir/task/context.hpp"

namespace weir {

class Read;
class ReadInto;
class Write;

/// A connected, ordered, reliable stream of bytes. Whatever the peer does comes as a value: the
/// end of what it sends is Errc::end_of_stream, a reset is ECONNRESET, writing to one that left is
/// EPIPE or ECONNRESET. One reader and one writer at a time (asserted); both at once are fine.
/// Threads: one loop's, that of the operations on it. Lifetime: no operation is pending when it is
/// moved or destroyed (asserted); destroying it closes it.
class Stream {
 public:
  virtual ~Stream() { assert(reading_ == nullptr && writing_ == nullptr); }
  Stream& operator=(const Stream&) = delete;

  /// `co_await stream.read()`: a Result<Buffer> with at least one byte, in a buffer that the core
  /// lends; while nothing arrives, none is held.
  /// Cancel: nothing is lost; what arrives later is given to the next read.
  Read read() noexcept;
  /// `co_await stream.read_into(span)`: at least one byte into the caller's memory (not empty),
  /// which stays untouched by others until it returns; gives the count.
  /// Cancel: as read().
  ReadInto read_into(MutableBytes target) noexcept;
  /// `co_await stream.write(bytes)`: all of them, or an error. The bytes stay valid meanwhile.
  /// Cancel: returns when nothing uses the bytes any more; a part of them may have been sent, so
  /// that only closing is left.
  Write write(Bytes bytes) noexcept;
  Write write(std::string_view text) noexcept;
  /// The same for several pieces, in order, in as few system calls as possible. The span itself
  /// stays valid too.
  Write write(std::span<const Bytes> pieces) noexcept;

  /// Tells the peer that nothing more comes (half-close); reading goes on. No write is pending.
  virtual Result<> finish_writing() = 0;
  /// Closes both directions. Nothing is pending.
  virtual void close() = 0;

  virtual os::Address peer_address() const = 0;
  virtual os::Address local_address() const = 0;

  /// Asks the pending read or write, if any, to finish early, as cancelling its task would.
  void cancel_read() { cancel(reading_); }
  void cancel_write() { cancel(writing_); }
  /// How much of the pending write the kernel has taken; 0 when none is pending.
  std::size_t sent_of_pending_write() const noexcept {
    return writing_ == nullptr ? 0 : static_cast<const SendOperation*>(writing_)->sent;
  }
  /// Bytes that were sent and have not yet arrived at the peer's host.
  virtual std::size_t unacknowledged() const = 0;
  /// From now on `watcher` (or nobody, for nullptr) is told when the stream is dead: both
  /// directions are closed or it was reset, also while nothing is read or written. It is told once,
  /// on the loop's thread, at once (inside this call) when the stream is known to be dead already.
  /// The watcher outlives the watch, which ends when it has been told, when another or nullptr
  /// takes its place, or with the stream.
  virtual void watch(HangupWatcher* watcher) = 0;

 protected:
  Stream() noexcept = default;
  Stream([[maybe_unused]] const Stream& other) noexcept {
    assert(other.reading_ == nullptr && other.writing_ == nullptr);
  }

  // The contract of a stream's own kind: as Backend's receive(), send() and cancel().
  virtual bool start_receive(ReceiveOperation& operation) = 0;
  virtual bool start_send(SendOperation& operation) = 0;
  virtual void cancel_operation(Operation& operation) = 0;

 private:
  friend class Read;
  friend class ReadInto;
  friend class Write;
  template <class Op>
  friend class StreamAwaiter;
  void cancel(Operation* operation) {
    if (operation != nullptr) cancel_operation(*operation);
  }

  Operation* reading_ = nullptr;
  Operation* writing_ = nullptr;
};

/// What the awaiters of a stream have in common: the operation lives here, in the awaiting frame.
template <class Op>
class StreamAwaiter : protected Op, CancelNode {
 public:
  explicit StreamAwaiter(Stream& stream) noexcept : Op(&resume), CancelNode(&ask), stream_(stream) {
    assert(pending() == nullptr);
  }
  ~StreamAwaiter() { assert(pending() != static_cast<Operation*>(this)); }

  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    CancelSource* cancel = handle.promise().context().cancel;
    if (cancel == nullptr) return;
    if (cancel->cancelled()) {
      stream_.cancel_operation(*this);
    } else {
      cancel->add(*this);
    }
  }

 protected:
  bool started(bool finished) noexcept {
    if (!finished) pending() = this;
    return finished;
  }
  Stream& stream() noexcept { return stream_; }

 private:
  /// The stream's operation of this kind, while it is pending.
  Operation*& pending() const noexcept {
    if constexpr (std::same_as<Op, ReceiveOperation>) {
      return stream_.reading_;
    } else {
      return stream_.writing_;
    }
  }
  static void resume(Runnable& runnable) {
    auto& self = static_cast<StreamAwaiter&>(static_cast<Op&>(runnable));
    self.pending() = nullptr;
    static_cast<CancelNode&>(self).unlink();
    go_on_with(self.handle_);
  }
  static void ask(CancelNode& node) {
    auto& self = static_cast<StreamAwaiter&>(node);
    self.stream_.cancel_operation(self);
  }

  Stream& stream_;
  std::coroutine_handle<> handle_;
};

/// See Stream::read().
class [[nodiscard]] Read {
 public:
  explicit Read(Stream& stream) noexcept : stream_(&stream) {}
  class Awaiter : public StreamAwaiter<ReceiveOperation> {
   public:
    explicit Awaiter(Stream& stream) noexcept : StreamAwaiter(stream) {}
    bool await_ready() { return started(stream().start_receive(*this)); }
    Result<Buffer> await_resume() noexcept {
      if (error()) return fail(error());
      return std::move(buffer);
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*stream_); }

 private:
  Stream* stream_;
};

/// See Stream::read_into().
class [[nodiscard]] ReadInto {
 public:
  ReadInto(Stream& stream, MutableBytes target) noexcept : stream_(&stream), target_(target) {
    assert(!target.empty());
  }
  class Awaiter : public StreamAwaiter<ReceiveOperation> {
   public:
    Awaiter(Stream& stream, MutableBytes into) noexcept : StreamAwaiter(stream) { target = into; }
    bool await_ready() { return started(stream().start_receive(*this)); }
    Result<std::size_t> await_resume() const noexcept {
      if (error()) return fail(error());
      return count;
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*stream_, target_); }

 private:
  Stream* stream_;
  MutableBytes target_;
};

/// See Stream::write().
class [[nodiscard]] Write {
 public:
  Write(Stream& stream, Bytes bytes) noexcept : stream_(&stream), single_(bytes) {}
  Write(Stream& stream, std::span<const Bytes> pieces) noexcept
      : stream_(&stream), pieces_(pieces), several_(true) {}
  class Awaiter : public StreamAwaiter<SendOperation> {
   public:
    Awaiter(Stream& stream, Bytes single, std::span<const Bytes> several, bool is_several) noexcept
        : StreamAwaiter(stream), single_(single) {
      pieces = is_several ? several : std::span<const Bytes>(&single_, 1);
    }
    bool await_ready() { return started(stream().start_send(*this)); }
    Result<> await_resume() const noexcept {
      if (error()) return fail(error());
      return {};
    }

   private:
    Bytes single_;
  };
  Awaiter operator co_await() const noexcept {
    return Awaiter(*stream_, single_, pieces_, several_);
  }

 private:
  Stream* stream_;
  Bytes single_;
  std::span<const Bytes> pieces_;
  bool several_ = false;
};

inline Read Stream::read() noexcept {
  return Read(*this);
}
inline ReadInto Stream::read_into(MutableBytes target) noexcept {
  return {*this, target};
}
inline Write Stream::write(Bytes bytes) noexcept {
  return {*this, bytes};
}
inline Write Stream::write(std::string_view text) noexcept {
  return {*this, to_bytes(text)};
}
inline Write Stream::write(std::span<const Bytes> pieces) noexcept {
  return {*this, pieces};
}

}  // namespace weir
