// Route patterns: literal ones are checked by the compiler, others when they are made.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/pattern_text.hpp"

namespace weir::http {

/// A well-formed pattern.
///
/// It starts with '/' and has segments between slashes: literal ones, compared decoded;
/// `{name}`, one segment that is not empty; `{name:expression}`, one segment that the regular
/// expression (RE2's syntax, linear time) matches as a whole, of which the handler gets the text
/// and then each group; and, last, `{name...}`, the remaining raw path, possibly empty. Empty
/// segments and a slash at the end are significant.
class Pattern {
 public:
  struct Segment {
    SegmentText::Kind kind;
    std::string text;        ///< a literal, decoded; or the expression; else empty
    std::size_t groups = 0;  ///< of the expression

    bool operator==(const Segment&) const = default;
  };

  /// Errors: a PatternFault. Whether RE2 takes the expressions is checked when a route is added.
  static Result<Pattern> parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  const PatternShape& shape() const noexcept { return shape_; }
  const std::vector<Segment>& segments() const noexcept { return segments_; }
  /// True if every segment is a literal.
  bool is_literal() const noexcept { return shape_.captures == 0; }

 private:
  explicit Pattern(std::string_view text) : text_(text) {}

  std::string text_;
  PatternShape shape_;
  std::vector<Segment> segments_;
};

/// What a handler takes, as far as patterns care.
struct HandlerShape {
  static constexpr std::size_t no_rest = pattern_captures_max + 1;

  std::size_t captures = 0;
  std::size_t rest_index = no_rest;  ///< of the first capture that is taken as Rest
  bool last_takes_rest = false;      ///< the last one is taken as Rest or as a string
};

/// PatternFault::none if the handler can take what the pattern gives.
constexpr PatternFault check_shapes(const PatternShape& pattern,
                                    const HandlerShape& handler) noexcept {
  if (pattern.fault != PatternFault::none) return pattern.fault;
  if (pattern.captures != handler.captures) return PatternFault::wrong_capture_count;
  if (pattern.rest && !handler.last_takes_rest) return PatternFault::wrong_rest_type;
  const bool takes_rest = handler.rest_index != HandlerShape::no_rest;
  const bool at_rest = pattern.rest && handler.rest_index + 1 == handler.captures;
  return takes_rest && !at_rest ? PatternFault::wrong_rest_type : PatternFault::none;
}

namespace detail {

// Never defined and not constexpr: a constant that needs one does not compile, and the compiler
// says which one it was.
void the_pattern_must_start_with_a_slash();
void the_pattern_has_a_character_that_no_path_has();
void the_pattern_has_a_bad_percent_escape();
void the_pattern_has_a_dot_segment_which_no_request_has();
void the_pattern_has_a_brace_inside_a_segment_but_a_capture_is_a_whole_segment();
void the_pattern_has_a_brace_that_is_not_closed();
void the_pattern_has_a_capture_without_a_proper_name();
void the_pattern_has_an_empty_expression();
void the_pattern_has_something_behind_its_rest();
void the_pattern_has_too_many_segments();
void the_pattern_has_too_many_captures();
void the_handler_must_take_as_many_captures_as_the_pattern_has();
void the_rest_of_a_path_must_be_taken_as_Rest_or_string_view_and_nothing_else_as_Rest();

consteval void refuse(PatternFault fault) {
  switch (fault) {
    case PatternFault::none:
    case PatternFault::bad_expression:  // found when the route is added
    case PatternFault::unclear_groups:
      return;
    case PatternFault::no_slash:
      return the_pattern_must_start_with_a_slash();
    case PatternFault::bad_character:
      return the_pattern_has_a_character_that_no_path_has();
    case PatternFault::bad_escape:
      return the_pattern_has_a_bad_percent_escape();
    case PatternFault::dot_segment:
      return the_pattern_has_a_dot_segment_which_no_request_has();
    case PatternFault::brace_in_literal:
      return the_pattern_has_a_brace_inside_a_segment_but_a_capture_is_a_whole_segment();
    case PatternFault::unclosed_brace:
      return the_pattern_has_a_brace_that_is_not_closed();
    case PatternFault::bad_capture_name:
      return the_pattern_has_a_capture_without_a_proper_name();
    case PatternFault::empty_expression:
      return the_pattern_has_an_empty_expression();
    case PatternFault::rest_not_last:
      return the_pattern_has_something_behind_its_rest();
    case PatternFault::too_many_segments:
      return the_pattern_has_too_many_segments();
    case PatternFault::too_many_captures:
      return the_pattern_has_too_many_captures();
    case PatternFault::wrong_capture_count:
      return the_handler_must_take_as_many_captures_as_the_pattern_has();
    case PatternFault::wrong_rest_type:
      return the_rest_of_a_path_must_be_taken_as_Rest_or_string_view_and_nothing_else_as_Rest();
  }
}

}  // namespace detail
}  // namespace weir::http
