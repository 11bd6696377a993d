// Where a regular expression inside a pattern ends and how many groups it has, for the compiler.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::http {

/// What can be told of an expression without RE2; adding the route makes sure that RE2 agrees.
struct ExpressionText {
  std::size_t length = 0;
  std::size_t groups = 0;  ///< that capture
  bool closed = false;     ///< its '}' was found, behind `length` bytes
};

namespace detail {

/// The length of a character class of RE2 at the start of `text`, which is '['; 0 if it is open.
constexpr std::size_t class_length(std::string_view text) noexcept {
  std::size_t index = 1;
  if (text.substr(index).starts_with('^')) ++index;
  if (text.substr(index).starts_with(']')) ++index;  // a first ']' is a member
  while (index < text.size() && text[index] != ']') {
    if (text[index] == '\\') {
      ++index;
    } else if (text.substr(index).starts_with("[:")) {
      const std::size_t end = text.find(":]", index + 2);
      if (end != std::string_view::npos) index = end + 1;
    }
    ++index;
  }
  return index < text.size() ? index + 1 : 0;
}

/// True if '(' at the start of `text` opens a group that captures.
constexpr bool captures_here(std::string_view text) noexcept {
  if (!text.starts_with("(?")) return true;
  if (text.starts_with("(?P<")) return true;
  return text.starts_with("(?<") && !text.starts_with("(?<=") && !text.starts_with("(?<!");
}

}  // namespace detail

/// Reads the expression at the start of `text`, which ends at the first '}' without a '{' of its
/// own: braces in it are balanced (`[0-9]{3}`) unless they are escaped or in a class.
constexpr ExpressionText read_expression(std::string_view text) noexcept {
  ExpressionText expression;
  std::size_t depth = 0;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (character == '\\') {
      ++index;
    } else if (character == '[') {
      const std::size_t length = detail::class_length(text.substr(index));
      if (length == 0) break;
      index += length - 1;
    } else if (character == '(') {
      if (detail::captures_here(text.substr(index))) ++expression.groups;
    } else if (character == '{') {
      ++depth;
    } else if (character == '}' && depth-- == 0) {
      expression.length = index;
      expression.closed = true;
      break;
    }
  }
  return expression;
}

}  // namespace weir::http
