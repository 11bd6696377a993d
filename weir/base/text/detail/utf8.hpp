// UTF-8 (RFC 3629): checks byte sequences and encodes code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

/// Returns the length in bytes of the sequence at `position`, from 1 to 4. It returns 0 if the
/// sequence is invalid: overlong, cut off at `end`, a surrogate or beyond U+10FFFF. There is at
/// least one byte before `end`.
std::size_t utf8_length(const char* position, const char* end) noexcept;

/// A Utf8Checker checks text that arrives in pieces, which may split characters.
class Utf8Checker {
 public:
  /// Checks the next piece.
  /// Returns: the number of bytes before the first byte that no valid text has at this point;
  /// piece.size() if there is none. The checker cannot be used after a smaller number.
  std::size_t check(std::string_view piece) noexcept;
  /// Returns true if the text may end here: it does not end within a character.
  bool complete() const noexcept { return left_ == 0; }

 private:
  bool step(unsigned char byte) noexcept;
  bool begin(unsigned char lead) noexcept;

  std::uint8_t left_ = 0;  // bytes of the open character that have not arrived
  // The range of the next byte of the open character.
  std::uint8_t first_ = 0;
  std::uint8_t last_ = 0;
};

/// Writes the UTF-8 of a code point that is not a surrogate and at most U+10FFFF. Returns its
/// end.
char* put_utf8(char* out, std::uint32_t code_point) noexcept;

}  // namespace weir
