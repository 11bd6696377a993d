#include "weir/http/detail/h2/frame.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weir::http {
namespace {

constexpr std::uint32_t priority_size = 5;
constexpr std::uint32_t goaway_fields_size = 8;

std::uint32_t read_u16(const std::byte* at) noexcept {
  return std::to_integer<std::uint32_t>(at[0]) << 8 | std::to_integer<std::uint32_t>(at[1]);
}
std::uint32_t read_u24(const std::byte* at) noexcept {
  return read_u16(at) << 8 | std::to_integer<std::uint32_t>(at[2]);
}
std::uint32_t read_u32(const std::byte* at) noexcept {
  return read_u16(at) << 16 | read_u16(at + 2);
}
/// Reads a stream identifier or an increment, without its reserved bit.
std::uint32_t read_u31(const std::byte* at) noexcept {
  return read_u32(at) & stream_id_max;
}

char* write_u32(std::uint32_t value, char* out) noexcept {
  for (int shift = 24; shift >= 0; shift -= 8) *out++ = static_cast<char>(value >> shift);
  return out;
}

/// Returns true for the types that belong to the connection, so that their stream is 0.
bool is_of_connection(FrameType type) noexcept {
  return type == FrameType::settings || type == FrameType::ping || type == FrameType::goaway ||
         type == FrameType::priority_update;
}
/// Returns true for the types that belong to a stream.
bool is_of_stream(FrameType type) noexcept {
  return type <= FrameType::continuation && !is_of_connection(type) &&
         type != FrameType::window_update;
}

}  // namespace

FrameEvent FrameReader::next(Bytes input) noexcept {
  FrameEvent event;
  Bytes rest = input;
  while (step(rest, event) == Progress::forward) {
  }
  event.consumed = input.size() - rest.size();
  return event;
}

/// Returns `count` bytes in one piece, or nullptr if the input ends before them. Bytes that arrive
/// in pieces are collected; only at most small_max bytes may.
const std::byte* FrameReader::take(Bytes& input, std::size_t count) noexcept {
  if (stored_size_ == 0 && input.size() >= count) [[likely]] {
    const std::byte* const bytes = input.data();
    input = input.subspan(count);
    return bytes;
  }
  assert(count <= small_max && stored_size_ < count);
  const std::size_t added = std::min(count - stored_size_, input.size());
  if (added != 0) std::memcpy(stored_.data() + stored_size_, input.data(), added);
  input = input.subspan(added);
  stored_size_ = static_cast<std::uint8_t>(stored_size_ + added);
  if (stored_size_ < count) return nullptr;
  stored_size_ = 0;
  return stored_.data();
}

/// Reads one part of a frame.
FrameReader::Progress FrameReader::step(Bytes& input, FrameEvent& event) noexcept {
  const std::byte* bytes = nullptr;
  switch (state_) {
    case State::header:
      bytes = take(input, frame_header_size);
      return bytes != nullptr ? read_header(bytes, event) : Progress::blocked;
    case State::prefix:
      bytes = take(input, prefix_size());
      return bytes != nullptr ? read_prefix(bytes, event) : Progress::blocked;
    case State::content:
      return read_content(input, event);
    case State::small:
      bytes = take(input, left_);
      return bytes != nullptr ? read_small(bytes, event) : Progress::blocked;
    case State::settings:
      return read_settings(input, event);
    case State::skip: {
      const std::size_t count = std::min<std::size_t>(left_, input.size());
      input = input.subspan(count);
      left_ -= static_cast<std::uint32_t>(count);
      if (left_ != 0) return Progress::blocked;
      state_ = State::header;
      return Progress::forward;
    }
    case State::failed:
      break;
  }
  return fail(error_, event);
}

FrameReader::Progress FrameReader::read_header(const std::byte* bytes, FrameEvent& event) noexcept {
  length_ = read_u24(bytes);
  type_ = static_cast<FrameType>(bytes[3]);
  flags_ = std::to_integer<std::uint8_t>(bytes[4]);
  stream_ = read_u31(bytes + 5);
  padding_ = 0;
  error_ = {};
  if (length_ > frame_payload_default) return fail(H2Error::frame_size_error, event);
  const bool continues = type_ == FrameType::continuation;
  if (block_open_ ? !continues || stream_ != block_stream_ : continues) {
    return fail(H2Error::protocol_error, event);
  }
  if (stream_ == 0 ? is_of_stream(type_) : is_of_connection(type_)) {
    return fail(H2Error::protocol_error, event);
  }
  return begin_payload(event);
}

FrameReader::Progress FrameReader::begin_payload(FrameEvent& event) noexcept {
  switch (type_) {
    case FrameType::data:
    case FrameType::headers:
      block_open_ = type_ == FrameType::headers && (flags_ & FrameFlag::end_headers) == 0;
      block_stream_ = stream_;
      if (prefix_size() == 0) return begin_content();
      if (length_ < prefix_size()) return fail(H2Error::frame_size_error, event);
      state_ = State::prefix;
      return Progress::forward;
    case FrameType::continuation:
      block_open_ = (flags_ & FrameFlag::end_headers) == 0;
      return begin_content();
    default:
      return begin_control(event);
  }
}

FrameReader::Progress FrameReader::begin_control(FrameEvent& event) noexcept {
  switch (type_) {
    case FrameType::priority:
      if (length_ == priority_size) return begin_small(priority_size, event);
      skip(length_);
      event.error = H2Error::frame_size_error;
      return emit(FrameEvent::Kind::stream_error, event);
    case FrameType::rst_stream:
    case FrameType::window_update:
      return begin_small(4, event);
    case FrameType::ping:
      return begin_small(8, event);
    case FrameType::push_promise:  // Weir never allows it
      return fail(H2Error::protocol_error, event);
    case FrameType::settings: {
      const bool ack = (flags_ & FrameFlag::ack) != 0;
      if (ack ? length_ != 0 : length_ % setting_size != 0) {
        return fail(H2Error::frame_size_error, event);
      }
      if (ack) return emit(FrameEvent::Kind::settings_ack, event);
      left_ = length_;
      state_ = State::settings;
      return Progress::forward;
    }
    case FrameType::goaway:
      if (length_ < goaway_fields_size) return fail(H2Error::frame_size_error, event);
      left_ = goaway_fields_size;
      state_ = State::small;
      return Progress::forward;
    case FrameType::priority_update:
      if (length_ < 4) return fail(H2Error::frame_size_error, event);
      if (length_ > small_max) return ignore(event);
      return begin_small(length_, event);
    default:
      return ignore(event);
  }
}

/// Begins a payload that must have `length` bytes.
FrameReader::Progress FrameReader::begin_small(std::uint32_t length, FrameEvent& event) noexcept {
  if (length_ != length) return fail(H2Error::frame_size_error, event);
  left_ = length;
  state_ = State::small;
  return Progress::forward;
}

std::size_t FrameReader::prefix_size() const noexcept {
  const bool padded = (flags_ & FrameFlag::padded) != 0;
  const bool priority = type_ == FrameType::headers && (flags_ & FrameFlag::priority) != 0;
  return (padded ? 1 : 0) + (priority ? priority_size : 0);
}

FrameReader::Progress FrameReader::read_prefix(const std::byte* bytes, FrameEvent& event) noexcept {
  const std::byte* priority = bytes;
  if ((flags_ & FrameFlag::padded) != 0) padding_ = std::to_integer<std::uint8_t>(*priority++);
  if (padding_ > length_ - prefix_size()) return fail(H2Error::protocol_error, event);
  const bool has_priority = type_ == FrameType::headers && (flags_ & FrameFlag::priority) != 0;
  // A stream must not depend on itself (RFC 7540 §5.3.1). Other priorities are ignored.
  if (has_priority && read_u31(priority) == stream_) error_ = H2Error::protocol_error;
  return begin_content();
}

FrameReader::Progress FrameReader::begin_content() noexcept {
  const bool has_prefix = type_ != FrameType::continuation;
  const std::size_t around = has_prefix ? prefix_size() + padding_ : 0;
  left_ = content_ = length_ - static_cast<std::uint32_t>(around);
  first_ = true;
  state_ = State::content;
  return Progress::forward;
}

FrameReader::Progress FrameReader::read_content(Bytes& input, FrameEvent& event) noexcept {
  if (left_ != 0 && input.empty()) return Progress::blocked;
  event.bytes = input.first(std::min<std::size_t>(left_, input.size()));
  input = input.subspan(event.bytes.size());
  left_ -= static_cast<std::uint32_t>(event.bytes.size());
  event.first = first_;
  event.last = left_ == 0;
  event.error = error_;
  event.value = length_;
  event.content = content_;
  first_ = false;
  if (event.last) skip(padding_);
  return emit(type_ == FrameType::data ? FrameEvent::Kind::data : FrameEvent::Kind::block, event);
}

FrameReader::Progress FrameReader::read_small(const std::byte* bytes, FrameEvent& event) noexcept {
  skip(length_ - left_);
  switch (type_) {
    case FrameType::priority:
      if (read_u31(bytes) != stream_) return emit(FrameEvent::Kind::ignored, event);
      event.error = H2Error::protocol_error;
      return emit(FrameEvent::Kind::stream_error, event);
    case FrameType::rst_stream:
      event.value = read_u32(bytes);
      event.error = static_cast<H2Error>(event.value);
      return emit(FrameEvent::Kind::reset, event);
    case FrameType::window_update:
      event.value = read_u31(bytes);
      if (event.value != 0) return emit(FrameEvent::Kind::window_update, event);
      if (stream_ == 0) return fail(H2Error::protocol_error, event);
      event.error = H2Error::protocol_error;
      return emit(FrameEvent::Kind::stream_error, event);
    case FrameType::ping:
      event.bytes = Bytes(bytes, length_);
      return emit(FrameEvent::Kind::ping, event);
    case FrameType::goaway:
      event.value = read_u31(bytes);
      event.error = static_cast<H2Error>(read_u32(bytes + 4));
      return emit(FrameEvent::Kind::goaway, event);
    default:
      break;
  }
  assert(type_ == FrameType::priority_update);
  stream_ = read_u31(bytes);
  if (stream_ == 0) return fail(H2Error::protocol_error, event);
  event.bytes = Bytes(bytes, length_).subspan(4);
  return emit(FrameEvent::Kind::priority_update, event);
}

FrameReader::Progress FrameReader::read_settings(Bytes& input, FrameEvent& event) noexcept {
  if (left_ == 0) {
    state_ = State::header;
    return emit(FrameEvent::Kind::settings_end, event);
  }
  const std::byte* const bytes = take(input, setting_size);
  if (bytes == nullptr) return Progress::blocked;
  left_ -= static_cast<std::uint32_t>(setting_size);
  event.setting = static_cast<SettingId>(read_u16(bytes));
  event.value = read_u32(bytes + 2);
  return emit(FrameEvent::Kind::setting, event);
}

/// Skips `count` bytes; the next frame follows.
FrameReader::Progress FrameReader::skip(std::uint32_t count) noexcept {
  left_ = count;
  state_ = count == 0 ? State::header : State::skip;
  return Progress::forward;
}

FrameReader::Progress FrameReader::emit(FrameEvent::Kind kind, FrameEvent& event) const noexcept {
  event.kind = kind;
  event.type = type_;
  event.flags = flags_;
  event.stream = stream_;
  return Progress::event;
}

FrameReader::Progress FrameReader::ignore(FrameEvent& event) noexcept {
  skip(length_);
  return emit(FrameEvent::Kind::ignored, event);
}

FrameReader::Progress FrameReader::fail(H2Error error, FrameEvent& event) noexcept {
  state_ = State::failed;
  error_ = error;
  event.error = error;
  return emit(FrameEvent::Kind::connection_error, event);
}

DataFrames::DataFrames(Bytes front, std::uint32_t stream, Bytes body, bool ends) noexcept
    : ends_(ends) {
  assert(body.size() <= bytes_max);
  pieces_[0] = front;
  for (; !body.empty(); ++count_) {
    const Bytes payload = body.first(std::min<std::size_t>(body.size(), frame_payload_default));
    body = body.subspan(payload.size());
    const std::uint8_t flags = ends && body.empty() ? FrameFlag::end_stream : 0;
    char* const header = headers_[count_].data();
    write_frame_header({static_cast<std::uint32_t>(payload.size()), FrameType::data, flags, stream},
                       header);
    pieces_[2 * count_ + 1] = to_bytes(std::string_view(header, frame_header_size));
    pieces_[2 * count_ + 2] = payload;
  }
}

char* write_rst_stream(std::uint32_t stream, H2Error error, char* out) noexcept {
  out = write_frame_header({.length = 4, .type = FrameType::rst_stream, .stream = stream}, out);
  return write_u32(static_cast<std::uint32_t>(error), out);
}

char* write_settings(std::span<const Setting> settings, char* out) noexcept {
  const auto length = static_cast<std::uint32_t>(settings.size() * setting_size);
  out = write_frame_header({.length = length, .type = FrameType::settings}, out);
  for (const Setting& each : settings) {
    const auto id = static_cast<std::uint16_t>(each.id);
    *out++ = static_cast<char>(id >> 8);
    *out++ = static_cast<char>(id);
    out = write_u32(each.value, out);
  }
  return out;
}

char* write_settings_ack(char* out) noexcept {
  return write_frame_header({.type = FrameType::settings, .flags = FrameFlag::ack}, out);
}

char* write_ping(Bytes opaque, std::uint8_t flags, char* out) noexcept {
  assert(opaque.size() == 8);
  out = write_frame_header({.length = 8, .type = FrameType::ping, .flags = flags}, out);
  std::memcpy(out, opaque.data(), opaque.size());
  return out + opaque.size();
}

char* write_goaway(std::uint32_t last_stream, H2Error error, char* out) noexcept {
  out = write_frame_header({.length = goaway_fields_size, .type = FrameType::goaway}, out);
  return write_u32(static_cast<std::uint32_t>(error), write_u32(last_stream, out));
}

char* write_window_update(std::uint32_t stream, std::uint32_t increment, char* out) noexcept {
  assert(increment != 0 && increment <= stream_id_max);
  out = write_frame_header({.length = 4, .type = FrameType::window_update, .stream = stream}, out);
  return write_u32(increment, out);
}

char* write_priority_update(std::uint32_t stream, std::string_view value, char* out) noexcept {
  const auto length = static_cast<std::uint32_t>(4 + value.size());
  out = write_frame_header({.length = length, .type = FrameType::priority_update}, out);
  out = write_u32(stream, out);
  if (!value.empty()) std::memcpy(out, value.data(), value.size());
  return out + value.size();
}

}  // namespace weir::http
