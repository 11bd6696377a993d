#include "weir/http/detail/h2/hpack_decoder.hpp"

#include <limits>

#include "weir/http/detail/h2/huffman.hpp"

namespace weir::http {

/// Reads an integer whose first byte is at the position (RFC 7541 §5.1). It has at most five more
/// bytes and fits 32 bits.
/// Returns: false if the integer is larger or the block ends in its middle.
[[gnu::always_inline]] inline bool HpackDecoder::read_integer(unsigned prefix_bits,
                                                              std::uint32_t& value) noexcept {
  const std::uint32_t prefix = (1U << prefix_bits) - 1;
  value = std::to_integer<std::uint32_t>(*position_++) & prefix;
  if (value != prefix) [[likely]]
    return true;
  std::uint64_t sum = value;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (position_ == end_) return false;
    const auto byte = std::to_integer<std::uint64_t>(*position_++);
    sum += (byte & 0x7fU) << shift;
    if ((byte & 0x80U) != 0) continue;
    value = static_cast<std::uint32_t>(sum);
    return sum <= std::numeric_limits<std::uint32_t>::max();
  }
  return false;
}

/// Reads a string literal (RFC 7541 §5.2). A Huffman code is decoded to `room`, which shrinks.
HpackDecoder::Text HpackDecoder::read_text(std::span<char>& room, std::string_view& text) noexcept {
  if (position_ == end_) return Text::invalid;
  const bool huffman = (*position_ & std::byte{0x80}) != std::byte{0};
  std::uint32_t size = 0;
  if (!read_integer(7, size) || size > static_cast<std::size_t>(end_ - position_)) {
    return Text::invalid;
  }
  const Bytes bytes(position_, size);
  position_ += size;
  if (!huffman) {
    text = to_text(bytes);
    return Text::complete;
  }
  const HuffmanText decoded = huffman_decode(bytes, room);
  if (decoded.kind == HuffmanText::Kind::invalid) return Text::invalid;
  if (decoded.kind == HuffmanText::Kind::no_room) return Text::too_long;
  text = {room.data(), decoded.size};
  room = room.subspan(decoded.size);
  return Text::complete;
}

/// Finds the field at an index of both tables (RFC 7541 §2.3.3). Returns false if there is none.
bool HpackDecoder::find(std::uint32_t index, Field& field) const noexcept {
  constexpr auto static_count = static_cast<std::uint32_t>(hpack_static_fields.size());
  if (index == 0) return false;
  if (index <= static_count) {
    const HeaderField& found = hpack_static_fields[index - 1];
    field = {found.name, found.value, static_cast<std::uint8_t>(index), false};
    return true;
  }
  if (index - static_count > table_.count()) return false;
  const HeaderField found = table_[index - static_count - 1];
  field = {found.name, found.value, 0, false};
  return true;
}

/// Reads an indexed field (RFC 7541 §6.1).
[[gnu::always_inline]] inline bool HpackDecoder::read_indexed() noexcept {
  std::uint32_t index = 0;
  if (!read_integer(7, index) || !find(index, field_)) return false;
  list_bytes_ += hpack_size({field_.name, field_.value});
  return true;
}

/// Reads a literal field (RFC 7541 §6.2). An index of 0 says that the name is a literal, too.
bool HpackDecoder::read_literal(unsigned prefix_bits, Indexing indexing) {
  if (indexing == Indexing::incremental) changed_table_ = true;
  std::uint32_t index = 0;
  std::span<char> room = scratch_;
  Text name = Text::complete;
  field_ = {};
  if (!read_integer(prefix_bits, index)) return false;
  if (index != 0 && !find(index, field_)) return false;
  if (index == 0) name = read_text(room, field_.name);
  if (name == Text::invalid) return false;
  const Text value = read_text(room, field_.value);
  if (value == Text::invalid) return false;
  if (name == Text::too_long || value == Text::too_long) {
    list_bytes_ += scratch_.size() + 1;
    // The scratch memory, and so the field, is at least as large as the table.
    if (indexing == Indexing::incremental) table_.clear();
    return true;
  }
  list_bytes_ += hpack_size({field_.name, field_.value});
  if (indexing == Indexing::incremental && table_.insert(field_.name, field_.value)) {
    field_.name = table_[0].name;  // the old name may have been evicted
  }
  return true;
}

/// Reads a dynamic table size update (RFC 7541 §6.3).
bool HpackDecoder::read_size_update() noexcept {
  changed_table_ = true;
  std::uint32_t size_max = 0;
  if (started_ || !read_integer(5, size_max) || size_max > HpackTable::size_max_limit) return false;
  table_.set_size_max(size_max);
  return true;
}

HpackDecoder::Step HpackDecoder::next() {
  while (position_ != end_) {
    const auto first = std::to_integer<unsigned>(*position_);
    if (first >> 5 == 1) {
      if (!read_size_update()) return Step::error;
      continue;
    }
    started_ = true;
    if ((first & 0x80) != 0) {
      if (!read_indexed()) return Step::error;
    } else if ((first & 0x40) != 0) {
      if (!read_literal(6, Indexing::incremental)) return Step::error;
    } else {
      if (!read_literal(4, Indexing::none)) return Step::error;
      field_.never_indexed = (first & 0x10) != 0;
    }
    if (!exceeded()) return Step::field;
  }
  return Step::end;
}

}  // namespace weir::http
