// The bytes of one HTTP/1.1 connection: its stream, its buffers, and its patience with the peer.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// A stream with what was read and not yet used, what is to be sent, and one timer for whatever
/// the peer must do next. The timer is lazy: a deadline costs a few stores; only when the timer
/// fires it is compared with the clock. Idle, it holds no buffer.
/// Threads: its loop's.
class Transport : Timer {
 public:
  /// What the peer is expected to send.
  enum class Waiting : std::uint8_t { nothing, request, head, body, lingering };

  Transport(Loop& loop, tcp::Stream stream, const Limits& limits) noexcept
      : Timer(&fired), loop_(loop), limits_(limits), stream_(std::move(stream)) {}

  tcp::Stream& stream() noexcept { return stream_; }
  Loop& loop() const noexcept { return loop_; }
  Buffer& input() noexcept { return input_; }
  Buffer& output() noexcept { return output_; }

  /// Brackets every read of the stream: after the deadline it is cancelled.
  void begin_read(Waiting what, Instant deadline) noexcept {
    waiting_ = what;
    read_expired_ = false;
    read_deadline_ = deadline;
    watch_until(deadline);
  }
  void end_read() noexcept { waiting_ = Waiting::nothing; }
  Waiting waiting() const noexcept { return waiting_; }
  /// Makes the deadline of the present read come sooner.
  void hurry(Instant deadline) noexcept {
    if (waiting_ != Waiting::nothing && deadline < read_deadline_) begin_read(waiting_, deadline);
  }
  /// `error` of a read, or Errc::timed_out when its deadline made it.
  std::error_code explain(std::error_code error) const noexcept {
    return read_expired_ && error == Errc::cancelled ? make_error_code(Errc::timed_out) : error;
  }

  /// Brackets every write of the stream: without progress it is cancelled.
  void begin_write() noexcept {
    assert(!writing_);
    writing_ = true;
    write_start_ = loop_.now();
    watch_until(limits_.write_rate.deadline(write_start_, 0));
  }
  void end_write() noexcept {
    writing_ = false;
    if (next_writer_ != nullptr) loop_.ready(*std::exchange(next_writer_, nullptr));
  }
  bool writing() const noexcept { return writing_; }

  /// Room for an answer: the output buffer, with a block.
  Buffer& writable_output() {
    if (!output_.owns_memory()) output_ = Buffer::with_capacity();
    return output_;
  }

  /// Reads more behind what is in input(); see Stream::read() for errors.
  /// Cancel: as Stream::read().
  Task<Result<>> fill(Waiting what, Instant deadline);
  /// Sends what is in output(), then `more` and `last`; output() is empty afterwards. While another
  /// send is under way, waits for its end first (at most one does).
  /// Cancel: as Stream::write().
  Task<Result<>> send(Bytes more = {}, Bytes last = {});
  /// Makes room behind a head that is not complete; the head's bytes may move.
  void make_input_room();

  /// Tells the peer that nothing more comes and drops what it still sends, for a moment.
  /// Cancel: closes at once.
  Task<> linger();

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

  static void fired(Timer& timer);
  void watch_until(Instant deadline) noexcept {
    if (!armed() || deadline < Timer::deadline()) loop_.timers().start(*this, deadline);
  }

  Loop& loop_;
  const Limits& limits_;
  tcp::Stream stream_;
  Buffer input_;
  Buffer output_;
  Instant read_deadline_{};
  Instant write_start_{};
  Waiter* next_writer_ = nullptr;
  Waiting waiting_ = Waiting::nothing;
  bool read_expired_ = false;
  bool writing_ = false;
};

}  // namespace weir::http
