// The grammar of route patterns, readable by the compiler: "/users/{id:[0-9]+}/files/{path...}".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "weir/http/characters.hpp"

namespace weir::http {

/// What is wrong with a pattern, or with a pattern and a handler together. Converts to
/// std::error_code (category "weir.http.pattern"), whose message says it in words.
enum class PatternFault : std::uint8_t {
  none,
  no_slash,             ///< it does not start with '/'
  bad_character,        ///< a character that no URI path has; write it as an escape
  bad_escape,           ///< '%' without two hexadecimal digits, or "%00"
  dot_segment,          ///< "." or "..": no request gets that far
  brace_in_literal,     ///< a capture is a whole segment
  unclosed_brace,       ///< '{' without its '}'
  bad_capture_name,     ///< letters, digits and '_', not a digit first
  empty_expression,     ///< "{name:}"
  bad_expression,       ///< RE2 refuses the regular expression
  unclear_groups,       ///< RE2 and Weir count its groups differently: it is too clever
  rest_not_last,        ///< something stands behind "{name...}"
  too_many_segments,    ///< more than pattern_segments_max
  too_many_captures,    ///< more than pattern_captures_max, groups included
  wrong_capture_count,  ///< the handler takes another number of captures
  wrong_rest_type,      ///< "{name...}" wants Rest or a string, and Rest wants "{name...}"
};

inline constexpr std::size_t pattern_segments_max = 32;
inline constexpr std::size_t pattern_captures_max = 16;

const std::error_category& pattern_category() noexcept;
inline std::error_code make_error_code(PatternFault fault) noexcept {
  return {static_cast<int>(fault), pattern_category()};
}

/// One segment as it is written; the views belong to the pattern's text.
struct SegmentText {
  enum class Kind : std::uint8_t { literal, expression, capture, rest };

  Kind kind = Kind::literal;
  std::string_view literal;     ///< undecoded
  std::string_view name;        ///< of a capture
  std::string_view expression;  ///< of `{name:expression}`
  std::size_t groups = 0;       ///< capturing groups in it

  /// How many values the handler gets of it.
  constexpr std::size_t captures() const noexcept { return kind == Kind::literal ? 0 : 1 + groups; }
};

/// What a handler must be able to take.
struct PatternShape {
  PatternFault fault = PatternFault::none;
  std::size_t captures = 0;
  bool rest = false;  ///< the last capture is `{name...}`
};

/// Reads a pattern segment by segment.
class PatternReader {
 public:
  constexpr explicit PatternReader(std::string_view text) noexcept : rest_(text) {
    if (!text.starts_with('/')) fault_ = PatternFault::no_slash;
  }

  /// False at the end and at a fault.
  constexpr bool next(SegmentText& segment) noexcept {
    if (rest_.empty() || fault_ != PatternFault::none) return false;
    rest_.remove_prefix(1);
    segment = {};
    if (rest_.starts_with('{')) {
      read_capture(segment);
    } else {
      read_literal(segment);
    }
    return fault_ == PatternFault::none;
  }
  constexpr PatternFault fault() const noexcept { return fault_; }

 private:
  constexpr void read_literal(SegmentText& segment) noexcept;
  constexpr void read_capture(SegmentText& segment) noexcept;
  constexpr std::size_t read_expression(SegmentText& segment, std::size_t start) noexcept;

  std::string_view rest_;
  PatternFault fault_ = PatternFault::none;
};

namespace detail {

constexpr int hex_digit(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = to_lower(digit);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

constexpr PatternFault check_literal(std::string_view literal) noexcept {
  std::size_t dots = 0;
  std::size_t characters = 0;
  for (std::size_t index = 0; index < literal.size(); ++index, ++characters) {
    int character = static_cast<unsigned char>(literal[index]);
    if (character == '{' || character == '}') return PatternFault::brace_in_literal;
    if (!is_in(literal[index], CharacterClass::target) || character == '?') {
      return PatternFault::bad_character;
    }
    if (character == '%') {
      if (literal.size() - index < 3) return PatternFault::bad_escape;
      const int high = hex_digit(literal[index + 1]);
      const int low = hex_digit(literal[index + 2]);
      if (high < 0 || low < 0 || high + low == 0) return PatternFault::bad_escape;
      character = high * 16 + low;
      index += 2;
    }
    if (character == '.') ++dots;
  }
  const bool only_dots = dots == characters && (dots == 1 || dots == 2);
  return only_dots ? PatternFault::dot_segment : PatternFault::none;
}

constexpr bool is_capture_name(std::string_view name) noexcept {
  if (name.empty() || is_in(name.front(), CharacterClass::digit)) return false;
  for (char each : name) {
    const char lower = to_lower(each);
    const bool letter = lower >= 'a' && lower <= 'z';
    if (!letter && each != '_' && !is_in(each, CharacterClass::digit)) return false;
  }
  return true;
}

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

constexpr void PatternReader::read_literal(SegmentText& segment) noexcept {
  segment.literal = rest_.substr(0, rest_.find('/'));
  rest_.remove_prefix(segment.literal.size());
  fault_ = detail::check_literal(segment.literal);
}

/// Sets the expression that starts at rest_[start]; returns where its '}' is. Braces in it are
/// balanced (`[0-9]{3}`), unless they are escaped or in a class.
constexpr std::size_t PatternReader::read_expression(SegmentText& segment,
                                                     std::size_t start) noexcept {
  std::size_t depth = 1;
  std::size_t index = start;
  for (; index < rest_.size(); ++index) {
    const char character = rest_[index];
    if (character == '\\') {
      ++index;
    } else if (character == '[') {
      const std::size_t length = detail::class_length(rest_.substr(index));
      if (length == 0) break;
      index += length - 1;
    } else if (character == '(') {
      if (detail::captures_here(rest_.substr(index))) ++segment.groups;
    } else if (character == '{') {
      ++depth;
    } else if (character == '}' && --depth == 0) {
      segment.expression = rest_.substr(start, index - start);
      if (segment.expression.empty()) fault_ = PatternFault::empty_expression;
      return index;
    }
  }
  fault_ = PatternFault::unclosed_brace;
  return rest_.size();
}

constexpr void PatternReader::read_capture(SegmentText& segment) noexcept {
  const std::size_t name_end = rest_.find_first_of(":./}");
  if (name_end == std::string_view::npos || rest_[name_end] == '/') {
    fault_ = PatternFault::unclosed_brace;
    return;
  }
  segment.kind = SegmentText::Kind::capture;
  segment.name = rest_.substr(1, name_end - 1);
  std::size_t end = name_end;
  if (!detail::is_capture_name(segment.name)) {
    fault_ = PatternFault::bad_capture_name;
    return;
  }
  if (rest_[name_end] == ':') {
    segment.kind = SegmentText::Kind::expression;
    end = read_expression(segment, name_end + 1);
  } else if (rest_.substr(name_end).starts_with("...}")) {
    segment.kind = SegmentText::Kind::rest;
    end = name_end + 3;
  } else if (rest_[name_end] != '}') {
    fault_ = PatternFault::bad_capture_name;
  }
  if (fault_ != PatternFault::none) return;
  rest_.remove_prefix(end + 1);
  if (!rest_.empty() && segment.kind == SegmentText::Kind::rest) {
    fault_ = PatternFault::rest_not_last;
  } else if (!rest_.empty() && !rest_.starts_with('/')) {
    fault_ = PatternFault::brace_in_literal;
  }
}

/// All of a pattern at a glance; its expressions are not compiled.
constexpr PatternShape shape_of_pattern(std::string_view text) noexcept {
  PatternReader reader(text);
  PatternShape shape;
  std::size_t segments = 0;
  for (SegmentText segment; reader.next(segment);) {
    ++segments;
    shape.captures += segment.captures();
    shape.rest = segment.kind == SegmentText::Kind::rest;
  }
  shape.fault = reader.fault();
  if (shape.fault != PatternFault::none) return shape;
  if (segments > pattern_segments_max) shape.fault = PatternFault::too_many_segments;
  if (shape.captures > pattern_captures_max) shape.fault = PatternFault::too_many_captures;
  return shape;
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::PatternFault> : std::true_type {};
