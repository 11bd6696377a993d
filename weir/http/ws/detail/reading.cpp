// WebSocket connections: reading.
#include <cassert>
#include <cstring>
#include <utility>

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {
namespace {

// The number of receives per turn that may finish immediately.
constexpr unsigned receives_in_a_row = 8;

std::error_code error_of(WebSocketCloseCode code) noexcept {
  const bool too_big = code == WebSocketCloseCode::message_too_big;
  return make_error_code(too_big ? Errc::limit_reached : Errc::bad_input);
}

}  // namespace

/// Starts a receive. No other one is pending, and no input is left.
/// Returns: true if the receive has finished.
bool WsConnection::start_receive() {
  WsActivity& a = *activity_;
  assert(!a.receiving() && a.input.empty());
  if (a.result_place == WsActivity::ResultPlace::in_input) {
    a.lent = std::move(a.input);
    using enum WsActivity::ResultPlace;
    a.change(a.lent.owns_memory() ? lent : none);
  } else {
    a.input = {};
  }
  a.change(WsActivity::ReceiveState::pending);
  if (!StreamLayer::start_receive(*stream_, a.receive)) return false;
  a.change(WsActivity::ReceiveState::idle);
  if (a.receive.error()) {
    lose(a.receive.error() == Errc::end_of_stream ? make_error_code(Errc::closed)
                                                  : a.receive.error());
    return true;
  }
  a.input = std::move(a.receive.buffer);
  a.used = true;
  on_heard();
  return true;
}

/// Returns true if one more receive may begin in this turn.
bool WsConnection::may_receive() noexcept {
  return activity_->receives.allow(loop(), receives_in_a_row);
}

/// Continues after a receive that had to wait.
void WsConnection::on_received() {
  WsActivity& a = *activity_;
  const bool was_ending = a.receive_state == WsActivity::ReceiveState::ending;
  a.change(WsActivity::ReceiveState::idle);
  const bool cancelled = a.receive.error() == Errc::cancelled;
  if (cancelled && was_ending && can_rest()) return end_activity();
  if (!a.receive.error() && !error()) {
    a.input = std::move(a.receive.buffer);
    a.used = true;
    on_heard();
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
  return a.has_held() || !a.input.empty() || (a.session.failed() && !error());
}

WsEvent WsConnection::next_event() {
  WsActivity& a = *activity_;
  if (a.has_held()) return std::exchange(a.held, WsEvent{});
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
  if (a.result_place == WsActivity::ResultPlace::none) return;
  if (a.result_place == WsActivity::ResultPlace::in_message) a.message = {};
  a.lent = {};
  a.change(WsActivity::ResultPlace::none);
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
    a.change(WsActivity::ResultPlace::in_message);
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
      switch (take_compressed(event, whole)) {
        case Decompressed::result:
        case Decompressed::ended:
          return true;
        case Decompressed::next_turn:
          return false;
        case Decompressed::next_event:
          continue;
      }
    }
    if (!whole || (event.begins && event.ends)) {
      a.change(WsActivity::ResultPlace::in_input);
      give(event, event.bytes, event.ends);
      return true;
    }
    guard([&] { collect(event); });
    if (error()) break;
    if (event.ends) {
      a.change(WsActivity::ResultPlace::in_message);
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
    while (!error() && !a.has_held() && has_event()) {
      const WsEvent event = next_event();
      if (event.kind == WsEvent::Kind::message) {
        a.held = event;
      } else if (!handle(event)) {
        break;
      }
    }
    if (error() || a.has_held() || a.receiving()) return;
    if (!may_receive()) return queue_next_turn();
    if (!start_receive()) return;
  }
}

/// Drops messages until the Close of the peer. The bytes of the last message that was read stay.
/// A reader gets the end.
void WsConnection::drop_input() {
  WsActivity& a = *activity_;
  a.held = {};
  while (!error() && has_event()) {
    const WsEvent event = next_event();
    if (event.kind != WsEvent::Kind::message && !handle(event)) break;
  }
  if (!error() && !a.receiving() && start_receive()) queue_next_turn();
  if (error() && reader_ != nullptr) std::exchange(reader_, nullptr)->grant();
}

/// Reads for the reader, until it has a result or more bytes must arrive.
void WsConnection::read_on() {
  for (;;) {
    if (take(reader_->whole())) {
      if (error() && !activity_->has_result) set_told();
      std::exchange(reader_, nullptr)->grant();
      return;
    }
    if (activity_ == nullptr || activity_->receiving()) return;
    if (activity_->has_held() || !may_receive()) return queue_next_turn();
    if (!start_receive()) return;
  }
}

bool WsConnection::begin_read(WebSocketRead& read) {
  assert(reader_ == nullptr && "two tasks read from one WebSocket");
  if (activity_ != nullptr && !drops()) {
    for (;;) {
      pump_output();
      if (activity_->has_held() || (!activity_->receiving() && !error() && !may_receive())) {
        queue_next_turn();  // other connections come first
        break;
      }
      if (activity_->receiving() || (!error() && !start_receive())) break;
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
  set_told();
  return fail(error());
}

}  // namespace weir::http
