// The grammar of route patterns, readable by the compiler: "/users/{id:[0-9]+}/files/{path...}".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/expression_text.hpp"
#include "weir/http/pattern_fault.hpp"

namespace weir::http {

inline constexpr std::size_t pattern_segments_max = 32;
inline constexpr std::size_t pattern_captures_max = 16;

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

}  // namespace detail

constexpr void PatternReader::read_literal(SegmentText& segment) noexcept {
  segment.literal = rest_.substr(0, rest_.find('/'));
  rest_.remove_prefix(segment.literal.size());
  fault_ = detail::check_literal(segment.literal);
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
    const ExpressionText found = read_expression(rest_.substr(name_end + 1));
    segment.kind = SegmentText::Kind::expression;
    segment.expression = rest_.substr(name_end + 1, found.length);
    segment.groups = found.groups;
    end = name_end + 1 + found.length;
    if (found.length == 0) fault_ = PatternFault::empty_expression;
    if (!found.closed) fault_ = PatternFault::unclosed_brace;
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
