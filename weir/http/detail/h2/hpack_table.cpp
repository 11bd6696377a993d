#include "weir/http/detail/h2/hpack_table.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace weir::http {
namespace {

constexpr std::uint32_t capacity_min = 512;

/// Copies a text that may overlap `out`. Returns the end of the copy.
char* append_moved(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memmove(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

void HpackTable::evict_oldest() noexcept {
  const Record& oldest = record(0);
  const auto bytes = static_cast<std::uint16_t>(oldest.name_size + oldest.value_size);
  state_.begin = static_cast<std::uint16_t>(state_.begin + bytes);
  state_.size = static_cast<std::uint16_t>(state_.size - bytes - hpack_field_overhead);
  ++state_.evicted;
  if (--state_.count == 0) clear();
}

void HpackTable::clear() noexcept {
  state_.begin = state_.end = state_.evicted = state_.count = state_.size = 0;
}

void HpackTable::set_size_max(std::uint32_t size_max) noexcept {
  assert(size_max <= size_max_limit);
  state_.size_max = static_cast<std::uint16_t>(size_max);
  while (state_.size > size_max) evict_oldest();
  if (state_.count != 0) return;
  BlockPool::release(std::exchange(block_, nullptr));
  state_.capacity = 0;
}

/// Returns the bytes that the fields need in a block without gaps.
std::uint32_t HpackTable::live_bytes() const noexcept {
  return static_cast<std::uint32_t>(state_.end - state_.begin + state_.count * sizeof(Record));
}

/// Returns true if a field with a text of `bytes` bytes fits between the texts and the records.
bool HpackTable::has_room(std::size_t bytes) const noexcept {
  const std::size_t records = (state_.evicted + state_.count + std::size_t{1}) * sizeof(Record);
  return state_.end + bytes + records <= state_.capacity;
}

/// Moves the fields to the start of the block, or to a larger one if little room would be left.
/// The next moves of fields are then some insertions away.
void HpackTable::make_room(std::size_t bytes) {
  const std::size_t needed = live_bytes() + bytes + sizeof(Record);
  const std::size_t wanted = std::min<std::size_t>(needed + needed / 4, memory_max);
  char* target = block_;
  std::uint32_t capacity = state_.capacity;
  if (capacity < wanted) {
    capacity = std::max(std::bit_ceil(static_cast<std::uint32_t>(wanted)), capacity_min);
    target = static_cast<char*>(BlockPool::allocate(capacity));
  }
  const auto records = static_cast<std::size_t>(state_.count) * sizeof(Record);
  if (state_.count != 0) {
    std::memmove(target, block_ + state_.begin,
                 static_cast<std::size_t>(state_.end - state_.begin));
    std::memmove(target + capacity - records, &record(state_.count - 1U), records);
  }
  if (target != block_) BlockPool::release(std::exchange(block_, target));
  const std::uint16_t moved = std::exchange(state_.begin, std::uint16_t{0});
  state_.end = static_cast<std::uint16_t>(state_.end - moved);
  state_.evicted = 0;
  state_.capacity = static_cast<std::uint16_t>(capacity);
  for (std::uint32_t age = 0; age < state_.count; ++age) {
    record(age).offset = static_cast<std::uint16_t>(record(age).offset - moved);
  }
}

void HpackTable::append(std::string_view name, std::string_view value) noexcept {
  char* const start = block_ + state_.end;
  const char* const end = append_moved(append_moved(start, name), value);
  record(state_.count) = {state_.end, static_cast<std::uint16_t>(name.size()),
                          static_cast<std::uint16_t>(value.size())};
  state_.end = static_cast<std::uint16_t>(end - block_);
  state_.size = static_cast<std::uint16_t>(state_.size + hpack_size({name, value}));
  ++state_.count;
}

bool HpackTable::insert(std::string_view name, std::string_view value) {
  const std::uint64_t size = hpack_size({name, value});
  if (size > state_.size_max) {
    clear();
    return false;
  }
  while (state_.size + size > state_.size_max) evict_oldest();
  const std::size_t bytes = name.size() + value.size();
  if (has_room(bytes)) {
    append(name, value);
  } else {  // the name may be in a part of the block that is overwritten
    std::array<char, size_max_limit> copy;
    append_moved(copy.data(), name);
    make_room(bytes);
    append({copy.data(), name.size()}, value);
  }
  return true;
}

}  // namespace weir::http
