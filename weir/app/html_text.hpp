// Text that stands in HTML or SVG, whatever it says.
#pragma once

#include <string>
#include <string_view>

namespace weir::drawing {

/// The text with & < > " ' as character references, so that it is text between tags and inside
/// quoted attributes; control characters, which XML forbids, and broken UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

/// The first `characters_max` characters (not bytes) of UTF-8, the last of them an ellipsis if any
/// are left out.
std::string shortened(std::string_view text, std::size_t characters_max);

}  // namespace weir::drawing
