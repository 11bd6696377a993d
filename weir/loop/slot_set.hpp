// A set of small numbers that gives its smallest one at once.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir {

/// Numbers below `size`. Two bits are looked at or written, however many there are.
class SlotSet {
 public:
  static constexpr unsigned size = 1024;

  bool empty() const noexcept { return words_in_use_ == 0; }
  bool contains(unsigned slot) const noexcept {
    return (words_[slot / word_bits] & bit_of(slot % word_bits)) != 0;
  }
  void insert(unsigned slot) noexcept {
    words_[slot / word_bits] |= bit_of(slot % word_bits);
    words_in_use_ |= bit_of(slot / word_bits);
  }
  void erase(unsigned slot) noexcept {
    std::uint64_t& word = words_[slot / word_bits];
    word &= ~bit_of(slot % word_bits);
    if (word == 0) words_in_use_ &= ~bit_of(slot / word_bits);
  }
  /// The smallest. It is not empty.
  unsigned first() const noexcept {
    const auto word = static_cast<unsigned>(std::countr_zero(words_in_use_));
    return word * word_bits + static_cast<unsigned>(std::countr_zero(words_[word]));
  }

 private:
  static constexpr unsigned word_bits = 64;
  static_assert(size <= word_bits * word_bits);
  static constexpr std::uint64_t bit_of(unsigned place) noexcept {
    return std::uint64_t{1} << place;
  }

  std::uint64_t words_in_use_ = 0;  // one bit a word
  std::array<std::uint64_t, size / word_bits> words_{};
};

}  // namespace weir
