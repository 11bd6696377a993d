#include "weir/http/matching/detail/prefix_rules.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/syntax/uri.hpp"

namespace weir::http {
namespace {

/// Returns true if the decoded segment is `text`. Most segments have no escapes.
bool is_equal(const Segments::Iterator& segment, std::string_view text) {
  const std::string_view raw = *segment;
  return raw.find('%') == std::string_view::npos ? raw == text : segment.decoded() == text;
}

bool begins_with(std::string_view path, const std::vector<std::string>& prefix) {
  const Segments segments(path);
  auto segment = segments.begin();
  for (const std::string& each : prefix) {
    if (segment == segments.end() || !is_equal(segment, each)) return false;
    ++segment;
  }
  return true;
}

}  // namespace

PrefixRule& PrefixRules::at(const Pattern& prefix) {
  std::vector<std::string> segments;
  for (const Pattern::Segment& each : prefix.segments()) segments.emplace_back(each.text);
  if (segments.size() == 1 && segments[0].empty()) segments.clear();
  const auto known = std::ranges::find(rules_, segments, &PrefixRule::prefix);
  if (known != rules_.end()) return *known;
  const auto shorter = [&](const PrefixRule& each) { return each.prefix.size() < segments.size(); };
  const auto place = std::ranges::find_if(rules_, shorter);
  PrefixRule rule;
  rule.prefix = std::move(segments);
  return *rules_.insert(place, std::move(rule));
}

const Route* PrefixRules::fallback(std::string_view path) const {
  for (const PrefixRule& each : rules_) {
    if (each.fallback != nullptr && begins_with(path, each.prefix)) return each.fallback.get();
  }
  return nullptr;
}

const ErrorRenderer& PrefixRules::renderer(std::string_view path) const {
  static const ErrorRenderer none;
  for (const PrefixRule& each : rules_) {
    if (each.render_error && begins_with(path, each.prefix)) return each.render_error;
  }
  return none;
}

}  // namespace weir::http
