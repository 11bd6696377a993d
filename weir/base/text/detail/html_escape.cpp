// Escapes and truncates UTF-8 text for HTML and SVG.
#include "weir/base/text/detail/html_escape.hpp"

#include <cstddef>

#include "weir/base/text/detail/printable.hpp"
#include "weir/base/text/detail/utf8.hpp"

namespace weir {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// Returns the size in bytes of the well-formed character at the start of `text`, or 0 if there is
/// none.
std::size_t character_size(std::string_view text) {
  return utf8_length(text.data(), text.data() + text.size());
}

void append_escaped(std::string& out, std::string_view character) {
  const char first = character.front();
  switch (first) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&#39;";
      return;
    default:
      break;
  }
  const bool space = first == '\n' || first == '\t';
  out += space || printable_prefix(character) == character.size() ? character : replacement;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) {
      out += replacement;
      text.remove_prefix(1);
    } else {
      append_escaped(out, text.substr(0, size));
      text.remove_prefix(size);
    }
  }
  return out;
}

std::string truncate_utf8(std::string_view text, std::size_t characters_max) {
  std::size_t end = 0;
  std::size_t last = 0;
  for (std::size_t count = 0; end < text.size(); ++count) {
    if (count == characters_max) return std::string(text.substr(0, last)) + "\xE2\x80\xA6";
    last = end;
    const std::size_t size = character_size(text.substr(end));
    end += size == 0 ? 1 : size;
  }
  return std::string(text);
}

}  // namespace weir
