// What can be wrong with a route's pattern, one name per fault.
#pragma once

#include <cstdint>
#include <system_error>

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

/// The category of PatternFault; its name is "weir.http.pattern". Lives as long as the process.
const std::error_category& pattern_category() noexcept;

inline std::error_code make_error_code(PatternFault fault) noexcept {
  return {static_cast<int>(fault), pattern_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::PatternFault> : std::true_type {};
