// WebSocket sessions: messages, pings and the closing handshake.
#include "weir/http/ws/detail/session.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

#include "weir/base/detail/state_table.hpp"

namespace weir::http {
namespace {

/// Returns the bytes of `reason` that a Close can contain: whole characters of valid UTF-8.
std::string_view sendable(std::string_view reason) noexcept {
  const char* const start = reason.data();
  const char* const end = start + reason.size();
  std::size_t size = 0;
  while (size < reason.size()) {
    const std::size_t length = utf8_length(start + size, end);
    if (length == 0 || size + length > ws_reason_max) break;
    size += length;
  }
  return reason.substr(0, size);
}

char* write_close_frame(WebSocketCloseCode code, std::string_view reason,
                        const std::optional<WsMaskKey>& mask, char* out) noexcept {
  if (code == WebSocketCloseCode::no_status)
    return write_ws_control(WsOpcode::close, {}, mask, out);
  const auto number = static_cast<std::uint16_t>(code);
  std::array<std::byte, ws_control_max> payload;
  payload[0] = static_cast<std::byte>(number >> 8);
  payload[1] = static_cast<std::byte>(number & 0xFF);
  if (!reason.empty()) std::memcpy(payload.data() + 2, reason.data(), reason.size());
  return write_ws_control(WsOpcode::close, Bytes(payload).first(2 + reason.size()), mask, out);
}

}  // namespace

bool is_valid_close_code(WebSocketCloseCode code) noexcept {
  const auto number = static_cast<std::uint16_t>(code);
  if (number >= 3000) return number <= 4999;
  return number >= 1000 && number <= 1014 && (number < 1004 || number > 1006);
}

void WsSession::change(Closing next) noexcept {
  static constexpr weir::detail::StateTable<Closing, 6> table{
      {Closing::open, {Closing::sent, Closing::received, Closing::failing}},
      {Closing::sent, {Closing::closed, Closing::failed}},
      {Closing::received, {Closing::closed}},
      {Closing::failing, {Closing::failed}},
  };
  table.change(closing_, next);
}

WsEvent WsSession::next(MutableBytes input) noexcept {
  WsEvent event;
  if (failed()) fail_with(code_, event);
  if (failed() || close_received()) {
    event.consumed = input.size();
    return event;
  }
  MutableBytes rest = input;
  bool has_event = false;
  while (!has_event) {
    const WsFrameEvent frame = reader_.next(rest);
    rest = rest.subspan(frame.consumed);
    if (frame.kind == WsFrameEvent::Kind::need_more) break;
    has_event = handle(frame, event);
  }
  event.consumed = event.kind == WsEvent::Kind::failed ? input.size() : input.size() - rest.size();
  return event;
}

bool WsSession::handle(const WsFrameEvent& frame, WsEvent& event) noexcept {
  if (frame.kind == WsFrameEvent::Kind::payload) return on_payload(frame, event);
  if (frame.kind == WsFrameEvent::Kind::control) return on_control(frame, event);
  return fail_with(WebSocketCloseCode::protocol_error, event);
}

/// Returns the largest number of bytes in the frames of a message. Data that cannot be compressed
/// is a little larger when it was.
std::uint64_t WsSession::bytes_max(bool compressed) const noexcept {
  const std::uint64_t limit = limits_.message_bytes_max;
  if (!compressed) return limit;
  const std::uint64_t more = limit / 8 + ws_control_max;
  return limit > std::numeric_limits<std::uint64_t>::max() - more ? limit : limit + more;
}

bool WsSession::on_payload(const WsFrameEvent& frame, WsEvent& event) noexcept {
  if (frame.first) {
    if (frame.begins) {
      begins_ = true;
      message_bytes_ = 0;
    }
    if (frame.length > bytes_max(frame.compressed) - message_bytes_) {
      return fail_with(WebSocketCloseCode::message_too_big, event);
    }
    message_bytes_ += frame.length;
  }
  event.is_text = frame.opcode == WsOpcode::text;
  event.compressed = frame.compressed;
  event.bytes = event.is_text && !frame.compressed ? check_text(frame) : frame.bytes;
  event.ends = frame.last && frame.ends && !failed();
  if (event.bytes.empty() && !event.ends) return failed() && fail_with(code_, event);
  event.kind = WsEvent::Kind::message;
  event.begins = begins_;
  begins_ = false;
  return true;
}

/// Returns the part of a payload that valid text may have. The session fails behind this part if
/// the payload has more, or if it ends the text within a character (RFC 6455 §8.1).
Bytes WsSession::check_text(const WsFrameEvent& frame) noexcept {
  const std::size_t valid = utf8_.check(to_text(frame.bytes));
  const bool ends = frame.last && frame.ends;
  if (valid < frame.bytes.size() || (ends && !utf8_.complete()))
    fail(WebSocketCloseCode::invalid_data);
  return frame.bytes.first(valid);
}

bool WsSession::on_control(const WsFrameEvent& frame, WsEvent& event) noexcept {
  if (frame.opcode == WsOpcode::close) return on_close(frame.bytes, event);
  event.bytes = frame.bytes;
  event.kind = WsEvent::Kind::pong;
  if (frame.opcode == WsOpcode::ping) {
    event.kind = WsEvent::Kind::ping;
    answer_ping(frame.bytes);
  }
  return true;
}

bool WsSession::on_close(Bytes payload, WsEvent& event) noexcept {
  if (payload.size() == 1) return fail_with(WebSocketCloseCode::protocol_error, event);
  if (!payload.empty()) {
    const auto number =
        std::to_integer<unsigned>(payload[0]) << 8 | std::to_integer<unsigned>(payload[1]);
    event.code = static_cast<WebSocketCloseCode>(number);
    if (!is_valid_close_code(event.code))
      return fail_with(WebSocketCloseCode::protocol_error, event);
    event.bytes = payload.subspan(2);
    Utf8Checker reason;
    const bool is_valid = reason.check(to_text(event.bytes)) == event.bytes.size();
    if (!is_valid || !reason.complete()) return fail_with(WebSocketCloseCode::invalid_data, event);
  }
  event.kind = WsEvent::Kind::close;
  code_ = event.code;
  change(closing_ == Closing::sent ? Closing::closed : Closing::received);
  return true;
}

/// Makes `event` a failure. It returns true, because there is an event for the carrier.
bool WsSession::fail_with(WebSocketCloseCode code, WsEvent& event) noexcept {
  fail(code);
  event = {};
  event.kind = WsEvent::Kind::failed;
  event.code = code;
  return true;
}

void WsSession::fail(WebSocketCloseCode code) noexcept {
  if (failed()) return;
  code_ = code;
  change(closing_ == Closing::sent ? Closing::failed : Closing::failing);
}

/// Keeps the payload for a pong. An older one that waits is replaced (RFC 6455 §5.5.3).
void WsSession::answer_ping(Bytes payload) noexcept {
  if (!may_send()) return;
  pong_due_ = true;
  pong_size_ = static_cast<std::uint8_t>(payload.size());
  std::ranges::copy(payload, pong_.begin());
}

char* WsSession::write_control(const std::optional<WsMaskKey>& mask, char* out) noexcept {
  assert(has_control());
  if (pong_due_) {
    pong_due_ = false;
    return write_ws_control(WsOpcode::pong, Bytes(pong_).first(pong_size_), mask, out);
  }
  change(closing_ == Closing::received ? Closing::closed : Closing::failed);
  return write_close_frame(code_, {}, mask, out);
}

char* WsSession::write_header(const WsFrameHeader& frame, char* out) noexcept {
  assert(may_send());
  assert(frame.opcode == WsOpcode::text || frame.opcode == WsOpcode::binary);
  WsFrameHeader header = frame;
  if (sends_message_) {
    header.opcode = WsOpcode::continuation;
    header.compressed = false;
  }
  sends_message_ = !frame.final;
  return write_ws_header(header, out);
}

char* WsSession::write_ping(Bytes payload, const std::optional<WsMaskKey>& mask,
                            char* out) noexcept {
  assert(may_send());
  return write_ws_control(WsOpcode::ping, payload, mask, out);
}

char* WsSession::write_close(WebSocketCloseCode code, std::string_view reason,
                             const std::optional<WsMaskKey>& mask, char* out) noexcept {
  assert(may_send());
  assert(code == WebSocketCloseCode::no_status || is_valid_close_code(code));
  pong_due_ = false;
  change(Closing::sent);
  return write_close_frame(code, sendable(reason), mask, out);
}

}  // namespace weir::http
