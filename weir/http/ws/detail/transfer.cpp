// WebSocket connections: reading and sending.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {
namespace {

// The number of receives per turn that may finish immediately, and of writes in a row.
constexpr unsigned steps_in_a_row = 8;

std::error_code error_of(WebSocketCloseCode code) noexcept {
  const bool too_big = code == WebSocketCloseCode::message_too_big;
  return make_error_code(too_big ? Errc::limit_reached : Errc::bad_input);
}

}  // namespace

// Reading.

/// Starts a receive. No other one is pending, and no input is left.
/// Returns: true if the receive has finished.
bool WsConnection::start_receive() {
  WsActivity& a = *activity_;
  assert(!a.receiving && a.input.empty());
  if (std::exchange(a.result_in_input, false)) {
    a.lent = std::move(a.input);
  } else {
    a.input = {};
  }
  a.receiving = true;
  if (!StreamLayer::start_receive(*stream_, a.receive)) return false;
  a.receiving = false;
  if (a.receive.error()) {
    lose(a.receive.error() == Errc::end_of_stream ? make_error_code(Errc::closed)
                                                  : a.receive.error());
    return true;
  }
  a.input = std::move(a.receive.buffer);
  a.used = true;
  heard_ = loop().now();
  pinged_ = false;
  return true;
}

/// Returns true if one more receive may begin in this turn.
bool WsConnection::may_receive() noexcept {
  return activity_->receives.allow(loop(), steps_in_a_row);
}

/// Continues after a receive that had to wait.
void WsConnection::on_received() {
  WsActivity& a = *activity_;
  a.receiving = false;
  const bool cancelled = a.receive.error() == Errc::cancelled;
  if (cancelled && std::exchange(a.going_idle, false) && can_rest()) return end_activity();
  if (!a.receive.error() && !error()) {
    a.input = std::move(a.receive.buffer);
    a.used = true;
    a.going_idle = false;
    heard_ = loop().now();
    pinged_ = false;
  } else if (!cancelled && !error()) {
    lose(a.receive.error() == Errc::end_of_stream ? make_error_code(Errc::closed)
                                                  : a.receive.error());
  }
  run();
}

/// Returns true if next_event() may return an event. A session that fails behind the last bytes of
/// its input reports that without more bytes.
bool WsConnection::has_event() const noexcept {
  const WsActivity& a = *activity_;
  return a.has_held || !a.input.empty() || (a.session.failed() && !error());
}

WsEvent WsConnection::next_event() {
  WsActivity& a = *activity_;
  if (std::exchange(a.has_held, false)) return a.held;
  const WsEvent event = a.session.next({a.input.data(), a.input.size()});
  a.input.consume(event.consumed);
  return event;
}

/// Handles an event that is not a part of a message. Returns false if the input is used up or the
/// connection has ended.
bool WsConnection::handle(const WsEvent& event) {
  WsActivity& a = *activity_;
  switch (event.kind) {
    case WsEvent::Kind::ping:
      // A ping behind others, which wait for a slow peer, replaces the last of them.
      if (!a.within_frame && !output_is_full()) write_controls();
      queue();
      return true;
    case WsEvent::Kind::close:
      close_code_ = event.code;
      a.close_reason = to_text(event.bytes);
      a.close_order.reset();
      set_error(make_error_code(Errc::end_of_stream));
      return false;
    case WsEvent::Kind::failed:
      a.close_order.reset();
      set_error(error_of(event.code));
      return false;
    case WsEvent::Kind::pong:
      return true;
    case WsEvent::Kind::message:
    case WsEvent::Kind::need_more:
      break;
  }
  return false;
}

void WsConnection::release_result() noexcept {
  WsActivity& a = *activity_;
  a.lent = {};
  a.result_in_input = false;
  if (std::exchange(a.result_in_message, false)) a.message = {};
}

void WsConnection::give(const WsEvent& event, Bytes bytes, bool ends) noexcept {
  WsActivity& a = *activity_;
  a.result = {.is_text = event.is_text, .ends = ends, .bytes = bytes};
  a.has_result = true;
}

/// Adds a part of a message to those before it.
void WsConnection::collect(const WsEvent& event) {
  WsActivity& a = *activity_;
  a.collects_text = event.is_text;
  if (event.bytes.empty()) return;
  a.message.make_room(event.bytes.size());
  std::memcpy(a.message.room().data(), event.bytes.data(), event.bytes.size());
  a.message.commit(event.bytes.size());
}

bool WsConnection::take(bool whole) {
  if (activity_ == nullptr) return static_cast<bool>(error());
  WsActivity& a = *activity_;
  if (error()) return true;
  release_result();
  if (!whole && !a.message.empty()) {
    // A read() that was cancelled has collected it.
    a.result_in_message = true;
    a.result = {.is_text = a.collects_text, .ends = false, .bytes = a.message.bytes()};
    a.has_result = true;
    return true;
  }
  while (has_event()) {
    const WsEvent event = next_event();
    if (event.kind != WsEvent::Kind::message) {
      if (!handle(event)) break;
      continue;
    }
    if (event.compressed) {
      if (take_compressed(event, whole)) return true;
      if (error()) break;
      if (a.has_held) return false;
      continue;
    }
    if (!whole || (event.begins && event.ends)) {
      a.result_in_input = true;
      give(event, event.bytes, event.ends);
      return true;
    }
    guard([&] { collect(event); });
    if (error()) break;
    if (event.ends) {
      a.result_in_message = true;
      give(event, a.message.bytes(), true);
      return true;
    }
  }
  return static_cast<bool>(error());
}

/// Answers pings and takes a Close while the handler does not read. It stops at a message.
void WsConnection::look_ahead() {
  WsActivity& a = *activity_;
  for (;;) {
    while (!error() && !a.has_held && has_event()) {
      const WsEvent event = next_event();
      if (event.kind == WsEvent::Kind::message) {
        a.held = event;
        a.has_held = true;
      } else if (!handle(event)) {
        break;
      }
    }
    if (error() || a.has_held || a.receiving) return;
    if (!may_receive()) return queue_next_turn();
    if (!start_receive()) return;
  }
}

/// Drops messages until the Close of the peer. The bytes of the last message that was read stay.
/// A reader gets the end.
void WsConnection::drop_input() {
  WsActivity& a = *activity_;
  a.has_held = false;
  while (!error() && has_event()) {
    const WsEvent event = next_event();
    if (event.kind != WsEvent::Kind::message && !handle(event)) break;
  }
  if (!error() && !a.receiving && start_receive()) queue_next_turn();
  if (error() && reader_ != nullptr) std::exchange(reader_, nullptr)->grant();
}

/// Reads for the reader, until it has a result or more bytes must arrive.
void WsConnection::read_on() {
  for (;;) {
    if (take(reader_->whole())) {
      if (error() && !activity_->has_result) told_ = true;
      std::exchange(reader_, nullptr)->grant();
      return;
    }
    if (activity_ == nullptr || activity_->receiving) return;
    if (activity_->has_held || !may_receive()) return queue_next_turn();
    if (!start_receive()) return;
  }
}

bool WsConnection::begin_read(WebSocketRead& read) {
  assert(reader_ == nullptr && "two tasks read from one WebSocket");
  if (activity_ != nullptr && !drops_) {
    for (;;) {
      pump_output();
      if (activity_->has_held || (!activity_->receiving && !error() && !may_receive())) {
        queue_next_turn();  // other connections come first
        break;
      }
      if (activity_->receiving || (!error() && !start_receive())) break;
      if (take(read.whole())) return false;
    }
  }
  reader_ = &read;
  return true;
}

void WsConnection::withdraw([[maybe_unused]] WebSocketRead& read) noexcept {
  assert(reader_ == &read);
  reader_ = nullptr;
}

Result<WebSocketMessage> WsConnection::taken() {
  if (activity_ != nullptr && std::exchange(activity_->has_result, false)) {
    return activity_->result;
  }
  told_ = true;
  return fail(error());
}

// Sending.

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
  if (std::exchange(a.ping_due, false) && a.session.may_send()) {
    pinged_ = true;
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
  const bool refused = broken_ || (!a.within_frame && !a.session.may_send());
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
  if (!a.within_frame && !broken_) write_controls();
}

void WsConnection::pump_output() {
  WsActivity& a = *activity_;
  for (unsigned steps = 0; !a.writing; ++steps) {
    fill_output();
    if (broken_ || (a.output.empty() && !has_messages())) {
      a.output = {};
      a.sent_buffer = {};
      return;
    }
    if (steps == steps_in_a_row) return queue_next_turn();
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
