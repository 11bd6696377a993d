// The policy of bodies that arrive, on every carrier.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/http/server/detail/interim_sender.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The body of one request after another: its limit, its minimum rate, 100 (Continue), what becomes
/// of a rest that nobody reads, and its end. The carrier has the bytes. After an error, every later
/// read returns the same error.
///
/// ```text
///            begin()                    the end was taken
///   none ------+------> arriving ------------------------> ended
///              |         ^   |  |                            |
///              |  invite |   |  +--> failed -> failure_read  | drop_received(), discard()
///              v         |   v                               v
///        awaits_continue-+  closed                        dropped
/// ```
/// Threads: its loop's.
class RequestBody final : public BodySource {
 public:
  enum class State : std::uint8_t {
    none,             ///< the request has no body
    awaits_continue,  ///< no data has arrived; the client may wait for 100 (Continue)
    arriving,         ///< a part may be missing
    ended,            ///< the last byte was taken from the carrier
    dropped,          ///< the same, but nobody may read the body any more
    failed,           ///< error() stops the body
    failure_read,     ///< the same, and a read has returned error()
    closed,           ///< nobody may read the rest any more, which may still arrive
  };

  RequestBody(Carrier& carrier, InterimSender& interim, Loop& loop, const Limits& limits) noexcept
      : carrier_(carrier),
        interim_(interim),
        loop_(loop),
        limits_(limits),
        rate_tracker_(limits.body_rate) {}

  /// Begins the body behind a head. `awaits_continue`: the client waits for 100 (Continue).
  void begin(BodyLength length, bool awaits_continue) noexcept {
    if (state_ != State::none || was_read()) reset();
    if (length.has_body()) start(length, awaits_continue);
  }
  /// Limits the bytes of the body. Returns false if it is too large already.
  [[nodiscard]] bool set_limit(std::uint64_t max) noexcept;

  // Events of the carrier.

  /// Counts bytes of the body, without framing, that have arrived. Returns false if nobody will
  /// take them.
  [[nodiscard]] bool count(std::size_t bytes) noexcept;
  /// Stops the body, unless it has ended or has an error already. take() still gives the pieces
  /// that the carrier has.
  void fail(std::error_code error) noexcept;

  State state() const noexcept { return state_; }
  /// Returns true if the carrier has given all of the body, or there is none.
  bool ended() const noexcept {
    return state_ == State::none || state_ == State::ended || state_ == State::dropped;
  }
  /// Returns true if the rest of the body cannot be read and may still arrive.
  bool stopped() const noexcept { return state_ >= State::failed; }
  bool awaits_continue() const noexcept { return state_ == State::awaits_continue; }
  std::error_code error() const noexcept { return error_; }
  bool too_slow() const noexcept;
  /// Returns the known number of bytes that have not arrived; 0 if the length is unknown.
  std::uint64_t bytes_left() const noexcept {
    return announced() - std::min(announced(), received_);
  }

  /// Limits each wait for bytes by a time instead of Limits::body_rate.
  void set_read_timeout(Duration timeout) noexcept { read_timeout_ = timeout; }
  /// Ends that limit, so that Limits::body_rate holds again.
  void clear_read_timeout() noexcept {
    read_timeout_.reset();
    rate_tracker_ = RateTracker(limits_.body_rate);
  }

  /// Returns the whole body if it has arrived; an empty text if there is none. The bytes stay where
  /// they are until the end of the request.
  std::optional<std::string_view> try_collect();
  /// Sends 100 (Continue) if the client waits for it.
  /// Errors: those of the connection.
  /// Cancel: not affected, as Carrier::send_interim().
  Task<Result<>> invite();
  /// Closes the rest of the body: every later read fails with Errc::closed, or with the error that
  /// is known already.
  void close() noexcept;
  /// Drops the bytes that have arrived.
  /// Returns: true if they were all that was left; the body cannot be read then.
  bool drop_received();
  /// Takes and drops the rest of a body of at most `max` bytes.
  /// Errors: Errc::limit_reached for a longer one; those of read().
  /// Cancel: that of read().
  Task<Result<>> discard(std::uint64_t max);

  // What the handler sees.

  BodyLength length() const noexcept override { return length_; }
  const Headers& trailers() const noexcept override { return carrier_.trailers(); }
  os::Address peer_address() const override { return carrier_.peer_address(); }
  const TlsInfo* tls() const noexcept override { return carrier_.tls(); }
  bool is_http2() const noexcept override { return carrier_.is_http2(); }
  const void* connection() const noexcept override { return carrier_.connection(); }

 private:
  using Wanted = Carrier::Wanted;
  using Taken = Carrier::Taken;

  void reset() noexcept;
  void start(BodyLength length, bool awaits_continue) noexcept;
  void change(State next) noexcept;
  std::uint64_t announced() const noexcept { return length_.bytes().value_or(0); }
  bool can_end() const noexcept {
    return state_ == State::awaits_continue || state_ == State::arriving;
  }
  Taken take(Wanted wanted, Bytes& piece);
  std::unexpected<std::error_code> fail_read() noexcept;
  Task<Result<>> fetch();
  Task<Result<Bytes>> read_piece() override;
  Task<Result<std::string_view>> collect() override;

  Carrier& carrier_;
  InterimSender& interim_;
  Loop& loop_;
  const Limits& limits_;
  RateTracker rate_tracker_;  // runs while the server waits for the body
  Buffer collected_;
  std::optional<std::string_view> whole_;  // result of collect()
  BodyLength length_;
  std::optional<Duration> read_timeout_;
  std::uint64_t max_ = 0;
  std::uint64_t received_ = 0;  // bytes without framing
  std::error_code error_;
  State state_ = State::none;
};

}  // namespace weir::http
