// The frames of the peer. session_output.cpp has the frames that a session sends.
#include "weir/http/detail/h2/session.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

namespace weir::http {
namespace {

using Kind = H2Event::Kind;

}  // namespace

H2Session::H2Session(H2Role role, const H2Limits& limits, Instant now) noexcept
    : limits_(limits),
      role_(role),
      preface_left_(static_cast<std::uint8_t>(role == H2Role::server ? client_preface.size() : 0)),
      flow_(role, limits),
      work_(limits.work, now) {}

H2Session::~H2Session() = default;

H2Event H2Session::next(Bytes input, Instant now) {
  H2Event event;
  if (take_request(input, event)) return event;
  Bytes rest = input;
  if (!failed_ && preface_left_ != 0 && !read_preface(rest)) fail(H2Error::protocol_error);
  while (!failed_ && preface_left_ == 0 && has_work_left(now, event)) {
    const FrameEvent frame = reader_.next(rest);
    rest = rest.subspan(frame.consumed);
    if (frame.kind == FrameEvent::Kind::need_more) break;
    const bool has_event = handle(frame, event);
    if (!within_frame()) ++frame_number_;
    if (has_event) break;
  }
  if (failed_) {
    event = {};
    event.kind = Kind::failed;
    event.error = error_;
    rest = {};
  }
  event.consumed = input.size() - rest.size();
  return event;
}

/// Takes a whole request head in one frame, which is the most frequent input, in one step. The
/// other handlers would give the same event. Returns false if the input begins with anything else.
bool H2Session::take_request(Bytes input, H2Event& event) {
  if (role_ == H2Role::client || !settings_.received() || failed_ || within_frame()) return false;
  const WholeHeaders frame = read_whole_headers(input);
  if (frame.stream <= streams_.last() || streams_.is_ignored(frame.stream) ||
      !is_from_peer(frame.stream) || frame.size > limits_.block_bytes_max || work_.empty() ||
      !streams_.has_room(limits_)) {
    return false;
  }
  streams_.reserve(limits_);
  streams_.note_opened(frame.stream);
  block_stream_ = frame.stream;
  block_flags_ = frame.flags;
  ++frame_number_;
  event.kind = Kind::open;
  event.stream_id = frame.stream;
  event.end_stream = (frame.flags & FrameFlag::end_stream) != 0;
  event.bytes = {input.data() + frame_header_size, frame.size};
  event.consumed = frame_header_size + frame.size;
  return true;
}

/// Returns false if the bytes differ from the preface.
bool H2Session::read_preface(Bytes& input) {
  const std::size_t count = std::min<std::size_t>(preface_left_, input.size());
  const auto expected = client_preface.substr(client_preface.size() - preface_left_, count);
  if (to_text(input.first(count)) != expected) return false;
  input = input.subspan(count);
  preface_left_ = static_cast<std::uint8_t>(preface_left_ - count);
  return true;
}

/// Checks the work account. Returns false if there is an event instead of the next frame.
bool H2Session::has_work_left(Instant now, H2Event& event) {
  if (!work_.empty()) [[likely]]
    return true;
  switch (work_.check(now)) {
    case WorkAccount::Verdict::open:
      return true;
    case WorkAccount::Verdict::empty:
      event.kind = Kind::delay;
      event.delay = limits_.work.delay;
      return false;
    case WorkAccount::Verdict::exhausted:
      break;
  }
  fail(H2Error::enhance_your_calm);
  return false;
}

bool H2Session::handle(const FrameEvent& frame, H2Event& event) {
  const bool is_settings = frame.kind == FrameEvent::Kind::setting ||
                           frame.kind == FrameEvent::Kind::settings_end ||
                           frame.kind == FrameEvent::Kind::connection_error;
  if (!settings_.received() && !is_settings) return fail_with(H2Error::protocol_error, event);
  event.stream_id = frame.stream;
  switch (frame.kind) {
    case FrameEvent::Kind::data:
      return on_data(frame, event);
    case FrameEvent::Kind::block:
      return on_block(frame, event);
    case FrameEvent::Kind::reset:
      return on_reset(frame, event);
    case FrameEvent::Kind::setting:
      return on_setting(frame, event);
    case FrameEvent::Kind::settings_end:
      return on_settings_end(event);
    case FrameEvent::Kind::settings_ack:
      on_settings_ack();
      return false;
    case FrameEvent::Kind::ping:
      return on_ping(frame, event);
    case FrameEvent::Kind::goaway:
      work_.spend_on_frames(WorkUnits::frame);
      goaway_received_ = true;
      event.kind = Kind::goaway;
      event.error = frame.error;
      event.stream_id = frame.value;
      return true;
    case FrameEvent::Kind::window_update:
      return on_window_update(frame, event);
    case FrameEvent::Kind::priority_update:
      return on_priority_update(frame, event);
    case FrameEvent::Kind::ignored:
      work_.spend_on_frames(WorkUnits::frame);
      return false;
    case FrameEvent::Kind::stream_error:
      return on_stream_error(frame, event);
    case FrameEvent::Kind::connection_error:
    case FrameEvent::Kind::need_more:
      break;
  }
  return fail_with(frame.error, event);
}

bool H2Session::fail_with(H2Error error, H2Event& event) {
  fail(error);
  event.kind = Kind::failed;
  return true;
}

/// Resets an open stream for an error of the peer.
bool H2Session::reset_with(H2Stream& stream, H2Error error, H2Event& event) {
  work_.spend(WorkUnits::reset);
  send_rst_stream(stream.id(), error);
  close(stream, Closed::reset_here);
  event.kind = Kind::reset;
  event.stream = &stream;
  event.stream_id = stream.id();
  event.error = error;
  return true;
}

/// Resets an open stream whose field block must still be decoded.
bool H2Session::discard_with(H2Stream& stream, H2Error error, H2Event& event) {
  reset_with(stream, error, event);
  event.kind = Kind::discarded;
  return true;
}

/// Resets a stream that is not open, and whose field block must be decoded. The event has no
/// stream, and the error of the reset.
bool H2Session::refuse_block(H2Error error, H2Event& event) {
  work_.spend(WorkUnits::reset);
  send_rst_stream(event.stream_id, error);
  event.kind = Kind::discarded;
  event.error = error;
  return true;
}

// DATA.

bool H2Session::on_data(const FrameEvent& frame, H2Event& event) {
  if (frame.first) {
    data_stream_ = nullptr;
    if (begin_data(frame, event)) return true;
  }
  if (data_stream_ == nullptr) return false;
  H2Stream& stream = *data_stream_;
  if (frame.last) data_stream_ = nullptr;
  const bool ends = frame.last && (frame.flags & FrameFlag::end_stream) != 0;
  if (frame.bytes.empty() && !ends) return false;
  if (ends) end_remote(stream);  // begin_data() has compared the length
  event.kind = Kind::data;
  event.stream = &stream;
  event.bytes = frame.bytes;
  event.end_stream = ends;
  return true;
}

/// Counts a frame of DATA in the windows and finds its stream.
bool H2Session::begin_data(const FrameEvent& frame, H2Event& event) {
  if (!flow_.on_received(frame.value)) return fail_with(H2Error::flow_control_error, event);
  return_connection_window();
  if (frame.content == 0 && (frame.flags & FrameFlag::end_stream) == 0) {
    work_.spend_on_frames(WorkUnits::frame);
  } else if (frame.content >= WorkUnits::data_bytes_min) {
    work_.earn_by_data(WorkUnits::received_data);
  }
  H2Stream* const stream = streams_.find(frame.stream);
  if (stream == nullptr) return on_stray_data(frame, event);
  if (stream->remote_ended()) {
    consume_on_connection(frame.value);
    return reset_with(*stream, H2Error::stream_closed, event);
  }
  if (static_cast<std::int32_t>(frame.value) > stream->windows_.receive()) {
    consume_on_connection(frame.value);
    return reset_with(*stream, H2Error::flow_control_error, event);
  }
  if (stream->body_left_ != H2Stream::no_length) {
    const bool ends = (frame.flags & FrameFlag::end_stream) != 0;
    if (ends ? frame.content != stream->body_left_ : frame.content > stream->body_left_) {
      consume_on_connection(frame.value);
      return reset_with(*stream, H2Error::protocol_error, event);
    }
    stream->body_left_ -= frame.content;
  }
  stream->windows_.on_received(frame.value);
  data_stream_ = stream;
  if (frame.value != frame.content) consume(*stream, frame.value - frame.content);
  return false;
}

/// Handles DATA on a stream that is not open.
bool H2Session::on_stray_data(const FrameEvent& frame, H2Event& event) {
  if (streams_.is_idle(frame.stream)) return fail_with(H2Error::protocol_error, event);
  consume_on_connection(frame.value);
  const Closed how = streams_.how_closed(frame.stream);
  if (how == Closed::ended || how == Closed::reset_by_peer) {
    work_.spend(WorkUnits::reset);
  } else {
    work_.spend_on_frames(WorkUnits::frame);
  }
  if (how != Closed::reset_here) send_rst_stream(frame.stream, H2Error::stream_closed);
  return false;
}

/// Ends the direction of the peer. Returns false if bytes of the body are missing.
bool H2Session::end_remote(H2Stream& stream) noexcept {
  if (stream.body_left_ != H2Stream::no_length && stream.body_left_ != 0) return false;
  if (stream.local_ended()) {
    close(stream, Closed::ended);
  } else {
    stream.end_remote();
  }
  return true;
}

// Field blocks.

bool H2Session::on_block(const FrameEvent& frame, H2Event& event) {
  if (frame.first) {
    if (frame.type == FrameType::headers) {
      block_stream_ = frame.stream;
      block_flags_ = frame.flags;
      block_error_ = frame.error;
      block_.clear();
    } else {
      work_.spend_on_frames(WorkUnits::frame);
    }
    if (++block_frames_ > limits_.block_frames_max) {
      return fail_with(H2Error::enhance_your_calm, event);
    }
  }
  if (block_.size() + frame.bytes.size() > limits_.block_bytes_max) {
    return fail_with(H2Error::enhance_your_calm, event);
  }
  const bool complete = frame.last && (frame.flags & FrameFlag::end_headers) != 0;
  if (complete && block_.empty()) return finish_block(frame.bytes, event);
  if (!frame.bytes.empty()) {
    block_.make_room(frame.bytes.size());
    std::memcpy(block_.room().data(), frame.bytes.data(), frame.bytes.size());
    block_.commit(frame.bytes.size());
  }
  return complete && finish_block(block_.bytes(), event);
}

bool H2Session::finish_block(Bytes block, H2Event& event) {
  block_frames_ = 0;
  event.stream_id = block_stream_;
  event.bytes = block;
  event.end_stream = (block_flags_ & FrameFlag::end_stream) != 0;
  H2Stream* const stream = streams_.find(block_stream_);
  if (stream != nullptr) {
    if (stream->remote_ended()) return discard_with(*stream, H2Error::stream_closed, event);
    if (block_error_ != H2Error::no_error) return discard_with(*stream, block_error_, event);
    event.stream = stream;
    const bool is_head = role_ == H2Role::client && !stream->final_head_;
    return is_head ? on_head(*stream, event) : on_trailers(*stream, event);
  }
  return streams_.is_idle(block_stream_) ? on_new_stream(event) : on_closed_block(event);
}

bool H2Session::on_new_stream(H2Event& event) {
  // A client never gets here: it refuses pushed streams, and its own are open or closed.
  if (role_ == H2Role::client || !is_from_peer(event.stream_id)) {
    return fail_with(H2Error::protocol_error, event);
  }
  streams_.note_opened(event.stream_id);
  if (streams_.is_ignored(event.stream_id)) {
    work_.spend_on_frames(WorkUnits::frame);
    event.kind = Kind::discarded;
    return true;
  }
  const bool full = !streams_.has_room(limits_);
  if (full || block_error_ != H2Error::no_error) {
    streams_.remember(event.stream_id, Closed::reset_here);  // later frames on it are no errors
    const bool valid = block_error_ == H2Error::no_error;
    return refuse_block(valid ? H2Error::refused_stream : block_error_, event);
  }
  streams_.reserve(limits_);
  event.kind = Kind::open;
  return true;
}

bool H2Session::accept(H2Stream& stream, std::uint64_t length) {
  begin_stream(stream);
  stream.open();
  if (early_priority_stream_ == streams_.last()) stream.priority_ = early_priority_;
  stream.body_left_ = length;
  const bool ends = (block_flags_ & FrameFlag::end_stream) != 0;
  if (!ends || end_remote(stream)) return true;
  work_.spend(WorkUnits::reset);
  send_rst_stream(stream.id_, H2Error::protocol_error);
  close(stream, Closed::reset_here);
  return false;
}

void H2Session::reject(H2Error error) {
  work_.spend(WorkUnits::reset);
  send_rst_stream(streams_.last(), error);
  streams_.remember(streams_.last(), Closed::reset_here);
}

bool H2Session::on_head(H2Stream& stream, H2Event& event) {
  event.kind = Kind::headers;
  if (!event.end_stream || end_remote(stream)) return true;
  return discard_with(stream, H2Error::protocol_error, event);
}

bool H2Session::on_trailers(H2Stream& stream, H2Event& event) {
  event.kind = Kind::trailers;
  if (event.end_stream && end_remote(stream)) return true;
  return discard_with(stream, H2Error::protocol_error, event);
}

bool H2Session::on_closed_block(H2Event& event) {
  switch (streams_.how_closed(event.stream_id)) {
    case Closed::ended:
      return fail_with(H2Error::stream_closed, event);
    case Closed::unknown:
      // If no closed stream has been forgotten, this stream was never open.
      if (!streams_.has_forgotten()) return fail_with(H2Error::protocol_error, event);
      break;
    case Closed::reset_by_peer:
      break;
    case Closed::reset_here:
      work_.spend_on_frames(WorkUnits::frame);
      event.kind = Kind::discarded;
      return true;
  }
  return refuse_block(H2Error::stream_closed, event);
}

// SETTINGS.

bool H2Session::on_setting(const FrameEvent& frame, H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  const H2Settings::Applied applied = settings_.apply(role_, frame.setting, frame.value);
  if (applied.error != H2Error::no_error) return fail_with(applied.error, event);
  if (frame.setting != SettingId::initial_window_size) return false;
  return change_send_windows(applied.window_change, event);
}

/// Changes the windows of all open streams (RFC 9113 §6.9.2).
bool H2Session::change_send_windows(std::int64_t change, H2Event& event) {
  work_.spend_on_frames(
      static_cast<std::int32_t>(streams_.open_count() / WorkUnits::streams_per_frame));
  const bool valid = streams_.for_each([&](H2Stream& stream) {
    if (!stream.windows_.change_send(change)) return false;
    streams_.scheduler().enqueue(stream);
    return true;
  });
  return !valid && fail_with(H2Error::flow_control_error, event);
}

bool H2Session::on_settings_end(H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  settings_.on_end();
  send_settings_ack();
  event.kind = H2Event::Kind::settings;
  return true;
}

/// Gives all open streams the window that the peer knows from now on.
void H2Session::on_settings_ack() noexcept {
  work_.spend_on_frames(WorkUnits::frame);
  if (!settings_.on_acknowledged()) return;
  const auto change =
      static_cast<std::int32_t>(std::int64_t{limits_.stream_window} - std::int64_t{window_default});
  streams_.for_each([change](H2Stream& stream) {
    stream.windows_.change_receive(change);
    return true;
  });
}

// Other frames.

bool H2Session::on_reset(const FrameEvent& frame, H2Event& event) {
  H2Stream* const stream = streams_.find(frame.stream);
  if (stream == nullptr) {
    if (streams_.is_idle(frame.stream)) return fail_with(H2Error::protocol_error, event);
    work_.spend_on_frames(WorkUnits::frame);
    return false;
  }
  work_.spend(WorkUnits::reset);
  close(*stream, Closed::reset_by_peer);
  event.kind = Kind::reset;
  event.stream = stream;
  event.error = frame.error;
  return true;
}

bool H2Session::on_window_update(const FrameEvent& frame, H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  if (frame.stream == 0) {
    return !flow_.add_send(frame.value) && fail_with(H2Error::flow_control_error, event);
  }
  H2Stream* const stream = streams_.find(frame.stream);
  if (stream == nullptr) {
    return streams_.is_idle(frame.stream) && fail_with(H2Error::protocol_error, event);
  }
  if (!stream->windows_.change_send(frame.value)) {
    return reset_with(*stream, H2Error::flow_control_error, event);
  }
  streams_.scheduler().enqueue(*stream);
  return false;
}

bool H2Session::on_ping(const FrameEvent& frame, H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  if ((frame.flags & FrameFlag::ack) == 0) {
    send_ack(frame.bytes);
    return false;
  }
  if (to_text(frame.bytes) == drain_ping) {
    if (goaway_sent_ == GoAway::announced) finish_drain();
    return false;
  }
  if (to_text(frame.bytes) != liveness_ping) return false;
  event.kind = Kind::ping_ack;
  return true;
}

bool H2Session::on_priority_update(const FrameEvent& frame, H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  if (role_ == H2Role::client) return fail_with(H2Error::protocol_error, event);
  const Priority priority = parse_priority(to_text(frame.bytes));
  if (H2Stream* const stream = streams_.find(frame.stream); stream != nullptr) {
    set_priority(*stream, priority);
  } else if (streams_.is_idle(frame.stream) && is_from_peer(frame.stream)) {
    early_priority_stream_ = frame.stream;
    early_priority_ = priority;
  }
  return false;
}

/// Handles a frame that is an error of its stream.
bool H2Session::on_stream_error(const FrameEvent& frame, H2Event& event) {
  if (H2Stream* const stream = streams_.find(frame.stream); stream != nullptr) {
    return reset_with(*stream, frame.error, event);
  }
  // RST_STREAM must not be sent on an idle stream.
  if (streams_.is_idle(frame.stream)) return fail_with(frame.error, event);
  work_.spend(WorkUnits::reset);
  send_rst_stream(frame.stream, frame.error);
  return false;
}

}  // namespace weir::http
