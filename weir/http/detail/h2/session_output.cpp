// The frames that a session sends, and the bound of its memory. session.cpp handles the frames of
// the peer.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/http/detail/h2/session.hpp"

namespace weir::http {
void H2Session::start() {
  if (role_ == H2Role::client) {
    output_.make_room(client_preface.size());
    std::memcpy(output_.room().data(), client_preface.data(), client_preface.size());
    output_.commit(client_preface.size());
  }
  const OwnSettings own(role_, limits_);
  send_control(frame_header_size + own.entries().size() * setting_size,
               [&](char* out) { return write_settings(own.entries(), out); });
  if (const auto increment = flow_.open(limits_); increment != 0) send_window_update(0, increment);
}

/// Appends a control frame. A peer that makes the session send too many of them without reading
/// them ends the connection.
template <class Write>
void H2Session::send_control(std::size_t size, const Write& write) {
  if (failed_) return;
  output_.make_room(size);
  char* const start = reinterpret_cast<char*>(output_.room().data());
  [[maybe_unused]] const char* const end = write(start);
  assert(end == start + size);
  output_.commit(size);
  control_bytes_ += static_cast<std::uint32_t>(size);
  if (control_bytes_ > limits_.control_bytes_max) fail(H2Error::enhance_your_calm);
}

void H2Session::send_rst_stream(std::uint32_t id, H2Error error) {
  send_control(rst_stream_size, [=](char* out) { return write_rst_stream(id, error, out); });
}

void H2Session::send_window_update(std::uint32_t id, std::uint32_t increment) {
  send_control(window_update_size,
               [=](char* out) { return write_window_update(id, increment, out); });
}

void H2Session::send_ack(Bytes opaque) {
  send_control(ping_size, [=](char* out) { return write_ping(opaque, FrameFlag::ack, out); });
}

void H2Session::send_ping() {
  send_ping(liveness_ping);
}

void H2Session::send_ping(std::string_view opaque) {
  send_control(ping_size, [=](char* out) { return write_ping(to_bytes(opaque), 0, out); });
}

void H2Session::send_settings_ack() {
  send_control(frame_header_size, [](char* out) { return write_settings_ack(out); });
}

void H2Session::send_goaway(std::uint32_t last, H2Error error) {
  output_.make_room(goaway_size);
  write_goaway(last, error, reinterpret_cast<char*>(output_.room().data()));
  output_.commit(goaway_size);
}

void H2Session::fail(H2Error error) {
  if (std::exchange(failed_, true)) return;
  error_ = error;
  send_goaway(role_ == H2Role::server ? streams_.last_served() : 0, error);
}

void H2Session::begin_drain() {
  if (failed_ || goaway_sent_ != GoAway::none) return;
  goaway_sent_ = GoAway::announced;
  send_goaway(stream_id_max, H2Error::no_error);
  send_ping(drain_ping);
}

void H2Session::finish_drain() {
  if (failed_ || goaway_sent_ == GoAway::final) return;
  goaway_sent_ = GoAway::final;
  if (role_ == H2Role::server) streams_.ignore_later();
  send_goaway(last_from_peer(), H2Error::no_error);
}

/// Writes the frame header in front of a field block of `size` bytes in the room of the output,
/// which has room for all frame headers. A long block is cut into frames.
void H2Session::finish_headers(H2Stream& stream, std::size_t size, bool end_stream) {
  assert(!stream.local_ended());
  constexpr std::size_t most = frame_payload_default;
  const std::size_t frames = size == 0 ? 1 : (size + most - 1) / most;
  char* const start = reinterpret_cast<char*>(output_.room().data());
  if (stream.state() == H2Stream::State::idle) stream.open();  // a client's
  for (std::size_t at = frames; at-- > 0;) {
    const std::size_t length = at + 1 == frames ? size - at * most : most;
    char* const frame = start + at * (most + frame_header_size);
    std::memmove(frame + frame_header_size, start + frame_header_size + at * most, length);
    const bool ends_block = at + 1 == frames;
    const bool ends_stream = at == 0 && end_stream;
    const auto flags = static_cast<std::uint8_t>((ends_block ? FrameFlag::end_headers : 0) |
                                                 (ends_stream ? FrameFlag::end_stream : 0));
    const FrameType type = at == 0 ? FrameType::headers : FrameType::continuation;
    write_frame_header({static_cast<std::uint32_t>(length), type, flags, stream.id_}, frame);
  }
  output_.commit(size + frames * frame_header_size);
  if (end_stream) end_local(stream);
}

/// Returns how many of `count` bytes of a body may be sent now.
std::size_t H2Session::data_allowed(const H2Stream& stream, std::size_t count) const noexcept {
  // The last frame may exceed the limit, so that no frame is cut for it.
  if (stream.local_ended() || failed_ || output_.size() >= limits_.output_max) return 0;
  const std::int32_t most = flow_.allowed(stream.windows_);
  return most <= 0 ? 0 : std::min(count, static_cast<std::size_t>(most));
}

std::size_t H2Session::allowed_in_place(const H2Stream& stream, std::size_t size) noexcept {
  if (stream.closed() || streams_.scheduler().takes_turns(stream)) return 0;
  return data_allowed(stream, size);
}

std::size_t H2Session::send_data(H2Stream& stream, Bytes body, bool end_stream) {
  assert(end_stream || !body.empty());
  if (stream.local_ended() || failed_) return 0;
  const std::size_t size =
      data_allowed(stream, std::min<std::size_t>(body.size(), frame_payload_default));
  if (size == 0 && !body.empty()) return 0;
  const bool ends = end_stream && size == body.size();
  output_.make_room(frame_header_size + size);
  char* const out = reinterpret_cast<char*>(output_.room().data());
  const std::uint8_t flags = ends ? FrameFlag::end_stream : 0;
  char* const content = write_frame_header(
      {static_cast<std::uint32_t>(size), FrameType::data, flags, stream.id_}, out);
  if (size != 0) std::memcpy(content, body.data(), size);
  output_.commit(frame_header_size + size);
  count_sent(stream, static_cast<std::uint32_t>(size));
  end_frame(stream, ends);
  return size;
}

/// Removes the written bytes from the output, and counts the frames of which a part was written.
/// Appends the rest of the last frame to the output, which has room for a whole frame.
/// Returns: the number of bytes of the body in those frames.
std::size_t H2Session::take_written(H2Stream& stream, const DataFrames& frames,
                                    std::size_t written) {
  const std::size_t before = std::min(written, output_.size());
  output_.consume(before);
  if (!output_.empty()) return 0;
  output_.clear();
  control_bytes_ = 0;
  std::size_t left = written - before;
  std::size_t sent = 0;
  std::size_t frame = 0;
  for (; frame < frames.count() && left != 0; ++frame) {
    count_sent(stream, static_cast<std::uint32_t>(frames.size(frame)));
    sent += frames.size(frame);
    for (const Bytes piece : frames.pieces().subspan(2 * frame + 1, 2)) {
      const Bytes rest = piece.subspan(std::min(left, piece.size()));
      left -= piece.size() - rest.size();
      if (rest.empty()) continue;
      std::memcpy(output_.room().data(), rest.data(), rest.size());
      output_.commit(rest.size());
    }
  }
  if (frame != 0) end_frame(stream, frames.ends() && frame == frames.count());
  return sent;
}

/// Ends the stream, or lets others of its urgency send.
void H2Session::end_frame(H2Stream& stream, bool ends) noexcept {
  if (ends) {
    end_local(stream);
  } else {
    streams_.scheduler().end_turn(stream);
  }
}

void H2Session::end_local(H2Stream& stream) noexcept {
  if (stream.remote_ended()) return close(stream, Closed::ended);
  stream.end_local();
  stop_sending(stream);
}

void H2Session::reset(H2Stream& stream, H2Error error) {
  if (stream.id_ == 0 || stream.closed()) return;
  const bool own_wish = role_ == H2Role::client && error == H2Error::cancel;
  if (error != H2Error::no_error && !own_wish) work_.spend(WorkUnits::reset);
  // The peer does not know an idle stream.
  if (stream.state() != H2Stream::State::idle) send_rst_stream(stream.id_, error);
  close(stream, Closed::reset_here);
}

// Windows of received data.

void H2Session::consume_on_connection_only(H2Stream& stream, std::size_t count) {
  flow_.consume(stream.windows_, count);
  return_connection_window();
}

void H2Session::consume_and_grow(H2Stream& stream, std::size_t count, std::size_t returned) {
  if (!stream.remote_ended()) flow_.grow(stream.windows_, count, stream.body_left_);
  consume_on_connection_only(stream, count - returned);
  allow_more(stream, count);
}

void H2Session::allow_more(H2Stream& stream, std::size_t count) {
  if (stream.remote_ended()) return;
  const std::uint32_t increment = stream.windows_.allow_more(static_cast<std::uint32_t>(count));
  if (increment != 0) send_window_update(stream.id_, increment);
}

void H2Session::consume_on_connection(std::uint32_t count) {
  flow_.give_back(count);
  return_connection_window();
}

void H2Session::return_connection_window() {
  if (const auto increment = flow_.take_update(); increment != 0) send_window_update(0, increment);
}

// Senders.

void H2Session::want_send(H2Stream& stream) noexcept {
  if (!stream.local_ended()) streams_.scheduler().want(stream);
}

H2Stream* H2Session::next_sender() noexcept {
  if (!flow_.may_send() || output_.size() >= limits_.output_max || failed_) return nullptr;
  return streams_.next_sender();
}

void H2Session::set_priority(H2Stream& stream, Priority priority) noexcept {
  if (!stream.closed()) streams_.scheduler().set_priority(stream, priority);
}

// The life of a stream.

/// Makes `stream` the stream that was opened last.
void H2Session::begin_stream(H2Stream& stream) noexcept {
  const std::uint32_t window = limits_.stream_window;
  const bool known = settings_.acknowledged();
  streams_.insert(stream, StreamWindows({.send = peer().initial_window_size,
                                         .receive = known ? window : window_default,
                                         .receive_full = window}));
}

void H2Session::close(H2Stream& stream, Closed how) noexcept {
  streams_.close(stream, how);
  if (data_stream_ == &stream) data_stream_ = nullptr;
  if (how == Closed::ended) work_.earn(WorkUnits::request);
}

void H2Session::release(H2Stream& stream, H2Error error) {
  if (!stream.held_) return;
  streams_.release(stream);
  if (!stream.closed()) {
    try {
      reset(stream, error);
    } catch (...) {
      close(stream, Closed::reset_here);
      throw;
    }
  }
  if (flow_.release(stream.windows_)) return_connection_window();
}

bool H2Session::open(H2Stream& stream) {
  assert(role_ == H2Role::client);
  if (!may_open()) return false;
  streams_.reserve(limits_);
  streams_.note_opened(streams_.next_id());
  begin_stream(stream);
  return true;
}

void H2Session::drop_idle_memory() noexcept {
  if (block_frames_ == 0) block_ = {};
  if (output_.empty()) output_ = {};
  streams_.drop_idle_memory();
}

std::uint64_t session_bytes_max(const H2Limits& limits, std::uint64_t stream_bytes) noexcept {
  using weir::detail::block;
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t grown = 3;    // a buffer of twice the size, and the one before it
  constexpr std::uint64_t written = 2;  // the buffer that is written, of twice the size
  const auto buffer = [](std::uint64_t bytes) {
    return block(std::max<std::uint64_t>(bytes, Buffer::default_capacity));
  };
  // Control frames, heads and DATA, and the head and the frame that exceed a limit.
  const std::uint64_t output = sum({limits.control_bytes_max, limits.output_max,
                                    limits.field_list_max, frame_payload_default, goaway_size});
  const std::uint64_t window = std::max(limits.connection_window, window_default);
  // DATA arrives in pieces, and each stream may waste as much as it holds.
  constexpr std::uint64_t wasted = 2;
  return sum({block(sizeof(H2Session)), block(StreamTable::block_bytes(limits)),
              product(grown, buffer(limits.block_bytes_max)),
              product(grown + written, buffer(output)), product(wasted, window),
              product(streams_held_max(limits), block(stream_bytes))});
}

}  // namespace weir::http
