// Blocks of HPACK as text, and their fields.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/test/text_field.hpp"

namespace weir::http {

/// Returns the bytes of hexadecimal digits. Spaces are ignored.
inline std::string from_hex(std::string_view digits) {
  std::string bytes;
  int high = -1;
  for (const char each : digits) {
    const int value = hex_value(each);
    if (value < 0) continue;
    if (high >= 0) bytes += static_cast<char>(high * 16 + value);
    high = high >= 0 ? -1 : value;
  }
  return bytes;
}

/// Returns a block of literals without indexes and Huffman codes, whose bytes are those of
/// `fields`.
inline std::string literal_block(const std::vector<TextField>& fields) {
  std::string block;
  const auto add = [&block](std::string_view text) {
    constexpr std::size_t prefix = 127;
    block += static_cast<char>(std::min(text.size(), prefix));
    if (text.size() >= prefix) {
      std::size_t rest = text.size() - prefix;
      for (; rest >= 128; rest >>= 7) block += static_cast<char>(rest | 128U);
      block += static_cast<char>(rest);
    }
    block += text;
  };
  for (const TextField& each : fields) {
    block += each.never_indexed ? '\x10' : '\0';
    add(each.name);
    add(each.value);
  }
  return block;
}

/// The result of decoding one block.
struct DecodedBlock {
  HpackDecoder::Step end = HpackDecoder::Step::end;
  bool exceeded = false;
  std::uint64_t list_bytes = 0;
  std::vector<TextField> fields;
};

/// Decodes a copy of exactly these bytes, so that the address sanitizer detects an overrun.
inline DecodedBlock decode_block(HpackTable& table, std::string_view block,
                                 std::uint32_t list_bytes_max = 64 * 1024) {
  const std::vector<char> input(block.begin(), block.end());
  const std::size_t scratch_size = HpackDecoder::scratch_size(list_bytes_max);
  const std::unique_ptr<char[]> scratch(new char[scratch_size]);
  HpackDecoder decoder(table, to_bytes({input.data(), input.size()}), list_bytes_max,
                       {scratch.get(), scratch_size});
  DecodedBlock decoded;
  while ((decoded.end = decoder.next()) == HpackDecoder::Step::field) {
    const HpackDecoder::Field& field = decoder.field();
    if (field.static_index != 0) {
      EXPECT_EQ(hpack_static_fields.at(field.static_index - 1U).name, field.name);
    }
    decoded.fields.push_back(
        {std::string(field.name), std::string(field.value), field.never_indexed});
  }
  decoded.exceeded = decoder.exceeded();
  decoded.list_bytes = decoder.list_bytes();
  return decoded;
}

}  // namespace weir::http
