// Writes messages of Protocol Buffers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

/// Appends the fields of one message in the wire format of Protocol Buffers. Like proto3, it leaves
/// out a field whose value is the default, except in repeated fields and nested messages. The wire
/// format is defined at https://protobuf.dev/programming-guides/encoding.
/// Errors: throws std::bad_alloc.
/// Threads: one at a time.
class ProtobufWriter {
 public:
  const std::string& bytes() const noexcept { return bytes_; }
  void clear() noexcept { bytes_.clear(); }

  /// Appends an unsigned integer, a bool or an enum.
  void add(std::uint32_t field, std::uint64_t value) {
    if (value != 0) add_always(field, value);
  }
  /// Appends an int64 or int32.
  void add_signed(std::uint32_t field, std::int64_t value) {
    add(field, static_cast<std::uint64_t>(value));
  }
  /// Appends a sint64 or sint32.
  void add_zigzag(std::uint32_t field, std::int64_t value) { add(field, zigzag(value)); }
  void add_fixed64(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    append_tag(field, WireType::fixed64);
    append_fixed64(value);
  }
  void add_fixed32(std::uint32_t field, std::uint32_t value) {
    if (value == 0) return;
    append_tag(field, WireType::fixed32);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(value >> shift);
  }
  void add(std::uint32_t field, double value) {
    add_fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  /// Appends a string or bytes.
  void add(std::uint32_t field, std::string_view value) {
    if (!value.empty()) add_always(field, value);
  }
  /// Appends a nested message.
  void add(std::uint32_t field, const ProtobufWriter& message) {
    add_always(field, message.bytes());
  }

  /// Appends a value of a repeated field or of a oneof, also if it is the default.
  void add_always(std::uint32_t field, std::uint64_t value) {
    append_tag(field, WireType::varint);
    append_varint(value);
  }
  void add_always(std::uint32_t field, double value) {
    append_tag(field, WireType::fixed64);
    append_fixed64(std::bit_cast<std::uint64_t>(value));
  }
  void add_always(std::uint32_t field, std::string_view value) {
    append_tag(field, WireType::bytes);
    append_varint(value.size());
    bytes_ += value;
  }

  /// Appends a number without a tag: a value of a packed field, or the size of a message that
  /// follows in a stream of messages.
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void append_zigzag(std::int64_t value) { append_varint(zigzag(value)); }
  void append_fixed64(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
  }

 private:
  enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  static std::uint64_t zigzag(std::int64_t value) noexcept {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void append_tag(std::uint32_t field, WireType type) {
    append_varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type));
  }

  std::string bytes_;
};

}  // namespace weir::detail
