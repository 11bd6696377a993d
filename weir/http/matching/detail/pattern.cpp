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

std::string path_below(std::string_view prefix, std::string_view path) {
  if (prefix.empty()) return std::string(path);
  return std::string(prefix) + std::string(path == "/" ? std::string_view() : path);
}

}  // namespace weir::http
