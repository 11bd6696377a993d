// Printable text: what may stand in a line of a log or a page without a change of the text around
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

/// Returns true if a terminal, an editor or a browser shows the code point in its place and changes
/// nothing else. It is false for control characters (C0, DEL, C1), line and paragraph separators,
/// characters that change the direction of text, noncharacters, surrogates, and invisible
/// characters. U+200C and U+200D are true: scripts and emoji need them.
bool is_printable(std::uint32_t code_point) noexcept;

/// Returns the number of bytes before the first byte of `text` that is not part of a printable
/// character in UTF-8; text.size() if there is none.
std::size_t printable_prefix(std::string_view text) noexcept;

/// Returns the text with each byte that is not part of a printable character as \xNN, with two
/// digits in lower case. Printable text does not change, so the function can be applied again.
std::string to_printable(std::string_view text);

/// Returns the text in the same form, with its line feeds as they are, for a format that escapes
/// them itself.
std::string to_printable_lines(std::string_view text);

/// Returns a text in JSON in which each character that is not printable is an escape, \uNNNN. Such
/// characters occur only in strings. Requires valid UTF-8 without raw control characters below
/// U+0020.
std::string to_printable_json(std::string json);

}  // namespace weir
