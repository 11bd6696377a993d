// The buffers of one active HTTP/1.1 connection, and the limit for slow readers.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/server/detail/deadline_stream.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Holds the bytes that were read from a stream and not yet used, and the bytes to send on it. A
/// connection creates it when bytes arrive, with them as its input, and destroys it when all
/// requests are answered.
/// Threads: its loop's.
class ConnectionIo {
 public:
  using ReadPurpose = DeadlineStream::ReadPurpose;

  ConnectionIo(DeadlineStream& timed, const Limits& limits, Buffer input = {}) noexcept
      : timed_(timed),
        limits_(limits),
        input_(std::move(input)),
        write_rate_tracker_(limits.write_rate) {
    assert(timed.io_ == nullptr);
    timed.io_ = this;
    timed.was_active_ = true;
  }
  ~ConnectionIo() { timed_.io_ = nullptr; }
  ConnectionIo(const ConnectionIo&) = delete;
  ConnectionIo& operator=(const ConnectionIo&) = delete;

  tcp::Stream& stream() noexcept { return timed_.stream(); }
  Loop& loop() const noexcept { return timed_.loop(); }
  Buffer& input() noexcept { return input_; }
  Buffer& output() noexcept { return output_; }

  /// Starts the progress checks of a write; end_write() must follow. A write without progress is
  /// cancelled.
  void begin_write() noexcept {
    assert(!writing_);
    writing_ = true;
    write_checked_ = write_expired_ = false;
    last_write_check_ = loop().now();
    next_write_check_ = after(last_write_check_, limits_.write_rate.grace / 10);
    timed_.watch_until(next_write_check_);
  }
  /// Ends a write. A failed write may have sent a part, so nothing can be sent behind it.
  void end_write(std::error_code error) noexcept {
    writing_ = false;
    const bool too_slow = write_expired_ && error == Errc::cancelled;
    if (error) broken_ = too_slow ? make_error_code(Errc::timed_out) : error;
    if (next_writer_ != nullptr) loop().ready(*std::exchange(next_writer_, nullptr));
  }
  bool writing() const noexcept { return writing_; }
  /// Returns why nothing can be sent any more, or no error. Errc::timed_out: the peer reads too
  /// slowly.
  std::error_code broken() const noexcept { return broken_; }

  /// Returns the output buffer, with memory for a response.
  Buffer& writable_output() {
    if (!output_.owns_memory()) output_ = Buffer::with_capacity();
    return output_;
  }

  /// Reads more bytes behind those in input(), which may move.
  /// Errors: those of Stream::read(); Errc::timed_out if `deadline` passed.
  /// Cancel: that of Stream::read().
  Task<Result<>> fill(ReadPurpose what, Instant deadline);
  /// Sends the bytes in output(), then the pieces; output() is empty afterwards. If another send
  /// is in progress, this one first waits for its end; at most one send may wait.
  /// Errors: broken(), also for every later send.
  /// Cancel: that of Stream::write().
  Task<Result<>> send(Bytes first = {}, Bytes second = {}, Bytes third = {});

  /// Frees the memory of empty buffers.
  void drop_empty_buffers() noexcept {
    if (input_.empty()) input_ = {};
    if (output_.empty() && !writing_) output_ = {};
  }

 private:
  /// Waits until the write in progress has ended.
  class WriteTurn : public Waiter {
   public:
    explicit WriteTurn(ConnectionIo& io) noexcept : io_(io) {}
    bool await_ready() const noexcept { return !io_.writing_; }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      assert(io_.next_writer_ == nullptr);
      set_coroutine(handle);
      io_.next_writer_ = this;
    }
    void await_resume() const noexcept {}

   private:
    ConnectionIo& io_;
  };

  friend DeadlineStream;
  Instant check_write(Instant now);

  DeadlineStream& timed_;
  const Limits& limits_;
  Buffer input_;
  Buffer output_;
  Instant next_write_check_{};       // next check of the present write
  Instant last_write_check_{};       // last check, or the begin of the write
  std::int64_t write_progress_ = 0;  // bytes that the peer had then
  RateTracker write_rate_tracker_;
  std::error_code broken_;
  Waiter* next_writer_ = nullptr;
  bool writing_ = false;
  bool write_checked_ = false;
  bool write_expired_ = false;
};

}  // namespace weir::http
