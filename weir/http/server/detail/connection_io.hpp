// The bytes on their way in and out of a connection, and the limit for slow readers.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/time.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/detail/turn_share.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::os {
struct FilePart;
}  // namespace weir::os

namespace weir::http {

/// Holds the bytes that were read from a connection and not yet used, and the bytes to send on it.
/// A connection creates it when bytes arrive, with them as its input, and destroys it when all
/// requests are answered.
/// Threads: its loop's.
class ConnectionIo {
 public:
  using ReadState = Connection::ReadState;

  ConnectionIo(Connection& connection, const Limits& limits, Buffer input = {}) noexcept
      : connection_(connection),
        limits_(limits),
        input_(std::move(input)),
        write_rate_tracker_(limits.write_rate) {
    connection.set_io(*this);
  }
  ~ConnectionIo() { connection_.io_ = nullptr; }
  ConnectionIo(const ConnectionIo&) = delete;
  ConnectionIo& operator=(const ConnectionIo&) = delete;

  Connection& connection() const noexcept { return connection_; }
  Stream& stream() noexcept { return connection_.stream(); }
  /// Returns the address of the peer; see Connection::peer_address().
  os::Address peer_address() { return connection_.peer_address(); }
  Loop& loop() const noexcept { return connection_.loop(); }
  Buffer& input() noexcept { return input_; }
  const Buffer& input() const noexcept { return input_; }
  Buffer& output() noexcept { return output_; }
  bool writing() const noexcept { return write_state_ != WriteState::none; }
  /// Returns why nothing can be sent any more, or no error. Errc::timed_out: the peer reads too
  /// slowly.
  std::error_code broken() const noexcept { return broken_; }

  /// Returns the number of bytes at the end of the write that failed which were not sent.
  std::uint64_t unsent() const noexcept { return unsent_; }

  /// Reads more bytes behind those in input(), which may move.
  /// Errors: those of Stream::read(); Errc::timed_out if `deadline` passed.
  /// Cancel: that of Stream::read().
  Task<Result<>> fill(ReadState what, Instant deadline);

  /// Makes room for `bytes` in the output, whose memory grows if necessary.
  void make_room(std::size_t bytes) { output_.make_room(bytes); }
  /// Appends what `write(out)` writes, at most `size` bytes, and then `text` to the output.
  /// `write()` returns the end of its bytes.
  /// Returns: false if the memory of the output has no room for both.
  template <class Write>
  [[nodiscard]] bool append(std::size_t size, const Write& write, std::string_view text = {}) {
    if (!output_.owns_memory()) output_ = Buffer::with_capacity();
    if (output_.room().size() < size + text.size()) return false;
    char* const start = reinterpret_cast<char*>(output_.room().data());
    char* const end = write(start);
    if (!text.empty()) std::memcpy(end, text.data(), text.size());
    output_.commit(static_cast<std::size_t>(end - start) + text.size());
    return true;
  }

  /// Sends the bytes in output(), then the pieces; output() is empty afterwards. If another send
  /// is in progress, this one first waits for its end. Sends take place in the order of their
  /// calls. Errors: broken(), also for every later send. Cancel: that of Stream::write().
  Task<Result<>> send(Bytes first = {}, Bytes second = {}, Bytes third = {});

  /// Sends the bytes in output(), and then bytes of a file, as many as the kernel takes without
  /// waiting.
  /// Returns: the number of bytes of the file; 0 if another send is in progress.
  /// Errors: broken(), also for every later send.
  Result<std::size_t> try_send_file(const os::FilePart& part);

  /// The awaiter of one write. The write is cancelled if the peer reads too slowly. It works out of
  /// line, so that its temporaries do not lie in the awaiting frame.
  class WriteAwaiter : public Write::Awaiter {
   public:
    WriteAwaiter(ConnectionIo& io, const Write& write) noexcept : Awaiter(write), io_(io) {}
    bool await_ready();
    bool await_resume() noexcept;

   private:
    ConnectionIo& io_;
  };
  /// Writes the output, which is not empty, without a coroutine frame: `co_await
  /// io.write_output()`. No write is in progress.
  /// Returns: true if all is sent; broken() has the error otherwise.
  /// Cancel: that of Stream::write().
  WriteAwaiter write_output() noexcept { return {*this, stream().write(output_.bytes())}; }
  /// Writes the output like write_output(). The stream ends immediately afterwards; see
  /// Write::last().
  WriteAwaiter write_last_output() noexcept {
    return {*this, stream().write(output_.bytes()).last()};
  }

  /// Counts a request that has run, if there is more input; see TurnShare.
  /// Returns: true if the requests of this connection have used their share of the turn.
  bool turn_share_used(std::uint8_t weight = 1) noexcept {
    return !input_.empty() && turn_share_.used(loop(), weight);
  }

  /// Frees the memory of empty buffers.
  void drop_empty_buffers() noexcept {
    if (input_.empty()) input_ = {};
    if (output_.empty() && !writing()) output_ = {};
  }

 private:
  /// The write in progress: none -> started -> checked -> expired. Every state but `none` ends with
  /// the write.
  enum class WriteState : std::uint8_t {
    none,
    started,  ///< its first bytes only fill the kernel's buffers
    checked,  ///< its rate is watched
    expired,  ///< the peer reads too slowly, and the write was cancelled
  };

  /// Waits until the write in progress has ended.
  class WriteTurn : public Waiter {
   public:
    explicit WriteTurn(ConnectionIo& io) noexcept : io_(io) {}
    bool await_ready() const noexcept { return !io_.writing(); }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      set_coroutine(handle);
      earlier_ = std::exchange(io_.last_waiting_, this);
    }
    /// Lets the waits before this one look again, and then this one.
    void resume_all() noexcept {
      if (earlier_ != nullptr) earlier_->resume_all();
      io_.loop().ready(*this);
    }
    void await_resume() const noexcept {}

   private:
    ConnectionIo& io_;
    WriteTurn* earlier_ = nullptr;
  };

  friend Connection;
  void change(WriteState next) noexcept;
  Instant check_write(Instant now);

  Connection& connection_;
  const Limits& limits_;
  Buffer input_;
  Buffer output_;
  Instant next_write_check_{};       // next check of the present write
  Instant last_write_check_{};       // last check, or the start of the write
  std::int64_t write_progress_ = 0;  // bytes that the peer had received at that time
  RateTracker write_rate_tracker_;
  std::error_code broken_;
  std::uint64_t unsent_ = 0;           // of the write that failed
  WriteTurn* last_waiting_ = nullptr;  // of the sends that wait for the end of a write
  TurnShare turn_share_;
  WriteState write_state_ = WriteState::none;
};

}  // namespace weir::http
