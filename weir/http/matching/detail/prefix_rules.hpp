// The fallbacks of a router and the forms of its errors, each for the paths below a prefix.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/matching/route.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// Describes an error in a response; see Router::render_errors().
using ErrorRenderer = std::function<Response(const Problem&)>;

/// The rules for the paths that begin with a prefix. A path has the rule of the longest prefix that
/// sets it.
struct PrefixRule {
  std::vector<std::string> prefix;            ///< decoded segments; none for all paths
  std::unique_ptr<Route> fallback = nullptr;  ///< answers in place of 404
  ErrorRenderer render_error = nullptr;
};

/// The rules of a router, one for each prefix.
/// Threads: const members on any thread, after all calls of other members.
class PrefixRules {
 public:
  /// Returns the rule of this prefix, a literal pattern; "/" or an empty text for all paths.
  PrefixRule& at(const Pattern& prefix);
  /// Returns the fallback for a raw path; nullptr if there is none.
  const Route* fallback(std::string_view path) const;
  /// Returns the renderer for a raw path; an empty one if there is none.
  const ErrorRenderer& renderer(std::string_view path) const;
  std::vector<PrefixRule>& all() noexcept { return rules_; }
  const std::vector<PrefixRule>& all() const noexcept { return rules_; }

 private:
  std::vector<PrefixRule> rules_;  // longest prefix first
};

}  // namespace weir::http
