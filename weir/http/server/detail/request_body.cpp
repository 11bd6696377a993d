#include "weir/http/server/detail/request_body.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <limits>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

/// Time after which a wait looks again if the carrier lets the peer send.
constexpr Duration blocked_interval = std::chrono::seconds(1);

}  // namespace

void RequestBody::change(State next) noexcept {
  // `none` follows every state: another request begins.
  static constexpr weir::detail::StateTable<State, 8> table{
      {State::none, {State::awaits_continue, State::arriving}},
      {State::awaits_continue, {State::arriving, State::ended, State::failed, State::closed}},
      {State::arriving, {State::ended, State::failed, State::closed}},
      {State::ended, {State::dropped}},
      {State::failed, {State::failure_read}},
  };
  table.change(state_, next);
}

void RequestBody::reset() noexcept {
  state_ = State::none;
  forget_reads();
  length_ = {};
  received_ = 0;
  error_.clear();
  whole_.reset();
  collected_.clear();
}

void RequestBody::start(BodyLength length, bool awaits_continue) noexcept {
  length_ = length;
  max_ = std::numeric_limits<std::uint64_t>::max();  // until set_limit()
  rate_tracker_ = RateTracker(limits_.body_rate);
  read_timeout_.reset();
  change(awaits_continue ? State::awaits_continue : State::arriving);
}

bool RequestBody::set_limit(std::uint64_t max) noexcept {
  max_ = max;
  if (can_end() && std::max(announced(), received_) > max_) fail(ParseError::body_too_large);
  return error_ != make_error_code(ParseError::body_too_large);
}

bool RequestBody::count(std::size_t bytes) noexcept {
  received_ += bytes;
  if (received_ > max_) fail(ParseError::body_too_large);
  return can_end();
}

void RequestBody::fail(std::error_code error) noexcept {
  if (!can_end()) return;
  error_ = error;
  change(State::failed);
}

bool RequestBody::too_slow() const noexcept {
  return error_ == make_error_code(ParseError::body_timed_out);
}

void RequestBody::close() noexcept {
  if (can_end()) {
    change(State::closed);
    error_ = Errc::closed;
  }
}

/// Takes the next piece, and follows the end. `nothing` may mean an error.
RequestBody::Taken RequestBody::take(Wanted wanted, Bytes& piece) {
  if (ended()) return Taken::end;
  carrier_.release_piece();
  if (state_ == State::closed || (error_ && wanted == Wanted::whole)) return Taken::nothing;
  const Taken taken = carrier_.take(wanted, piece);
  const bool ends = taken == Taken::end || taken == Taken::last_piece;
  if (error_ && ends) return taken == Taken::end ? Taken::nothing : Taken::piece;
  if (error_) return taken;
  if (ends) change(State::ended);
  // A client that sends does not wait for the 100.
  if (taken == Taken::piece && awaits_continue()) change(State::arriving);
  return taken;
}

Task<Result<>> RequestBody::invite() {
  if (!awaits_continue()) co_return {};
  change(State::arriving);
  ResponseHead head;
  head.status = Status(100);
  head.framing = BodyFraming::none;
  const auto sent = co_await interim_.send(head);
  if (!sent && sent.error() != Errc::cancelled) fail(sent.error());
  co_return sent;
}

/// Waits for more bytes of the body. Sends 100 (Continue) first if the client waits for it. Only
/// the time counts in which the carrier lets the client send. A limit that is set during the wait
/// begins with the end of the former one.
Task<Result<>> RequestBody::fetch() {
  if (awaits_continue()) {
    const auto invited = co_await invite();
    if (error_) co_return {};  // the reader gets it as an error of the body
    if (!invited) co_return invited;
  }
  for (;;) {
    const bool allowed_before = carrier_.may_arrive();
    const Instant start = loop_.now();
    const auto read_timeout = read_timeout_;
    const std::uint64_t before = carrier_.input_bytes();
    const Duration left = read_timeout.value_or(rate_tracker_.time_left());
    const Duration most = allowed_before ? left : std::max(left, blocked_interval);
    const auto arrived = co_await carrier_.wait_for_input(after(start, most));
    const bool allowed = allowed_before && carrier_.may_arrive();
    const bool counts = allowed && !read_timeout_;
    const Duration waited = counts ? loop_.now() - start : Duration::zero();
    rate_tracker_.record(waited, carrier_.input_bytes() - before);
    if (arrived) co_return {};
    if (arrived.error() == Errc::cancelled) co_return weir::fail(Errc::cancelled);
    const bool timed_out = arrived.error() == Errc::timed_out;
    const bool same_limit = read_timeout == read_timeout_;
    if (timed_out && (!allowed || !same_limit)) continue;
    fail(timed_out ? make_error_code(ParseError::body_timed_out) : arrived.error());
    co_return {};
  }
}

/// Returns the error of the body for a reader.
std::unexpected<std::error_code> RequestBody::fail_read() noexcept {
  if (state_ == State::failed) change(State::failure_read);
  return weir::fail(state_ == State::dropped ? make_error_code(Errc::closed) : error_);
}

Task<Result<Bytes>> RequestBody::read_piece() {
  for (;;) {
    Bytes piece;
    const Taken taken = take(Wanted::piece, piece);
    if (taken == Taken::piece || taken == Taken::last_piece) co_return piece;
    if (error_ || state_ == State::dropped) co_return fail_read();
    if (taken == Taken::end) co_return Bytes();
    WEIR_CO_TRY(co_await fetch());
  }
}

std::optional<std::string_view> RequestBody::try_collect() {
  if (state_ == State::none) return std::string_view();
  while (!whole_) {
    Bytes piece;
    const Taken taken = take(Wanted::whole, piece);
    if (taken == Taken::nothing || error_ || state_ == State::dropped) return std::nullopt;
    if (taken == Taken::last_piece && collected_.empty()) {
      whole_ = to_text(piece);  // in its place
      break;
    }
    if (!piece.empty()) {
      collected_.make_room(piece.size());
      std::memcpy(collected_.room().data(), piece.data(), piece.size());
      collected_.commit(piece.size());
    }
    if (taken != Taken::piece) whole_ = collected_.text();
  }
  return whole_;
}

Task<Result<std::string_view>> RequestBody::collect() {
  for (;;) {
    if (const auto whole = try_collect()) co_return *whole;
    if (error_ || state_ == State::dropped) co_return fail_read();
    WEIR_CO_TRY(co_await fetch());
  }
}

bool RequestBody::drop_received() {
  Bytes piece;
  while (take(Wanted::piece, piece) == Taken::piece) {
  }
  carrier_.release_piece();
  if (state_ == State::ended) change(State::dropped);
  return state_ == State::dropped;
}

Task<Result<>> RequestBody::discard(std::uint64_t max) {
  for (;;) {
    if (received_ > max) co_return weir::fail(Errc::limit_reached);
    Bytes piece;
    const Taken taken = take(Wanted::piece, piece);
    if (received_ > max) co_return weir::fail(Errc::limit_reached);
    if (taken == Taken::nothing) {
      if (error_) co_return weir::fail(error_);
      // Earlier responses are sent first, so that they do not wait for this body.
      if (carrier_.needs_flush()) WEIR_CO_TRY(co_await carrier_.flush());
      WEIR_CO_TRY(co_await fetch());
    } else if (drop_received()) {
      co_return {};
    }
  }
}

}  // namespace weir::http
