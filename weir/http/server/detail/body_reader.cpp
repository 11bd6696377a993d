#include "weir/http/server/detail/body_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "weir/http/h1/writer.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// As if there had never been a body.
void BodyReader::reset() noexcept {
  if (std::exchange(chunked_, false)) decoder_.reset();
  left_ = 0;
  ended_ = true;
  touched_ = false;
  taken_ = 0;
  lent_ = 0;
  error_.clear();
  whole_.reset();
  collected_.clear();
  continue_due_ = false;
  used_ = false;
}

void BodyReader::begin(const RequestHead& head, std::uint64_t max) {
  assert(head.has_body());
  if (used_) reset();
  used_ = true;
  max_ = max;
  chunked_ = head.chunked();
  left_ = head.content_length();
  ended_ = false;
  patience_ = Patience(limits_.body_rate);
  continue_due_ = head.expects_continue() && head.version_minor() > 0;
  if (left_ > max_) error_ = Refusal::body_too_large;
}

BodyReader::Found BodyReader::failed(std::error_code error) noexcept {
  error_ = error;
  return Found::error;
}

/// The next piece that is already here; it stays at the input's front until the next call.
BodyReader::Found BodyReader::take(std::string_view& data) {
  // The last piece stays until release(): read_all() may have given it as the whole.
  if (ended_ && !error_) return Found::end;
  transport_.input().consume(std::exchange(lent_, 0));
  if (error_) return Found::error;
  const Found found = chunked_ ? take_chunked(data) : take_sized(data);
  if (found == Found::data) continue_due_ = false;  // the client did not wait for it
  return found;
}

BodyReader::Found BodyReader::take_sized(std::string_view& data) {
  const std::string_view here = transport_.input().text();
  if (here.empty()) return Found::nothing;
  data = here.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, here.size())));
  lent_ = data.size();
  left_ -= data.size();
  taken_ += data.size();
  ended_ = left_ == 0;
  return Found::data;
}

std::optional<std::string_view> BodyReader::whole_here() noexcept {
  if (ended_) return std::string_view();
  if (chunked_ || error_ || taken_ != 0 || left_ > transport_.input().size()) return std::nullopt;
  std::string_view data;
  take_sized(data);
  touched_ = true;
  continue_due_ = false;
  whole_ = data;
  return data;
}

BodyReader::Found BodyReader::take_chunked(std::string_view& data) {
  for (;;) {
    const std::string_view here = transport_.input().text();
    if (here.empty()) return Found::nothing;
    const ChunkedDecoder::Step step = decoder_.next(here);
    switch (step.kind) {
      case ChunkedDecoder::Step::Kind::need_more:
        transport_.input().consume(step.consumed);
        continue;
      case ChunkedDecoder::Step::Kind::end:
        transport_.input().consume(step.consumed);
        ended_ = true;
        return Found::end;
      case ChunkedDecoder::Step::Kind::refused:
        return failed(step.refusal);
      case ChunkedDecoder::Step::Kind::data:
        // The framing in front goes now, the data with the next call.
        transport_.input().consume(step.consumed - step.data.size());
        lent_ = step.data.size();
        taken_ += step.data.size();
        if (taken_ > max_) return failed(Refusal::body_too_large);
        data = step.data;
        return Found::data;
    }
  }
}

/// Waits for more bytes of the body; invites them first where the client waits for that.
Task<Result<>> BodyReader::fetch() {
  if (std::exchange(continue_due_, false)) {
    // Not under the handler's cancellation: half of it would spoil the answer behind it.
    auto inviting = in_context(context_, transport_.send(to_bytes(continue_head)));
    if (auto invited = co_await std::move(inviting); !invited) {
      co_return fail(failed_with(invited.error()));
    }
  }
  Loop& loop = transport_.loop();
  const Instant start = loop.now();
  const auto filled =
      co_await transport_.fill(Transport::Waiting::body, after(start, patience_.left()));
  // Nothing was left in the input, else nobody would wait.
  patience_.note(loop.now() - start, filled ? transport_.input().size() : 0);
  if (!filled) co_return fail(failed_with(filled.error()));
  co_return {};
}

/// Remembers an error that ends the connection's input; a cancelled wait does not.
std::error_code BodyReader::failed_with(std::error_code error) noexcept {
  if (error == Errc::cancelled) return error;
  if (error == Errc::timed_out) error = Refusal::body_timed_out;
  error_ = error;
  return error;
}

Task<Result<Bytes>> BodyReader::read() {
  used_ = touched_ = true;
  for (;;) {
    std::string_view data;
    switch (take(data)) {
      case Found::data:
        co_return to_bytes(data);
      case Found::end:
        co_return Bytes();
      case Found::error:
        co_return fail(error_);
      case Found::nothing:
        break;
    }
    if (auto fetched = co_await fetch(); !fetched) co_return fail(fetched.error());
  }
}

Task<Result<std::string_view>> BodyReader::read_all() {
  used_ = touched_ = true;
  while (!whole_) {
    std::string_view data;
    switch (take(data)) {
      case Found::data:
        if (!chunked_ && ended_ && collected_.empty()) {
          // In place: it stays at the input's front, which nobody moves before the answer.
          whole_ = data;
        } else {
          collected_.make_room(data.size());
          std::memcpy(collected_.room().data(), data.data(), data.size());
          collected_.grow(data.size());
        }
        break;
      case Found::end:
        whole_ = collected_.text();
        break;
      case Found::error:
        co_return fail(error_);
      case Found::nothing:
        if (auto fetched = co_await fetch(); !fetched) co_return fail(fetched.error());
        break;
    }
  }
  co_return *whole_;
}

bool BodyReader::drop_received() {
  std::string_view data;
  while (take(data) == Found::data) {
  }
  if (!ended_ || error_) return false;
  error_ = Errc::closed;
  return true;
}

Task<Result<>> BodyReader::drop(std::uint64_t max) {
  std::uint64_t dropped = 0;
  for (;;) {
    std::string_view data;
    const Found found = take(data);
    if (found == Found::end) {
      error_ = Errc::closed;
      co_return {};
    }
    if (found == Found::error) co_return fail(error_);
    if (found == Found::nothing) {
      // The answers before this one do not wait for this body.
      if (auto sent = co_await transport_.send(); !sent) co_return fail(sent.error());
      if (auto fetched = co_await fetch(); !fetched) co_return fail(fetched.error());
    } else {
      dropped += data.size();
      if (dropped > max) co_return fail(Errc::limit_reached);
    }
  }
}

}  // namespace weir::http
