// The grammar of route patterns, such as "/users/{id:[0-9]+}/files/{path...}", in constexpr code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/matching/pattern_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

// The end and the number of groups of a regular expression inside a pattern, in constexpr code.

/// The properties of a regular expression that are found without RE2. Adding the route checks
/// that RE2 agrees.
struct RegexText {
  std::size_t length = 0;
  std::size_t groups = 0;  ///< number of capturing groups
  bool closed = false;     ///< true if its '}' was found, after `length` bytes
};

namespace detail {

/// Returns the length of the RE2 character class at the start of `text`, which is '['; 0 if the
/// class is not closed.
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

/// Returns true if the '(' at the start of `text` opens a capturing group.
constexpr bool opens_capturing_group(std::string_view text) noexcept {
  if (!text.starts_with("(?")) return true;
  if (text.starts_with("(?P<")) return true;
  return text.starts_with("(?<") && !text.starts_with("(?<=") && !text.starts_with("(?<!");
}

}  // namespace detail

/// Reads the regular expression at the start of `text`, which ends at the first '}' without a
/// matching '{'. Braces in the expression are balanced (`[0-9]{3}`) unless they are escaped or in
/// a class.
constexpr RegexText read_regex(std::string_view text) noexcept {
  RegexText regex;
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
      if (detail::opens_capturing_group(text.substr(index))) ++regex.groups;
    } else if (character == '{') {
      ++depth;
    } else if (character == '}' && depth-- == 0) {
      regex.length = index;
      regex.closed = true;
      break;
    }
  }
  return regex;
}

inline constexpr std::size_t pattern_segments_max = 32;
inline constexpr std::size_t path_params_max = 16;

/// One segment as it is written. The views point into the pattern's text.
struct SegmentText {
  enum class Kind : std::uint8_t { literal, regex, param, wildcard };

  Kind kind = Kind::literal;
  std::string_view literal;  ///< the undecoded text of a literal
  std::string_view name;     ///< the name of a path parameter
  std::string_view regex;    ///< the regex of `{name:regex}`
  std::size_t groups = 0;    ///< capturing groups of the regex

  /// Returns the number of path parameters that the handler gets from this segment.
  constexpr std::size_t params() const noexcept { return kind == Kind::literal ? 0 : 1 + groups; }
};

/// The path parameters that a handler must take.
struct PatternShape {
  PatternError error = PatternError::none;
  std::size_t params = 0;
  bool wildcard = false;  ///< true if the last one is `{name...}`
};

/// Reads a pattern segment by segment.
class PatternReader {
 public:
  constexpr explicit PatternReader(std::string_view text) noexcept : rest_(text) {
    if (!text.starts_with('/')) error_ = PatternError::no_slash;
  }

  /// Reads the next segment. Returns false at the end and after an error.
  constexpr bool next(SegmentText& segment) noexcept {
    if (rest_.empty() || error_ != PatternError::none) return false;
    rest_.remove_prefix(1);
    segment = {};
    if (rest_.starts_with('{')) {
      read_param(segment);
    } else {
      read_literal(segment);
    }
    return error_ == PatternError::none;
  }
  constexpr PatternError error() const noexcept { return error_; }

 private:
  constexpr void read_literal(SegmentText& segment) noexcept;
  constexpr void read_param(SegmentText& segment) noexcept;

  std::string_view rest_;
  PatternError error_ = PatternError::none;
};

namespace detail {

constexpr PatternError check_literal(std::string_view literal) noexcept {
  std::size_t dots = 0;
  std::size_t characters = 0;
  for (std::size_t index = 0; index < literal.size(); ++index, ++characters) {
    int character = static_cast<unsigned char>(literal[index]);
    if (character == '{' || character == '}') return PatternError::brace_in_literal;
    // A pattern has rare characters only as escapes, since other routers give them a meaning.
    const bool is_rare = std::string_view("?[]|^`\\").find(literal[index]) != literal.npos;
    if (!is_in(literal[index], CharClass::target) || is_rare) {
      return PatternError::bad_character;
    }
    if (character == '%') {
      if (literal.size() - index < 3) return PatternError::bad_escape;
      const int high = hex_value(literal[index + 1]);
      const int low = hex_value(literal[index + 2]);
      if (high < 0 || low < 0 || high + low == 0) return PatternError::bad_escape;
      character = high * 16 + low;
      index += 2;
    }
    if (character == '.') ++dots;
  }
  const bool only_dots = dots == characters && (dots == 1 || dots == 2);
  return only_dots ? PatternError::dot_segment : PatternError::none;
}

constexpr bool is_param_name(std::string_view name) noexcept {
  if (name.empty() || is_in(name.front(), CharClass::digit)) return false;
  for (char each : name) {
    const char lower = to_lower(each);
    const bool letter = lower >= 'a' && lower <= 'z';
    if (!letter && each != '_' && !is_in(each, CharClass::digit)) return false;
  }
  return true;
}

}  // namespace detail

constexpr void PatternReader::read_literal(SegmentText& segment) noexcept {
  segment.literal = rest_.substr(0, rest_.find('/'));
  rest_.remove_prefix(segment.literal.size());
  error_ = detail::check_literal(segment.literal);
}

constexpr void PatternReader::read_param(SegmentText& segment) noexcept {
  const std::size_t name_end = rest_.find_first_of(":./}");
  if (name_end == std::string_view::npos || rest_[name_end] == '/') {
    error_ = PatternError::unclosed_brace;
    return;
  }
  segment.kind = SegmentText::Kind::param;
  segment.name = rest_.substr(1, name_end - 1);
  std::size_t end = name_end;
  if (!detail::is_param_name(segment.name)) {
    error_ = PatternError::bad_param_name;
    return;
  }
  if (rest_[name_end] == ':') {
    const RegexText found = read_regex(rest_.substr(name_end + 1));
    segment.kind = SegmentText::Kind::regex;
    segment.regex = rest_.substr(name_end + 1, found.length);
    segment.groups = found.groups;
    end = name_end + 1 + found.length;
    if (found.length == 0) error_ = PatternError::empty_regex;
    if (!found.closed) error_ = PatternError::unclosed_brace;
  } else if (rest_.substr(name_end).starts_with("...}")) {
    segment.kind = SegmentText::Kind::wildcard;
    end = name_end + 3;
  } else if (rest_[name_end] != '}') {
    error_ = PatternError::bad_param_name;
  }
  if (error_ != PatternError::none) return;
  rest_.remove_prefix(end + 1);
  if (!rest_.empty() && segment.kind == SegmentText::Kind::wildcard) {
    error_ = PatternError::wildcard_not_last;
  } else if (!rest_.empty() && !rest_.starts_with('/')) {
    error_ = PatternError::brace_in_literal;
  }
}

/// Returns the shape of a whole pattern. Its regular expressions are not compiled.
constexpr PatternShape shape_of_pattern(std::string_view text) noexcept {
  PatternReader reader(text);
  PatternShape shape;
  std::size_t segments = 0;
  for (SegmentText segment; reader.next(segment);) {
    ++segments;
    shape.params += segment.params();
    shape.wildcard = segment.kind == SegmentText::Kind::wildcard;
  }
  shape.error = reader.error();
  if (shape.error != PatternError::none) return shape;
  if (segments > pattern_segments_max) shape.error = PatternError::too_many_segments;
  if (shape.params > path_params_max) shape.error = PatternError::too_many_params;
  return shape;
}

}  // namespace weir::http
