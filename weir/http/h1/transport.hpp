// The bytes of one HTTP/1.1 connection: its stream, its buffers, and its patience with the peer.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/h1/patience.hpp"
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
      : Timer(&fired),
        loop_(loop),
        limits_(limits),
        stream_(std::move(stream)),
        write_patience_(limits.write_rate) {}

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
    write_looked_ = false;
    write_looked_at_ = loop_.now();
    write_look_ = after(write_looked_at_, limits_.write_rate.grace / 10);
    watch_until(write_look_);
  }
  /// A write that failed may have sent a part: nothing can be sent behind it.
  void end_write(std::error_code error) noexcept {
    writing_ = false;
    if (error) broken_ = error;
    if (next_writer_ != nullptr) loop_.ready(*std::exchange(next_writer_, nullptr));
  }
  bool writing() const noexcept { return writing_; }
  /// Why nothing can be sent any more, if so.
  std::error_code broken() const noexcept { return broken_; }

  /// Room for an answer: the output buffer, with a block.
  Buffer& writable_output() {
    if (!output_.owns_memory()) output_ = Buffer::with_capacity();
    return output_;
  }

  /// Whether this connection has done so much in one turn of the loop that others come first.
  /// Reads and writes that never have to wait would otherwise keep them out.
  bool share_used() noexcept {
    const std::uint64_t turn = loop_.counters().turns.value();
    if (std::exchange(share_turn_, turn) != turn) share_ = 0;
    return ++share_ > share_max;
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

  static constexpr unsigned share_max = 16;

  static void fired(Timer& timer);
  Instant check_read(Instant now);
  Instant check_write(Instant now);
  void watch_until(Instant deadline) noexcept {
    if (!armed() || deadline < Timer::deadline()) loop_.timers().start(*this, deadline);
  }

  Loop& loop_;
  const Limits& limits_;
  tcp::Stream stream_;
  Buffer input_;
  Buffer output_;
  Instant read_deadline_{};
  Instant write_look_{};         // when the present write is looked at next
  Instant write_looked_at_{};    // when it was last, or when it began
  std::int64_t write_seen_ = 0;  // how far it was then
  Patience write_patience_;
  std::error_code broken_;
  Waiter* next_writer_ = nullptr;
  std::uint64_t share_turn_ = 0;
  unsigned share_ = 0;
  Waiting waiting_ = Waiting::nothing;
  bool read_expired_ = false;
  bool writing_ = false;
  bool write_looked_ = false;
};

}  // namespace weir::http
