// WebSocket frames: reading, masking and writing.
#include "weir/http/ws/detail/frame.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace weir::http {
namespace {

constexpr std::uint8_t final_bit = 0x80;
constexpr std::uint8_t compressed_bit = 0x40;  // RSV1 (RFC 7692 §6)
constexpr std::uint8_t mask_bit = 0x80;
constexpr std::uint8_t length_16 = 126;  // the 7 bits before a length of 16 bits
constexpr std::uint8_t length_64 = 127;  // the 7 bits before a length of 64 bits
constexpr std::uint64_t length_16_max = 0xFFFF;

bool is_control(WsOpcode opcode) noexcept {
  return opcode >= WsOpcode::close;
}
bool is_known(WsOpcode opcode) noexcept {
  return opcode <= WsOpcode::binary || (is_control(opcode) && opcode <= WsOpcode::pong);
}

std::uint64_t read_number(const std::byte* at, std::size_t size) noexcept {
  std::uint64_t number = 0;
  for (std::size_t index = 0; index < size; ++index) {
    number = number << 8 | std::to_integer<std::uint64_t>(at[index]);
  }
  return number;
}
char* write_number(std::uint64_t number, std::size_t size, char* out) noexcept {
  for (std::size_t shift = 8 * size; shift != 0; shift -= 8) {
    *out++ = static_cast<char>(number >> (shift - 8));
  }
  return out;
}

/// Combines blocks of `Words` words of 8 bytes with the key, as long as there are whole blocks. The
/// compiler makes vector instructions of a block, because it is loaded before it is stored.
template <std::size_t Words>
void mask_blocks(std::uint64_t key, Bytes& in, std::byte*& out) noexcept {
  constexpr std::size_t size = Words * sizeof(std::uint64_t);
  const std::byte* from = in.data();
  std::size_t left = in.size();
  for (; left >= size; left -= size, from += size, out += size) {
    std::uint64_t words[Words];
    std::memcpy(words, from, size);
    for (std::uint64_t& each : words) each ^= key;
    std::memcpy(out, words, size);
  }
  in = {from, left};
}

}  // namespace

WsMask::WsMask(WsMaskKey key) noexcept : key_(std::bit_cast<std::uint32_t>(key)) {}

void WsMask::apply(Bytes in, std::byte* out) noexcept {
  const std::uint64_t key = std::uint64_t{key_} << 32 | key_;
  mask_blocks<8>(key, in, out);
  mask_blocks<1>(key, in, out);
  if (in.size() >= sizeof key_) {
    std::uint32_t word;
    std::memcpy(&word, in.data(), sizeof word);
    word ^= key_;
    std::memcpy(out, &word, sizeof word);
    in = in.subspan(sizeof word);
    out += sizeof word;
  }
  const auto bytes = std::bit_cast<WsMaskKey>(key_);
  assert(in.size() < bytes.size());
  if (in.size() > 0) out[0] = in[0] ^ bytes[0];
  if (in.size() > 1) out[1] = in[1] ^ bytes[1];
  if (in.size() > 2) out[2] = in[2] ^ bytes[2];
  // Only the rest behind the last word moves the key.
  const int bits = static_cast<int>(8 * in.size() % 32);
  key_ = std::endian::native == std::endian::little ? std::rotr(key_, bits) : std::rotl(key_, bits);
}

/// Reads a message that is one frame of at most 125 bytes, if all bytes are in the input. Most
/// messages are such; step() would give the same event.
bool WsFrameReader::read_small(MutableBytes input, WsFrameEvent& event) noexcept {
  const bool masked = role_ == WsRole::server;
  const std::size_t header = masked ? 2 + sizeof(WsMaskKey) : 2;
  if (state_ != State::start || stored_size_ != 0 || within_message() || input.size() < header) {
    return false;
  }
  const auto first = std::to_integer<unsigned>(input[0]);
  const auto second = std::to_integer<unsigned>(input[1]);
  const std::size_t length = second & 0x7FU;
  const unsigned text = final_bit | static_cast<unsigned>(WsOpcode::text);
  if ((first != text && first != text + 1) || ((second & mask_bit) != 0) != masked ||
      length > ws_control_max || input.size() < header + length) {
    return false;
  }
  const MutableBytes payload = input.subspan(header, length);
  if (masked) {
    WsMaskKey key;
    std::memcpy(key.data(), input.data() + 2, key.size());
    WsMask(key).apply(payload, payload.data());
  }
  event.kind = WsFrameEvent::Kind::payload;
  event.opcode = first == text ? WsOpcode::text : WsOpcode::binary;
  event.first = event.last = event.begins = event.ends = true;
  event.length = length;
  event.consumed = header + length;
  event.bytes = payload;
  return true;
}

WsFrameEvent WsFrameReader::next(MutableBytes input) noexcept {
  WsFrameEvent event;
  if (read_small(input, event)) return event;
  MutableBytes rest = input;
  while (step(rest, event) == Progress::forward) {
  }
  event.consumed = input.size() - rest.size();
  return event;
}

/// Returns `count` bytes in one piece, or nullptr if the input ends before them. Bytes that arrive
/// in pieces are collected; only at most ws_control_max bytes may.
std::byte* WsFrameReader::take(MutableBytes& input, std::size_t count) noexcept {
  if (stored_size_ == 0 && input.size() >= count) [[likely]] {
    std::byte* const bytes = input.data();
    input = input.subspan(count);
    return bytes;
  }
  assert(count <= stored_.size() && stored_size_ < count);
  const std::size_t added = std::min(count - stored_size_, input.size());
  if (added != 0) std::memcpy(stored_.data() + stored_size_, input.data(), added);
  input = input.subspan(added);
  stored_size_ = static_cast<std::uint8_t>(stored_size_ + added);
  if (stored_size_ < count) return nullptr;
  stored_size_ = 0;
  return stored_.data();
}

/// Reads one part of a frame.
WsFrameReader::Progress WsFrameReader::step(MutableBytes& input, WsFrameEvent& event) noexcept {
  std::byte* bytes = nullptr;
  switch (state_) {
    case State::start:
      bytes = take(input, 2);
      return bytes != nullptr ? read_start(bytes, event) : Progress::blocked;
    case State::header:
      bytes = take(input, header_rest());
      return bytes != nullptr ? read_header_rest(bytes, event) : Progress::blocked;
    case State::payload:
      return read_payload(input, event);
    case State::control:
      bytes = take(input, length_);
      return bytes != nullptr ? read_control(bytes, event) : Progress::blocked;
    case State::failed:
      break;
  }
  return fail(event);
}

WsFrameReader::Progress WsFrameReader::read_start(const std::byte* bytes,
                                                  WsFrameEvent& event) noexcept {
  const auto first = std::to_integer<std::uint8_t>(bytes[0]);
  const auto second = std::to_integer<std::uint8_t>(bytes[1]);
  final_ = (first & final_bit) != 0;
  reserved_ = first >> 4 & 7;
  opcode_ = static_cast<WsOpcode>(first & 0x0F);
  length_code_ = second & 0x7F;
  if (!is_start_valid((second & mask_bit) != 0)) return fail(event);
  length_ = length_code_;
  if (header_rest() == 0) return begin_payload();
  state_ = State::header;
  return Progress::forward;
}

/// Returns true if the first two bytes of a header are allowed at this point.
bool WsFrameReader::is_start_valid(bool masked) const noexcept {
  const bool begins_message = opcode_ == WsOpcode::text || opcode_ == WsOpcode::binary;
  const std::uint8_t allowed = deflates_ && begins_message ? compressed_bit >> 4 : 0;
  if ((reserved_ & ~allowed) != 0 || !is_known(opcode_)) return false;
  // Clients mask all frames, and servers mask none (RFC 6455 §5.1).
  if (masked != (role_ == WsRole::server)) return false;
  if (is_control(opcode_)) return final_ && length_code_ <= ws_control_max;
  return (opcode_ == WsOpcode::continuation) == within_message();
}

/// Returns the size of the header behind its first two bytes.
std::size_t WsFrameReader::header_rest() const noexcept {
  const std::size_t length = length_code_ == length_64 ? 8 : length_code_ == length_16 ? 2 : 0;
  return length + (role_ == WsRole::server ? sizeof(WsMaskKey) : 0);
}

WsFrameReader::Progress WsFrameReader::read_header_rest(const std::byte* bytes,
                                                        WsFrameEvent& event) noexcept {
  if (length_code_ >= length_16) {
    const bool is_long = length_code_ == length_64;
    const std::size_t size = is_long ? 8 : 2;
    length_ = read_number(bytes, size);
    bytes += size;
    // The shortest encoding is required, and the highest bit of 64 is 0 (RFC 6455 §5.2).
    if (length_ >> 63 != 0 || length_ <= (is_long ? length_16_max : ws_control_max)) {
      return fail(event);
    }
  }
  if (role_ == WsRole::server) {
    WsMaskKey key;
    std::memcpy(key.data(), bytes, key.size());
    mask_ = WsMask(key);
  }
  return begin_payload();
}

WsFrameReader::Progress WsFrameReader::begin_payload() noexcept {
  if (is_control(opcode_)) {
    state_ = State::control;
    return Progress::forward;
  }
  begins_ = opcode_ != WsOpcode::continuation;
  if (begins_) {
    message_ = opcode_;
    compressed_ = reserved_ != 0;
  }
  left_ = length_;
  first_ = true;
  state_ = State::payload;
  return Progress::forward;
}

WsFrameReader::Progress WsFrameReader::read_payload(MutableBytes& input,
                                                    WsFrameEvent& event) noexcept {
  if (input.empty() && !first_) return Progress::blocked;
  const MutableBytes part =
      input.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size())));
  if (role_ == WsRole::server) mask_.apply(part, part.data());
  input = input.subspan(part.size());
  left_ -= part.size();
  event.kind = WsFrameEvent::Kind::payload;
  event.opcode = message_;
  event.first = first_;
  event.last = left_ == 0;
  event.begins = begins_;
  event.ends = final_;
  event.compressed = compressed_;
  event.length = length_;
  event.bytes = part;
  first_ = false;
  if (event.last) {
    state_ = State::start;
    if (final_) message_ = WsOpcode::continuation;
  }
  return Progress::event;
}

WsFrameReader::Progress WsFrameReader::read_control(std::byte* bytes,
                                                    WsFrameEvent& event) noexcept {
  const Bytes payload(bytes, static_cast<std::size_t>(length_));
  if (role_ == WsRole::server) mask_.apply(payload, bytes);
  event.kind = WsFrameEvent::Kind::control;
  event.opcode = opcode_;
  event.first = event.last = true;
  event.length = length_;
  event.bytes = payload;
  state_ = State::start;
  return Progress::event;
}

WsFrameReader::Progress WsFrameReader::fail(WsFrameEvent& event) noexcept {
  state_ = State::failed;
  event.kind = WsFrameEvent::Kind::error;
  return Progress::event;
}

char* write_ws_header(const WsFrameHeader& header, char* out) noexcept {
  assert(header.length >> 63 == 0);
  const auto opcode = static_cast<std::uint8_t>(header.opcode);
  *out++ = static_cast<char>((header.final ? final_bit : 0) |
                             (header.compressed ? compressed_bit : 0) | opcode);
  const std::uint8_t masked = header.mask ? mask_bit : 0;
  if (header.length <= ws_control_max) {
    *out++ = static_cast<char>(masked | header.length);
  } else if (header.length <= length_16_max) {
    *out++ = static_cast<char>(masked | length_16);
    out = write_number(header.length, 2, out);
  } else {
    *out++ = static_cast<char>(masked | length_64);
    out = write_number(header.length, 8, out);
  }
  if (!header.mask) return out;
  std::memcpy(out, header.mask->data(), header.mask->size());
  return out + header.mask->size();
}

char* write_ws_control(WsOpcode opcode, Bytes payload, const std::optional<WsMaskKey>& mask,
                       char* out) noexcept {
  assert(is_control(opcode) && payload.size() <= ws_control_max);
  out = write_ws_header({opcode, true, payload.size(), mask}, out);
  WsMask(mask.value_or(WsMaskKey{})).apply(payload, reinterpret_cast<std::byte*>(out));
  return out + payload.size();
}

}  // namespace weir::http
