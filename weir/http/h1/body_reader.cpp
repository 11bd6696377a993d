#include "weir/http/h1/body_reader.hpp"

#include <algorithm>

#include "weir/http/h1/writer.hpp"
#include "weir/http/refusal.hpp"

namespace weir::http {

void BodyReader::begin(const RequestHead& head, std::uint64_t max) {
  max_ = max;
  chunked_ = head.chunked();
  left_ = head.content_length();
  ended_ = !head.has_body();
  touched_ = fetching_ = false;
  taken_ = received_ = 0;
  lent_ = 0;
  error_.clear();
  if (ended_) {
    continue_due_ = false;
    return;
  }
  collected_.clear();
  if (chunked_) decoder_ = ChunkedDecoder(limits_.chunks);
  continue_due_ = head.expects_continue() && head.version_minor() > 0;
  if (left_ > max_) error_ = Refusal::body_too_large;
}

BodyReader::Found BodyReader::failed(std::error_code error) noexcept {
  error_ = error;
  return Found::error;
}

/// The next piece that is already here; it stays at the input's front until the next call.
BodyReader::Found BodyReader::take(std::string_view& data) {
  transport_.input().consume(std::exchange(lent_, 0));
  if (error_) return Found::error;
  if (ended_) return Found::end;
  return chunked_ ? take_chunked(data) : take_sized(data);
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
    auto invited = co_await transport_.send(to_bytes(continue_head));
    if (!invited) co_return fail(failed_with(invited.error()));
  }
  if (!std::exchange(fetching_, true)) started_ = transport_.loop().now();
  const std::size_t before = transport_.input().size();
  auto filled = co_await transport_.fill(Transport::Waiting::body,
                                         limits_.body_rate.deadline(started_, received_));
  if (!filled) co_return fail(failed_with(filled.error()));
  received_ += transport_.input().size() - before;
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
  touched_ = true;
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
  touched_ = true;
  std::string_view data;
  Found found = take(data);
  if (found == Found::data && !chunked_ && ended_ && collected_.empty()) {
    // Whole and in place: it stays at the input's front, which nobody moves before the answer.
    co_return data;
  }
  while (found == Found::data || found == Found::nothing) {
    if (found == Found::data) {
      collected_ += data;
    } else if (auto fetched = co_await fetch(); !fetched) {
      co_return fail(fetched.error());
    }
    found = take(data);
  }
  if (found == Found::error) co_return fail(error_);
  co_return std::string_view(collected_);
}

bool BodyReader::drop_received() {
  std::string_view data;
  while (take(data) == Found::data) {
  }
  return ended_ && !error_;
}

Task<Result<>> BodyReader::drop(std::uint64_t max) {
  std::uint64_t dropped = 0;
  for (;;) {
    std::string_view data;
    const Found found = take(data);
    if (found == Found::end) co_return {};
    if (found == Found::error) co_return fail(error_);
    if (found == Found::data) {
      dropped += data.size();
      if (dropped > max) co_return fail(Errc::limit_reached);
    } else if (auto fetched = co_await fetch(); !fetched) {
      co_return fail(fetched.error());
    }
  }
}

}  // namespace weir::http
