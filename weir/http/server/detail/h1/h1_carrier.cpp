#include "weir/http/server/detail/h1/h1_carrier.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <tuple>
#include <utility>

#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

H1Carrier::H1Carrier(ConnectionIo& io, ServerState& server, Exchange& exchange,
                     const Context& context) noexcept
    : loop::HangupObserver([](loop::HangupObserver& self) {
        static_cast<H1Carrier&>(self).exchange_.on_peer_gone();
      }),
      io_(io),
      server_(server),
      exchange_(exchange),
      context_(context),
      decoder_(server.limits().chunks) {}

BodyLength H1Carrier::begin(const RequestHead& head) noexcept {
  keep_alive_ = head.keep_alive() && !server_.draining();
  assert(borrowed_ == 0);
  if (std::exchange(chunked_, head.chunked())) decoder_.reset();
  left_ = head.content_length();
  if (!head.has_body()) return {};
  return chunked_ ? BodyLength::unknown() : BodyLength::of(left_);
}

void H1Carrier::watch_peer(bool watch) noexcept {
  io_.stream().observe_hangup(watch ? this : nullptr);
  if (watch) io_.drop_empty_buffers();
}

// The body of the request.

Carrier::Taken H1Carrier::take(Wanted /*wanted*/, Bytes& piece) {
  if (exchange_.body().error()) return Taken::nothing;
  return chunked_ ? take_chunked(piece) : take_sized(piece);
}

Carrier::Taken H1Carrier::take_sized(Bytes& piece) {
  const Bytes here = io_.input().bytes();
  if (here.empty()) return Taken::nothing;
  piece = here.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, here.size())));
  if (!exchange_.body().count(piece.size())) return Taken::nothing;
  borrowed_ = piece.size();
  left_ -= piece.size();
  return left_ == 0 ? Taken::last_piece : Taken::piece;
}

Carrier::Taken H1Carrier::take_chunked(Bytes& piece) {
  for (;;) {
    const std::string_view here = io_.input().text();
    if (here.empty()) return Taken::nothing;
    const ChunkedDecoder::Step step = decoder_.next(here);
    switch (step.kind) {
      case ChunkedDecoder::Step::Kind::need_more:
        io_.input().consume(step.consumed);
        continue;
      case ChunkedDecoder::Step::Kind::end:
        io_.input().consume(step.consumed);
        return Taken::end;
      case ChunkedDecoder::Step::Kind::error:
        exchange_.body().fail(step.error);
        return Taken::nothing;
      case ChunkedDecoder::Step::Kind::data:
        // Drop the framing in front of the data now, and the data after its use.
        io_.input().consume(step.consumed - step.data.size());
        borrowed_ = step.data.size();
        if (!exchange_.body().count(step.data.size())) return Taken::nothing;
        piece = to_bytes(step.data);
        return Taken::piece;
    }
  }
}

void H1Carrier::release_piece() {
  if (borrowed_ != 0) io_.input().consume(std::exchange(borrowed_, 0));
}

Task<Result<>> H1Carrier::wait_for_input(Instant until) {
  return io_.fill(ConnectionIo::ReadState::body, until);
}

std::uint64_t H1Carrier::input_bytes() const noexcept {
  return io_.connection().totals().received();
}

// The response.

/// Decides if the connection stays open after the response that is sent now.
void H1Carrier::decide_keep_alive() noexcept {
  const Call& call = exchange_.call();
  const bool ends_with_connection =
      !call.response().body().length() && call.head().version_minor() == 0 && !call.head_only();
  if (ends_with_connection || call.rejected() || exchange_.body().stopped() ||
      io_.connection().ends() || context_.cancelled()) {
    keep_alive_ = false;
  }
}

/// Returns a head as this connection sends it.
ResponseHead H1Carrier::framed(const ResponseHead& head) const {
  const Call& call = exchange_.call();
  const bool is_old = call.head().version_minor() == 0;
  ResponseHead framed = head;
  // The end of the connection ends the body.
  if (is_old && head.framing == BodyFraming::chunked) framed.framing = BodyFraming::none;
  framed.has_upgrade = !head.lines.empty() && call.response().headers().contains("upgrade");
  if (call.response().body().is_upgrade()) return framed;
  if (!keep_alive_) {
    framed.connection = ConnectionHeader::close;
  } else if (is_old) {
    framed.connection = ConnectionHeader::keep_alive;
  }
  return framed;
}

Task<Result<>> H1Carrier::send_interim(const ResponseHead& head) {
  std::string text(head_size_max(head), '\0');
  const char* const end = write_head(head, text.data());
  text.resize(static_cast<std::size_t>(end - text.data()));
  // Send it outside the handler's cancellation: half a head would spoil the response behind it.
  auto sending = in_context(context_, io_.send(to_bytes(text)));
  co_return co_await std::move(sending);
}

Carrier::Sent H1Carrier::send_common(const Response& response) {
  if (exchange_.call().head().version_minor() == 0 || !keep_alive_ || io_.connection().ends() ||
      context_.cancelled() || exchange_.body().stopped()) {
    return Sent::nothing;
  }
  const std::string_view text = response.body().text();
  const ResponseHeadCache& head = server_.heads().common(response.content_type());
  const auto write = [&](char* out) { return head.write(text.size(), out); };
  return io_.append(ResponseHeadCache::size_max, write, text) ? Sent::whole : Sent::nothing;
}

Carrier::Sent H1Carrier::send_message(const ResponseHead& head, std::string_view text) {
  decide_keep_alive();
  const ResponseHead sent = framed(head);
  const auto write = [&](char* out) { return write_head(sent, out); };
  return io_.append(head_size_max(sent), write, text) ? Sent::whole : Sent::part;
}

/// Appends a head to the output. Returns false if it has no room.
bool H1Carrier::append_head(const ResponseHead& head) {
  return io_.append(head_size_max(head), [&](char* out) { return write_head(head, out); });
}

Task<Result<>> H1Carrier::send_rest(const ResponseHead& head, std::string_view text) {
  const ResponseHead sent = framed(head);
  if (!append_head(sent)) {
    WEIR_CO_TRY(co_await io_.send());
    io_.make_room(head_size_max(sent));
    [[maybe_unused]] const bool appended = append_head(sent);
    assert(appended && "make_room() has made room");
  }
  if (text.empty()) co_return {};
  co_return co_await io_.send(to_bytes(text));
}

void H1Carrier::send_head(const ResponseHead& head, bool ends) {
  decide_keep_alive();
  const ResponseHead sent = framed(head);
  framing_ = sent.framing;
  // A body that the end of the connection ends must not look whole if anything interrupts it (RFC
  // 9112 §9.8): until its last byte is sent, each way to close is a reset.
  const bool ends_with_connection =
      head.framing == BodyFraming::chunked && framing_ != head.framing;
  if (ends_with_connection && !ends) set_close_mode(CloseMode::reset);
  io_.make_room(head_size_max(sent));
  [[maybe_unused]] const bool appended = append_head(sent);
  assert(appended && "make_room() has made room");
  if (ends) end({});
}

bool H1Carrier::may_send_file() const noexcept {
  const Call& call = exchange_.call();
  const bool chunked = !call.response().body().length() && call.head().version_minor() > 0;
  return !chunked && io_.stream().tls() == nullptr;
}

Task<Result<>> H1Carrier::send_piece(Bytes piece) {
  return framing_ == BodyFraming::chunked ? send_chunk(piece) : io_.send(piece);
}

Task<Result<>> H1Carrier::send_chunk(Bytes piece) {
  std::array<char, chunk_size_max> line;
  const std::string_view size(
      line.data(),
      static_cast<std::size_t>(write_chunk_size(piece.size(), line.data()) - line.data()));
  co_return co_await io_.send(to_bytes(size), piece, to_bytes(chunk_end));
}

Result<std::size_t> H1Carrier::try_send_file(const os::FilePart& part) {
  return io_.try_send_file(part);
}

void H1Carrier::end(std::string_view trailers) {
  if (framing_ != BodyFraming::chunked) return;
  const std::size_t size = last_chunk_size(trailers);
  io_.make_room(size);
  [[maybe_unused]] const bool appended =
      io_.append(size, [trailers](char* out) { return write_last_chunk(trailers, out); });
  assert(appended && "make_room() has made room");
}

Task<Result<>> H1Carrier::flush() {
  const auto sent = co_await io_.send();
  io_.drop_empty_buffers();
  co_return sent;
}

void H1Carrier::set_close_mode(CloseMode mode) {
  if (std::exchange(close_mode_, mode) != mode) std::ignore = io_.stream().set_close_mode(mode);
}

}  // namespace weir::http
