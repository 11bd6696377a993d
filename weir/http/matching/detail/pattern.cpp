// The parser of route patterns at run time, and the names of patterns.
#include "weir/http/matching/detail/pattern.hpp"

#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weir/http/matching/route.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {
namespace {

/// All names. It is never destroyed, because threads may use names until the process ends.
class RouteNames {
 public:
  RouteNames() { names_.push_back({"_OTHER", 0}); }

  const RouteName& other() const noexcept { return names_.front(); }
  const RouteName& find(std::string_view pattern) {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_pattern_.find(pattern); known != by_pattern_.end()) {
      return *known->second;
    }
    if (names_.size() >= RouteName::names_max) return other();
    names_.push_back({std::string(pattern), static_cast<std::uint32_t>(names_.size())});
    try {
      by_pattern_.emplace(names_.back().pattern, &names_.back());
    } catch (...) {
      names_.pop_back();
      throw;
    }
    return names_.back();
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::deque<RouteName> names_;
  std::unordered_map<std::string_view, const RouteName*> by_pattern_;
};

RouteNames& names() {
  static RouteNames& all = *new RouteNames;
  return all;
}

/// Returns the name of a pattern while there is no memory for its own.
const RouteName& no_memory_name() noexcept {
  static const RouteName name{"_OTHER", 0};
  return name;
}

}  // namespace

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

const RouteName& RouteName::of(std::string_view pattern) noexcept {
  try {
    return names().find(pattern);
  } catch (const std::bad_alloc&) {
    return no_memory_name();
  }
}

/// Keeps the name of a pattern beyond the limit too, because names are never removed. A lack of
/// memory may end.
const RouteName& RouteNameRef::find(std::string_view pattern) const noexcept {
  const RouteName& found = RouteName::of(pattern);
  if (&found != &no_memory_name()) name_.store(&found, std::memory_order_release);
  return found;
}

}  // namespace weir::http
