#include "weir/http/detail/h2/huffman.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::size_t symbol_count = 257;
constexpr std::uint16_t end_of_string = 256;
constexpr unsigned length_max = 30;

/// The lengths of the codes in RFC 7541 appendix B. The codes follow from them, because the code is
/// canonical: codes of one length are consecutive numbers in the order of their symbols, and
/// continue those of the shorter lengths.
constexpr std::array<std::uint8_t, symbol_count> lengths{
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,  // 0x00
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,  // 0x10
    6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,   // ' '
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10,  // '0'
    13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,   // '@'
    7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,   // 'P'
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,   // '`'
    6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28,  // 'p'
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,  // 0x80
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,  // 0x90
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,  // 0xa0
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,  // 0xb0
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,  // 0xc0
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,  // 0xd0
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,  // 0xe0
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,  // 0xf0
    30,                                                              // EOS
};

/// The codes of one length.
struct LengthRow {
  std::uint32_t first = 0;        ///< the first code
  std::uint32_t end = 0;          ///< the number after the last code
  std::uint16_t first_index = 0;  ///< the index of the first code's symbol in `symbols`
};

/// The code by symbol, and its symbols by code.
struct Code {
  std::array<std::uint32_t, symbol_count> codes{};
  std::array<std::uint16_t, symbol_count> symbols{};  ///< in the order of their codes
  std::array<LengthRow, length_max + 1> rows{};
};

consteval Code make_code() {
  Code code;
  std::uint32_t next = 0;
  std::uint16_t index = 0;
  for (unsigned length = 1; length <= length_max; ++length) {
    next <<= 1;
    LengthRow& row = code.rows[length];
    row.first = next;
    row.first_index = index;
    for (std::uint16_t symbol = 0; symbol < symbol_count; ++symbol) {
      if (lengths[symbol] != length) continue;
      code.codes[symbol] = next++;
      code.symbols[index++] = symbol;
    }
    row.end = next;
  }
  return code;
}

constexpr Code code = make_code();
static_assert(code.rows[length_max].end == 1U << length_max, "the code is complete");
static_assert(code.codes[end_of_string] == 0x3fffffff);

/// One step of the decoder: the symbols whose codes are complete in `window_bits` bits.
struct Step {
  std::array<char, 2> symbols{};
  std::uint8_t count = 0;  ///< 0: the first code is longer
  std::uint8_t bits = 0;   ///< the length of these codes
};

constexpr unsigned window_bits = 12;

consteval std::array<Step, 1U << window_bits> make_steps() {
  std::array<Step, 1U << window_bits> steps{};
  const auto fill = [&steps](std::uint32_t bits, const Step& step) {
    const unsigned unused = window_bits - step.bits;
    for (std::uint32_t low = 0; low < 1U << unused; ++low) steps[bits << unused | low] = step;
  };
  const std::size_t short_count = code.rows[window_bits].first_index +
                                  (code.rows[window_bits].end - code.rows[window_bits].first);
  for (std::size_t index = 0; index < short_count; ++index) {
    const std::uint16_t first = code.symbols[index];
    const unsigned first_length = lengths[first];
    fill(code.codes[first],
         {{static_cast<char>(first)}, 1, static_cast<std::uint8_t>(first_length)});
    for (std::size_t second_index = 0; second_index < short_count; ++second_index) {
      const std::uint16_t second = code.symbols[second_index];
      const unsigned length = first_length + lengths[second];
      if (length > window_bits) break;
      fill(code.codes[first] << lengths[second] | code.codes[second],
           {{static_cast<char>(first), static_cast<char>(second)},
            2,
            static_cast<std::uint8_t>(length)});
    }
  }
  return steps;
}

constexpr std::array<Step, 1U << window_bits> steps = make_steps();
static_assert(sizeof(steps) == 16 * 1024);

/// Returns the symbol whose code begins `window`, 32 bits of the input.
std::uint16_t first_symbol(std::uint32_t window) noexcept {
  const Step& step = steps[window >> (32 - window_bits)];
  if (step.count != 0) return static_cast<unsigned char>(step.symbols[0]);
  unsigned length = window_bits + 1;
  while (window >> (32 - length) >= code.rows[length].end) ++length;
  const LengthRow& row = code.rows[length];
  return code.symbols[row.first_index + (window >> (32 - length)) - row.first];
}

/// The bits of a code that are next, the first one highest.
class BitReader {
 public:
  explicit BitReader(Bytes input) noexcept
      : position_(input.data()), end_(input.data() + input.size()) {}

  /// Reads input until at least 56 bits are available or the input ends.
  [[gnu::always_inline]] void refill() noexcept {
    if (end_ - position_ >= 8) [[likely]] {
      std::uint64_t word;
      std::memcpy(&word, position_, sizeof(word));
      if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
      bits_ |= word >> count_;
      position_ += (63 - count_) / 8;
      count_ |= 56;
      return;
    }
    for (; count_ <= 56 && position_ != end_; count_ += 8, ++position_) {
      bits_ |= std::to_integer<std::uint64_t>(*position_) << (56 - count_);
    }
  }
  unsigned count() const noexcept { return count_; }
  /// Returns the next 32 bits; zeros follow the end of the input.
  std::uint32_t window() const noexcept { return static_cast<std::uint32_t>(bits_ >> 32); }
  void consume(unsigned count) noexcept {
    bits_ <<= count;
    count_ -= count;
  }

 private:
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;  ///< the number of valid bits
  const std::byte* position_;
  const std::byte* end_;
};

template <LetterCase letters>
[[gnu::always_inline]] inline std::size_t symbol_of(char character) noexcept {
  return static_cast<unsigned char>(letters == LetterCase::lower ? to_lower(character) : character);
}

template <LetterCase letters>
std::size_t size_of(std::string_view text) noexcept {
  std::size_t bits = 0;
  for (const char each : text) bits += lengths[symbol_of<letters>(each)];
  return (bits + 7) / 8;
}

template <LetterCase letters>
char* encode(std::string_view text, char* out) noexcept {
  std::uint64_t bits = 0;  // the lowest `count` bits are not written yet
  unsigned count = 0;
  for (const char each : text) {
    const std::size_t symbol = symbol_of<letters>(each);
    bits = bits << lengths[symbol] | code.codes[symbol];
    count += lengths[symbol];
    if (count < 32) continue;
    count -= 32;
    auto word = static_cast<std::uint32_t>(bits >> count);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap32(word);
    std::memcpy(out, &word, sizeof(word));
    out += sizeof(word);
  }
  for (; count >= 8; *out++ = static_cast<char>(bits >> count)) count -= 8;
  if (count != 0) *out++ = static_cast<char>(bits << (8 - count) | 0xffU >> count);
  return out;
}

}  // namespace

std::size_t huffman_size(std::string_view text, LetterCase letters) noexcept {
  return letters == LetterCase::lower ? size_of<LetterCase::lower>(text)
                                      : size_of<LetterCase::unchanged>(text);
}

char* huffman_encode(std::string_view text, char* out, LetterCase letters) noexcept {
  return letters == LetterCase::lower ? encode<LetterCase::lower>(text, out)
                                      : encode<LetterCase::unchanged>(text, out);
}

HuffmanText huffman_decode(Bytes input, std::span<char> room) noexcept {
  using Kind = HuffmanText::Kind;
  constexpr unsigned steps_per_refill = 4;  // 48 of 56 bits
  constexpr std::ptrdiff_t step_room = 2 * steps_per_refill;
  BitReader reader(input);
  char* out = room.data();
  char* const end = out + room.size();
  while (true) {
    reader.refill();
    if (reader.count() >= steps_per_refill * window_bits && end - out >= step_room) {
      const char* const start = out;
      for (unsigned index = 0; index < steps_per_refill; ++index) {
        const Step& step = steps[reader.window() >> (32 - window_bits)];
        std::memcpy(out, step.symbols.data(), step.symbols.size());
        out += step.count;
        reader.consume(step.bits);
      }
      if (out != start) continue;
    }
    const std::uint32_t ones = reader.count() < 32 ? 0xffff'ffffU >> reader.count() : 0;
    const std::uint32_t window = reader.window() | ones;
    const std::uint16_t symbol = first_symbol(window);
    if (lengths[symbol] > reader.count()) {  // the rest is padding
      if (reader.count() >= 8 || window != 0xffff'ffffU) return {Kind::invalid};
      return {Kind::complete, static_cast<std::size_t>(out - room.data())};
    }
    if (symbol == end_of_string) return {Kind::invalid};
    if (out == end) return {Kind::no_room};
    *out++ = static_cast<char>(symbol);
    reader.consume(lengths[symbol]);
  }
}

}  // namespace weir::http
