// Escaping and truncation of text for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace weir {

/// Returns the text with & < > " ' as character references, safe between tags and inside quoted
/// attributes. Invalid UTF-8 and characters that are not printable become U+FFFD, except for the
/// line feed and the tab. XML forbids control characters; others change the direction of the text.
std::string escape_html(std::string_view text);

/// Returns the first `characters_max` characters (not bytes) of UTF-8. The last of them is an
/// ellipsis if text was cut off.
std::string truncate_utf8(std::string_view text, std::size_t characters_max);

}  // namespace weir
