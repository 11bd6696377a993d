#include "weir/http/server/detail/h1/body_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// Resets to the state without a body.
void BodyReader::reset() noexcept {
  if (std::exchange(chunked_, false)) decoder_.reset();
  left_ = 0;
  state_ = State::none;
  forget_reads();
  taken_ = 0;
  borrowed_ = 0;
  error_.clear();
  whole_.reset();
  collected_.clear();
}

void BodyReader::begin(const RequestHead& head, std::uint64_t max) {
  assert(head.has_body());
  if (used()) reset();
  max_ = max;
  chunked_ = head.chunked();
  left_ = head.content_length();
  rate_tracker_ = RateTracker(limits_.body_rate);
  const bool waits_for_100 = head.expects_continue() && head.version_minor() > 0;
  state_ = waits_for_100 ? State::awaits_continue : State::arriving;
  if (left_ > max_) error_ = ParseError::body_too_large;
}

BodyReader::TakeResult BodyReader::fail_take(std::error_code error) noexcept {
  error_ = error;
  return TakeResult::error;
}

/// Returns the next piece that has arrived. It stays at the input's front until the next call.
BodyReader::TakeResult BodyReader::take(std::string_view& data) {
  // Keep the last piece until release(): collect() may have returned it as the whole body.
  if (ended() && !error_) return TakeResult::end;
  io_.input().consume(std::exchange(borrowed_, 0));
  if (error_) return TakeResult::error;
  const TakeResult found = chunked_ ? take_chunked(data) : take_sized(data);
  if (found == TakeResult::data && awaits_continue()) state_ = State::arriving;  // without the 100
  return found;
}

BodyReader::TakeResult BodyReader::take_sized(std::string_view& data) {
  const std::string_view here = io_.input().text();
  if (here.empty()) return TakeResult::nothing;
  data = here.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, here.size())));
  borrowed_ = data.size();
  left_ -= data.size();
  taken_ += data.size();
  if (left_ == 0) state_ = State::ended;
  return TakeResult::data;
}

std::optional<std::string_view> BodyReader::complete_body() noexcept {
  if (ended()) return std::string_view();
  if (chunked_ || error_ || taken_ != 0 || left_ > io_.input().size()) return std::nullopt;
  std::string_view data;
  take_sized(data);
  whole_ = data;
  return data;
}

BodyReader::TakeResult BodyReader::take_chunked(std::string_view& data) {
  for (;;) {
    const std::string_view here = io_.input().text();
    if (here.empty()) return TakeResult::nothing;
    const ChunkedDecoder::Step step = decoder_.next(here);
    switch (step.kind) {
      case ChunkedDecoder::Step::Kind::need_more:
        io_.input().consume(step.consumed);
        continue;
      case ChunkedDecoder::Step::Kind::end:
        io_.input().consume(step.consumed);
        state_ = State::ended;
        return TakeResult::end;
      case ChunkedDecoder::Step::Kind::error:
        return fail_take(step.error);
      case ChunkedDecoder::Step::Kind::data:
        // Drop the framing in front of the data now, and the data with the next call.
        io_.input().consume(step.consumed - step.data.size());
        borrowed_ = step.data.size();
        taken_ += step.data.size();
        if (taken_ > max_) return fail_take(ParseError::body_too_large);
        data = step.data;
        return TakeResult::data;
    }
  }
}

/// Waits for more bytes of the body. Sends 100 (Continue) first if the client waits for it.
Task<Result<>> BodyReader::fetch() {
  if (awaits_continue()) {
    state_ = State::arriving;
    // Send it outside the handler's cancellation: half a head would spoil the response behind it.
    auto inviting = in_context(context_, io_.send(to_bytes(continue_head)));
    if (auto invited = co_await std::move(inviting); !invited) {
      co_return fail(record_error(invited.error()));
    }
  }
  Loop& loop = io_.loop();
  const Instant start = loop.now();
  const auto filled =
      co_await io_.fill(ConnectionIo::ReadState::body, after(start, rate_tracker_.time_left()));
  // The input was empty, so all bytes in it have just arrived.
  rate_tracker_.record(loop.now() - start, filled ? io_.input().size() : 0);
  if (filled) co_return {};
  const bool too_slow = filled.error() == Errc::timed_out;
  co_return fail(record_error(too_slow ? ParseError::body_timed_out : filled.error()));
}

/// Stores an error that ends the connection's input; a cancelled wait is none.
std::error_code BodyReader::record_error(std::error_code error) noexcept {
  if (error != Errc::cancelled) error_ = error;
  return error;
}

Task<Result<Bytes>> BodyReader::read_piece() {
  for (;;) {
    std::string_view data;
    switch (take(data)) {
      case TakeResult::data:
        co_return to_bytes(data);
      case TakeResult::end:
        co_return Bytes();
      case TakeResult::error:
        co_return fail(error_);
      case TakeResult::nothing:
        break;
    }
    WEIR_CO_TRY(co_await fetch());
  }
}

Task<Result<std::string_view>> BodyReader::collect() {
  while (!whole_) {
    std::string_view data;
    switch (take(data)) {
      case TakeResult::data:
        if (!chunked_ && ended() && collected_.empty()) {
          // Use it in place: it stays at the input's front, which moves only after the response.
          whole_ = data;
        } else {
          collected_.make_room(data.size());
          std::memcpy(collected_.room().data(), data.data(), data.size());
          collected_.commit(data.size());
        }
        break;
      case TakeResult::end:
        whole_ = collected_.text();
        break;
      case TakeResult::error:
        co_return fail(error_);
      case TakeResult::nothing:
        WEIR_CO_TRY(co_await fetch());
        break;
    }
  }
  co_return *whole_;
}

bool BodyReader::discard_received() {
  std::string_view data;
  while (take(data) == TakeResult::data) {
  }
  if (!ended() || error_) return false;
  error_ = Errc::closed;
  return true;
}

Task<Result<>> BodyReader::discard(std::uint64_t max) {
  std::uint64_t dropped = 0;
  for (;;) {
    std::string_view data;
    const TakeResult found = take(data);
    if (found == TakeResult::end) {
      error_ = Errc::closed;
      co_return {};
    }
    if (found == TakeResult::error) co_return fail(error_);
    if (found == TakeResult::nothing) {
      // Send earlier responses first, so that they do not wait for this body.
      WEIR_CO_TRY(co_await io_.send());
      WEIR_CO_TRY(co_await fetch());
    } else {
      dropped += data.size();
      if (dropped > max) co_return fail(Errc::limit_reached);
    }
  }
}

}  // namespace weir::http
