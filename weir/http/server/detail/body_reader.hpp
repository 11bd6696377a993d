// The body of one request: taken out of the connection's bytes, framed, limited, timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http {

/// Reads what belongs to the body from the transport's input and leaves what follows. After an
/// error nothing more can be read on this connection; every later call gives the same error.
/// Threads: its loop's.
class BodyReader final : public BodySource {
 public:
  /// `context`: the connection's.
  BodyReader(Transport& transport, const Limits& limits, const Context& context) noexcept
      : transport_(transport),
        limits_(limits),
        context_(context),
        decoder_(limits.chunks),
        patience_(limits.body_rate) {}

  /// Makes ready for the body behind `head`, of at most `max` bytes once decoded.
  void begin(const RequestHead& head, std::uint64_t max);
  /// The same where no body follows.
  void begin_without() noexcept {
    if (used_) reset();
  }

  Task<Result<Bytes>> read() override;
  Task<Result<std::string_view>> read_all() override;
  const Fields& trailers() const noexcept override { return decoder_.trailers(); }
  os::Address peer() const override { return transport_.stream().peer_address(); }

  /// The whole body, if it has a length and all of it has arrived; it stays where it is until
  /// release(). Empty where there is none.
  std::optional<std::string_view> whole_here() noexcept;

  /// Forgets the piece given last: the answer has been made.
  void release() noexcept {
    if (lent_ != 0) transport_.input().consume(std::exchange(lent_, 0));
  }

  /// The whole body was read, or there is none.
  bool ended() const noexcept { return ended_; }
  /// Somebody asked for it.
  bool touched() const noexcept { return touched_; }
  /// The client still waits for 100 (Continue), so it may never send the body.
  bool unsolicited() const noexcept { return continue_due_; }
  std::error_code error() const noexcept { return error_; }
  /// How much is known to be left: all of Content-Length, or 0 for chunks not yet seen.
  std::uint64_t known_left() const noexcept { return left_; }

  /// Drops what has already arrived. Returns whether that was all; it cannot be read then.
  bool drop_received();
  /// Reads and drops the rest, up to `max` bytes. Errors: limit_reached when there is more; those
  /// of read().
  /// Cancel: as read().
  Task<Result<>> drop(std::uint64_t max);

 private:
  enum class Found : std::uint8_t { data, end, nothing, error };
  void reset() noexcept;
  Found take(std::string_view& data);
  Found take_sized(std::string_view& data);
  Found take_chunked(std::string_view& data);
  Found failed(std::error_code error) noexcept;
  std::error_code failed_with(std::error_code error) noexcept;
  Task<Result<>> fetch();

  Transport& transport_;
  const Limits& limits_;
  Context context_;
  ChunkedDecoder decoder_;
  Patience patience_;  // runs while somebody waits for the body
  Buffer collected_;
  std::optional<std::string_view> whole_;  // what read_all() gave
  std::uint64_t max_ = 0;
  std::uint64_t left_ = 0;   // of a body with a length
  std::uint64_t taken_ = 0;  // of the decoded body
  std::size_t lent_ = 0;     // at the input's front: the piece given last
  bool used_ = false;        // something differs from what reset() makes
  bool chunked_ = false;
  bool ended_ = true;
  bool touched_ = false;
  bool continue_due_ = false;
  std::error_code error_;
};

}  // namespace weir::http
