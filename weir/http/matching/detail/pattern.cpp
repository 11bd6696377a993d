// The parser of route patterns at run time.
#include "weir/http/matching/detail/pattern.hpp"

#include <utility>

#include "weir/http/syntax/uri.hpp"

namespace weir::http {
Result<Pattern> Pattern::parse(std::string_view text) {
  Pattern pattern(text);
  pattern.shape_ = shape_of_pattern(text);
  if (pattern.shape_.error != PatternError::none) return fail(pattern.shape_.error);
  PatternReader reader(text);
  for (SegmentText segment; reader.next(segment);) {
    std::string kept(segment.regex);
    if (segment.kind == SegmentText::Kind::literal) {
      kept = percent_decode(segment.literal).value_or(std::string());
    }
    pattern.segments_.push_back({segment.kind, std::move(kept), segment.groups});
  }
  return pattern;
}

}  // namespace weir::http
