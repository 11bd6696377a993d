// The errors of a route's pattern.
#pragma once

#include <cstdint>
#include <system_error>

namespace weir::http {

/// An error of a pattern, or of a pattern and a handler together. It converts to std::error_code
/// (category "weir.http.pattern"), whose message describes it in words.
enum class PatternError : std::uint8_t {
  none,
  no_slash,             ///< a pattern that does not start with '/'
  bad_character,        ///< a character that no URI path has; it must be written as an escape
  bad_escape,           ///< '%' without two hexadecimal digits, or "%00"
  dot_segment,          ///< "." or "..", which no request has
  brace_in_literal,     ///< a brace inside a segment; a path parameter is a whole segment
  unclosed_brace,       ///< '{' without its '}'
  bad_param_name,       ///< a name that is not letters, digits and '_', or starts with a digit
  empty_regex,          ///< "{name:}"
  bad_regex,            ///< a regular expression that RE2 rejects
  ambiguous_groups,     ///< a regular expression whose groups RE2 and Weir count differently
  wildcard_not_last,    ///< a segment after "{name...}"
  too_many_segments,    ///< more than pattern_segments_max
  too_many_params,      ///< more than path_params_max, groups included
  wrong_param_count,    ///< a handler that takes another number of path parameters
  wrong_wildcard_type,  ///< "{name...}" not taken as Wildcard or string, or a misplaced Wildcard
};

/// Returns the category of PatternError; its name is "weir.http.pattern".
/// Lifetime: it lives as long as the process.
const std::error_category& pattern_category() noexcept;

inline std::error_code make_error_code(PatternError error) noexcept {
  return {static_cast<int>(error), pattern_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::PatternError> : std::true_type {};
