// Route patterns: the compiler checks literal ones, and Pattern::parse() checks the others.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/pattern_text.hpp"

namespace weir::http {

/// A well-formed pattern. It starts with '/' and has segments between slashes:
///
/// - a literal, compared with the decoded segment of the path;
/// - `{name}`, one segment that is not empty;
/// - `{name:regex}`, one segment that the whole regular expression (RE2's syntax, linear time)
///   matches; the handler gets the text and then each group;
/// - `{name...}`, only at the end: the remaining raw path, possibly empty.
///
/// Empty segments and a slash at the end are significant.
class Pattern {
 public:
  struct Segment {
    SegmentText::Kind kind;
    std::string text;        ///< a decoded literal or the regex; else empty
    std::size_t groups = 0;  ///< capturing groups of the regex

    bool operator==(const Segment&) const = default;
  };

  /// Parses a pattern. Adding the route checks later that RE2 accepts the regular expressions.
  /// Errors: a PatternError.
  static Result<Pattern> parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  const PatternShape& shape() const noexcept { return shape_; }
  const std::vector<Segment>& segments() const noexcept { return segments_; }
  /// Returns true if every segment is a literal.
  bool is_literal() const noexcept { return shape_.params == 0; }

 private:
  explicit Pattern(std::string_view text) : text_(text) {}

  std::string text_;
  PatternShape shape_;
  std::vector<Segment> segments_;
};

/// The path parameters that a handler takes.
struct HandlerShape {
  static constexpr std::size_t no_wildcard = path_params_max + 1;

  std::size_t params = 0;
  std::size_t wildcard_index = no_wildcard;  ///< the index of the first Wildcard parameter
  bool last_takes_wildcard = false;          ///< true if the last one is a Wildcard or a string
};

/// Returns PatternError::none if the handler can take the path parameters of the pattern.
constexpr PatternError check_shapes(const PatternShape& pattern,
                                    const HandlerShape& handler) noexcept {
  if (pattern.error != PatternError::none) return pattern.error;
  if (pattern.params != handler.params) return PatternError::wrong_param_count;
  if (pattern.wildcard && !handler.last_takes_wildcard) return PatternError::wrong_wildcard_type;
  const bool takes_wildcard = handler.wildcard_index != HandlerShape::no_wildcard;
  const bool ends_with_wildcard = pattern.wildcard && handler.wildcard_index + 1 == handler.params;
  return takes_wildcard && !ends_with_wildcard ? PatternError::wrong_wildcard_type
                                               : PatternError::none;
}

namespace detail {

// These functions are never defined and not constexpr. A constant that needs one does not
// compile, and the compiler's message names the function.
void the_pattern_must_start_with_a_slash();
void the_pattern_has_a_character_that_no_path_has();
void the_pattern_has_a_bad_percent_escape();
void the_pattern_has_a_dot_segment_which_no_request_has();
void the_pattern_has_a_brace_inside_a_segment_but_a_parameter_is_a_whole_segment();
void the_pattern_has_a_brace_that_is_not_closed();
void the_pattern_has_a_parameter_without_a_proper_name();
void the_pattern_has_an_empty_regular_expression();
void the_pattern_has_something_behind_its_wildcard();
void the_pattern_has_too_many_segments();
void the_pattern_has_too_many_parameters();
template <class InPattern, class InHandler>
void the_handler_must_take_as_many_parameters_as_the_pattern_has();
void the_wildcard_must_be_taken_as_Wildcard_or_string_view_and_nothing_else_as_Wildcard();

/// Names two numbers in the compiler's message.
template <std::size_t>
struct PatternHas;
template <std::size_t>
struct HandlerTakes;

/// Reports that the pattern has `in_pattern` parameters and the handler takes another number.
template <std::size_t InHandler, std::size_t... InPattern>
consteval void report_param_count(std::size_t in_pattern, std::index_sequence<InPattern...>) {
  ((in_pattern == InPattern
        ? the_handler_must_take_as_many_parameters_as_the_pattern_has<PatternHas<InPattern>,
                                                                      HandlerTakes<InHandler>>()
        : void()),
   ...);
}

template <std::size_t InHandler>
consteval void report_pattern_error(PatternError error, std::size_t in_pattern) {
  switch (error) {
    case PatternError::none:
    case PatternError::bad_regex:  // found later, when the route is added
    case PatternError::ambiguous_groups:
      return;
    case PatternError::no_slash:
      return the_pattern_must_start_with_a_slash();
    case PatternError::bad_character:
      return the_pattern_has_a_character_that_no_path_has();
    case PatternError::bad_escape:
      return the_pattern_has_a_bad_percent_escape();
    case PatternError::dot_segment:
      return the_pattern_has_a_dot_segment_which_no_request_has();
    case PatternError::brace_in_literal:
      return the_pattern_has_a_brace_inside_a_segment_but_a_parameter_is_a_whole_segment();
    case PatternError::unclosed_brace:
      return the_pattern_has_a_brace_that_is_not_closed();
    case PatternError::bad_param_name:
      return the_pattern_has_a_parameter_without_a_proper_name();
    case PatternError::empty_regex:
      return the_pattern_has_an_empty_regular_expression();
    case PatternError::wildcard_not_last:
      return the_pattern_has_something_behind_its_wildcard();
    case PatternError::too_many_segments:
      return the_pattern_has_too_many_segments();
    case PatternError::too_many_params:
      return the_pattern_has_too_many_parameters();
    case PatternError::wrong_param_count:
      return report_param_count<InHandler>(in_pattern,
                                           std::make_index_sequence<path_params_max + 1>());
    case PatternError::wrong_wildcard_type:
      return the_wildcard_must_be_taken_as_Wildcard_or_string_view_and_nothing_else_as_Wildcard();
  }
}

}  // namespace detail

/// Returns the path of a route of a group with this prefix; "/" is the prefix itself.
std::string path_below(std::string_view prefix, std::string_view path);

}  // namespace weir::http
