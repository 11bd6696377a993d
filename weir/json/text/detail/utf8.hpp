// UTF-8 (RFC 3629): checks byte sequences and encodes code points.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::json::detail {

/// Returns the length in bytes of the sequence at `position`, from 1 to 4. It returns 0 if the
/// sequence is invalid: overlong, cut off at `end`, a surrogate or beyond U+10FFFF. There is at
/// least one byte before `end`.
std::size_t utf8_length(const char* position, const char* end) noexcept;

/// Writes the UTF-8 of a code point that is not a surrogate and at most U+10FFFF. Returns its
/// end.
char* put_utf8(char* out, std::uint32_t code_point) noexcept;

}  // namespace weir::json::detail
