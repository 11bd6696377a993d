// WebSocket connections: sending.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {
namespace {

// The number of writes in a row.
constexpr unsigned writes_in_a_row = 8;

}  // namespace

std::optional<WsMaskKey> WsConnection::next_mask() {
  if (role_ == WsRole::server) return std::nullopt;
  return std::bit_cast<WsMaskKey>(static_cast<std::uint32_t>(loop().platform().random()));
}

/// Writes the header of the frame of a message, whose room is made.
void WsConnection::begin_frame(WebSocketSend& send) {
  WsActivity& a = *activity_;
  const WebSocketMessage message = send.message();
  const auto mask = next_mask();
  a.mask = WsMask(mask.value_or(WsMaskKey{}));
  const WsFrameHeader header{.opcode = message.is_text ? WsOpcode::text : WsOpcode::binary,
                             .final = message.ends,
                             .length = message.bytes.size(),
                             .mask = mask};
  char* const start = reinterpret_cast<char*>(a.output.room().data());
  a.output.commit(static_cast<std::size_t>(a.session.write_header(header, start) - start));
  send.begun_ = a.within_frame = true;
}

/// Copies as much of a message to the output as there is room for. Returns true if all is copied.
/// A small message is copied as a whole.
bool WsConnection::copy(WebSocketSend& send) {
  WsActivity& a = *activity_;
  const Bytes bytes = send.bytes_;
  if (!send.begun_ && a.session.sends_message() && send.kind_ != WebSocketSend::Kind::piece) {
    send.error_ = Errc::conflict;
    return true;
  }
  if (deflate_ != nullptr && !a.within_frame &&
      deflate_->compresses(send.message(), a.session.sends_message())) {
    return copy_compressed(send);
  }
  const std::size_t used = a.output.size();
  std::size_t room = limits_.output_max - std::min(limits_.output_max, used);
  if (role_ == WsRole::server && bytes.size() <= ws_control_max && send.ends_ &&
      !a.session.sends_message() && room >= ws_control_frame_max) {
    a.output.make_room(ws_control_frame_max);
    std::byte* const out = a.output.room().data();
    a.output.commit(write_small_frame(send.is_text_, bytes, out));
    return true;
  }
  if (!send.begun_) {
    const std::size_t size = ws_header_size_max + bytes.size();
    if (used != 0 && room < std::min(size, limits_.output_max)) return false;
    a.output.make_room(std::min(size, limits_.output_max + ws_header_size_max));
    begin_frame(send);
  }
  const Bytes rest = bytes.subspan(send.taken_);
  room = std::max(room, ws_header_size_max);  // it goes on, whatever the limit is
  const std::size_t count = std::min(rest.size(), room);
  if (count != 0) {
    a.output.make_room(count);
    std::byte* const out = a.output.room().data();
    if (role_ == WsRole::client) {
      a.mask.apply(rest.first(count), out);
    } else {
      std::memcpy(out, rest.data(), count);
    }
    a.output.commit(count);
    send.taken_ += count;
  }
  if (send.taken_ != bytes.size()) return false;
  a.within_frame = false;
  return true;
}

bool WsConnection::try_send(WebSocketSend& send) {
  if (!may_send()) {
    send.error_ = Errc::closed;
    return true;
  }
  if (send.kind_ == WebSocketSend::Kind::unchecked_text) {
    Utf8Checker checker;
    const std::string_view text = to_text(send.bytes_);
    if (checker.check(text) != text.size() || !checker.complete()) {
      send.error_ = Errc::bad_input;
      return true;
    }
  }
  WsActivity& a = activate();
  // A compressed message has several frames, behind which others wait.
  const WebSocketSend* const first = a.senders.front();
  const bool within_whole =
      first != nullptr && first->begun_ && first->kind_ != WebSocketSend::Kind::piece;
  if (a.session.sends_message() && !within_whole && send.kind_ != WebSocketSend::Kind::piece) {
    send.error_ = Errc::conflict;
    return true;
  }
  // A message that does not fit waits, so that it is never dropped behind its first part.
  const std::size_t used = a.output.size();
  const std::size_t bytes = send.bytes_.size();  // it may be a little larger if compressed
  const std::size_t size =
      ws_header_size_max + (deflate_ == nullptr ? bytes : WsDeflate::room_for(bytes));
  if (!a.senders.empty() || (deflate_ != nullptr && bytes > WsDeflate::slice_max) ||
      (used != 0 && used + size > limits_.output_max) || size > limits_.output_max ||
      (deflate_ != nullptr && deflate_->turn_is_used())) {
    return false;
  }
  [[maybe_unused]] const bool copied = copy(send);
  assert(copied);
  if (!a.writing) queue();
  return true;
}

void WsConnection::begin_send(WebSocketSend& send) noexcept {
  activity_->senders.push_back(send);
  if (!activity_->writing) queue();
}

/// A message that was sent in part cannot be completed any more.
void WsConnection::withdraw(WebSocketSend& send) noexcept {
  send.unlink();
  if (send.begun_) abort(make_error_code(Errc::closed));
}

/// Writes the frames of the session itself.
void WsConnection::write_controls() {
  WsActivity& a = *activity_;
  const auto write = [&](const auto& frame) {
    a.output.make_room(ws_control_frame_max);
    char* const start = reinterpret_cast<char*>(a.output.room().data());
    a.output.commit(static_cast<std::size_t>(frame(start) - start));
  };
  while (a.session.has_control()) {
    write([&](char* out) { return a.session.write_control(next_mask(), out); });
  }
  if (ping_ == PingState::due && !a.session.may_send()) change(PingState::none);
  if (ping_ == PingState::due) {
    change(PingState::sent);
    heard_ = loop().now() - limits_.ping_interval;  // the time for the answer begins
    write([&](char* out) { return a.session.write_ping({}, next_mask(), out); });
  }
  if (!a.close_order || !a.senders.empty() || !a.session.may_send()) return;
  const WebSocketCloseCode code = *std::exchange(a.close_order, std::nullopt);
  write([&](char* out) { return a.session.write_close(code, a.close_reason, next_mask(), out); });
  a.close_reason.clear();
  limit_close();
}

/// Lets the senders fail, because nothing can be sent any more.
void WsConnection::refuse_senders() noexcept {
  while (WebSocketSend* const send = activity_->senders.front()) {
    send->error_ = Errc::closed;
    send->grant();
  }
  activity_->within_frame = false;
}

/// Copies what waits to the output.
void WsConnection::fill_output() {
  WsActivity& a = *activity_;
  // Messages come before the own Close, and none follows that of the peer.
  const bool refused = lost_ || (!a.within_frame && !a.session.may_send());
  if (refused) {
    refuse_senders();
    while (TopicMember::Place* const topic = a.topics.front()) topic->member.clear();
  }
  for (WebSocketSend* send = a.senders.front(); send != nullptr; send = a.senders.front()) {
    if (!send->begun_ && !a.session.may_send()) {
      send->error_ = Errc::closed;
    } else if (!copy(*send)) {
      break;
    }
    send->grant();
  }
  if (!a.within_frame && !lost_) write_controls();
}

void WsConnection::pump_output() {
  WsActivity& a = *activity_;
  for (unsigned steps = 0; !a.writing; ++steps) {
    fill_output();
    if (lost_ || (a.output.empty() && !has_messages())) {
      a.output = {};
      a.sent_buffer = {};
      return;
    }
    if (steps == writes_in_a_row) return queue_next_turn();
    start_write();
  }
}

/// Writes the output and messages of topics. Returns true if the write has finished.
bool WsConnection::start_write() {
  WsActivity& a = *activity_;
  std::swap(a.sent_buffer, a.output);
  a.output.clear();
  std::size_t count = 0;
  if (!a.sent_buffer.empty()) a.pieces[count++] = a.sent_buffer.bytes();
  count = add_messages(count);
  a.send.pieces = std::span<const Bytes>(a.pieces).first(count);
  a.send.sent = 0;
  a.writing = true;
  a.progress = 0;
  a.progress_since = loop().now();
  if (!start_send(*stream_, a.send)) return false;
  on_sent();
  return true;
}

void WsConnection::on_sent() {
  WsActivity& a = *activity_;
  a.writing = false;
  a.used = true;
  a.sent_buffer.clear();
  for (TopicFrameRef& each : a.messages) each = {};
  if (a.send.error()) lose(a.send.error());
}

}  // namespace weir::http
