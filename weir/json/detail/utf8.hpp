// UTF-8 (RFC 3629): whether bytes are, and the bytes of a code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::json::detail {

/// How many bytes the sequence at `position` has, 1 to 4; 0 if it is none: overlong, cut off at
/// `end`, a surrogate or beyond U+10FFFF. There is at least one byte.
std::size_t utf8_length(const char* position, const char* end) noexcept;

/// Writes the UTF-8 of a code point that is no surrogate and at most U+10FFFF; returns its end.
char* put_utf8(char* out, std::uint32_t code_point) noexcept;

}  // namespace weir::json::detail
