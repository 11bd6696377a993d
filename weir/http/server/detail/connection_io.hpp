// The bytes of one HTTP/1.1 connection at work: its buffers, and its patience with slow readers.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/detail/deadline_stream.hpp"
#include "weir/http/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// What was read from a stream and not yet used, and what is to be sent on it. There is one while a
/// connection has work: it is made when bytes have arrived, as what they are the input of, and
/// dropped when all are answered.
/// Threads: its loop's.
class Transport {
 public:
  using Waiting = TimedStream::Waiting;

  Transport(TimedStream& timed, const Limits& limits, Buffer input = {}) noexcept
      : timed_(timed),
        limits_(limits),
        input_(std::move(input)),
        write_patience_(limits.write_rate) {
    assert(timed.transport_ == nullptr);
    timed.transport_ = this;
    timed.used_ = true;
  }
  ~Transport() { timed_.transport_ = nullptr; }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  tcp::Stream& stream() noexcept { return timed_.stream(); }
  Loop& loop() const noexcept { return timed_.loop(); }
  Buffer& input() noexcept { return input_; }
  Buffer& output() noexcept { return output_; }

  /// Brackets every write of the stream: without progress it is cancelled.
  void begin_write() noexcept {
    assert(!writing_);
    writing_ = true;
    write_looked_ = write_expired_ = false;
    write_looked_at_ = loop().now();
    write_look_ = after(write_looked_at_, limits_.write_rate.grace / 10);
    timed_.watch_until(write_look_);
  }
  /// A write that failed may have sent a part: nothing can be sent behind it.
  void end_write(std::error_code error) noexcept {
    writing_ = false;
    const bool too_slow = write_expired_ && error == Errc::cancelled;
    if (error) broken_ = too_slow ? make_error_code(Errc::timed_out) : error;
    if (next_writer_ != nullptr) loop().ready(*std::exchange(next_writer_, nullptr));
  }
  bool writing() const noexcept { return writing_; }
  /// Why nothing can be sent any more, if so; Errc::timed_out: the peer reads too slowly.
  std::error_code broken() const noexcept { return broken_; }

  /// Room for an answer: the output buffer, with a block.
  Buffer& writable_output() {
    if (!output_.owns_memory()) output_ = Buffer::with_capacity();
    return output_;
  }

  /// Reads more behind what is in input(), whose bytes may move; see Stream::read() for errors.
  /// Cancel: as Stream::read().
  Task<Result<>> fill(Waiting what, Instant deadline);
  /// Sends what is in output(), then the pieces; output() is empty afterwards. While another send
  /// is under way, waits for its end first (at most one does). Errors: broken(), from then on.
  /// Cancel: as Stream::write().
  Task<Result<>> send(Bytes first = {}, Bytes second = {}, Bytes third = {});

  /// Gives back blocks that hold nothing.
  void drop_empty_buffers() noexcept {
    if (input_.empty()) input_ = {};
    if (output_.empty() && !writing_) output_ = {};
  }

 private:
  /// Waits until the write that is under way has ended.
  class WriteTurn : public Waiter {
   public:
    explicit WriteTurn(Transport& transport) noexcept : transport_(transport) {}
    bool await_ready() const noexcept { return !transport_.writing_; }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      assert(transport_.next_writer_ == nullptr);
      wait_in(handle);
      transport_.next_writer_ = this;
    }
    void await_resume() const noexcept {}

   private:
    Transport& transport_;
  };

  friend TimedStream;
  Instant check_write(Instant now);

  TimedStream& timed_;
  const Limits& limits_;
  Buffer input_;
  Buffer output_;
  Instant write_look_{};         // when the present write is looked at next
  Instant write_looked_at_{};    // when it was last, or when it began
  std::int64_t write_seen_ = 0;  // how far it was then
  Patience write_patience_;
  std::error_code broken_;
  Waiter* next_writer_ = nullptr;
  bool writing_ = false;
  bool write_looked_ = false;
  bool write_expired_ = false;
};

}  // namespace weir::http
