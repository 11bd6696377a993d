// Reads the body of one request from the connection's bytes, with its framing, limits and
// timeouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/server/detail/connection_io.hpp"

namespace weir::http {

/// Reads the bytes of the body from the input of the ConnectionIo, and leaves the bytes behind
/// them. After an error, nothing more can be read on this connection; every later call returns the
/// same error.
/// Threads: its loop's.
class BodyReader final : public BodySource {
 public:
  /// `context` is the connection's.
  BodyReader(ConnectionIo& io, const Limits& limits, const Context& context) noexcept
      : io_(io),
        limits_(limits),
        context_(context),
        decoder_(limits.chunks),
        rate_tracker_(limits.body_rate) {}

  /// Prepares for the body behind `head`. The decoded body may have at most `max` bytes.
  void begin(const RequestHead& head, std::uint64_t max);
  /// Prepares for a request without a body.
  void begin_empty() noexcept {
    if (used()) reset();
  }

  BodyLength length() const noexcept override {
    if (state_ == State::none) return {};
    return chunked_ ? BodyLength::unknown() : BodyLength::of(left_ + taken_);
  }
  const Headers& trailers() const noexcept override { return decoder_.trailers(); }
  os::Address peer_address() const override { return io_.peer_address(); }
  const void* connection() const noexcept override { return &io_; }
  const TlsInfo* tls() const noexcept override { return io_.stream().tls(); }

  /// Returns the whole body if it has a length and has arrived completely; an empty text if there
  /// is no body. The bytes stay where they are until release().
  std::optional<std::string_view> complete_body() noexcept;

  /// Releases the piece that was returned last, when the response has been made.
  void release() noexcept {
    if (borrowed_ != 0) io_.input().consume(std::exchange(borrowed_, 0));
  }

  /// Closes the rest of the body: every later read fails with Errc::closed, or with the error
  /// that is known already.
  void close() noexcept {
    if (!error_) error_ = Errc::closed;
  }

  /// Returns true if the whole body was read, or there is none.
  bool ended() const noexcept { return state_ == State::none || state_ == State::ended; }
  /// Returns true if the client still waits for 100 (Continue), so that it may never send the
  /// body.
  bool awaits_continue() const noexcept { return state_ == State::awaits_continue; }
  std::error_code error() const noexcept { return error_; }
  /// Returns the known number of bytes left: the rest of Content-Length, or 0 for chunks.
  std::uint64_t bytes_left() const noexcept { return left_; }

  /// Drops the bytes that have already arrived.
  /// Returns: true if they were all that was left; the body cannot be read then.
  bool discard_received();
  /// Reads and drops the rest of the body, at most `max` bytes.
  /// Errors: Errc::limit_reached if there is more; those of read().
  /// Cancel: that of read().
  Task<Result<>> discard(std::uint64_t max);

 private:
  /// The progress of the body. An error may stop it in each state; see error_.
  enum class State : std::uint8_t {
    none,             ///< the request has no body
    awaits_continue,  ///< no data has arrived; the client may wait for 100 (Continue)
    arriving,         ///< a part may be missing
    ended,            ///< the last byte was taken from the input
  };
  enum class TakeResult : std::uint8_t { data, end, nothing, error };
  /// Returns true if some state differs from that after reset().
  bool used() const noexcept { return state_ != State::none || was_read(); }
  void reset() noexcept;
  TakeResult take(std::string_view& data);
  TakeResult take_sized(std::string_view& data);
  TakeResult take_chunked(std::string_view& data);
  TakeResult fail_take(std::error_code error) noexcept;
  std::error_code record_error(std::error_code error) noexcept;
  Task<Result<>> fetch();
  Task<Result<Bytes>> read_piece() override;
  Task<Result<std::string_view>> collect() override;

  ConnectionIo& io_;
  const Limits& limits_;
  Context context_;
  ChunkedDecoder decoder_;
  RateTracker rate_tracker_;  // runs while the handler waits for the body
  Buffer collected_;
  std::optional<std::string_view> whole_;  // result of collect()
  std::uint64_t max_ = 0;
  std::uint64_t left_ = 0;    // bytes left of a body with a length
  std::uint64_t taken_ = 0;   // decoded bytes of the body so far
  std::size_t borrowed_ = 0;  // bytes of the last piece, at the input's front
  State state_ = State::none;
  bool chunked_ = false;  // the framing of the body
  std::error_code error_;
};

}  // namespace weir::http
