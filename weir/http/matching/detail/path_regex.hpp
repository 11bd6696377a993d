// A regular expression of a route's pattern, matched in linear time for any input.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/matching/path_params.hpp"

namespace weir::http {

/// A compiled regular expression in RE2's syntax.
/// Threads: matching may happen on any core.
class PathRegex {
 public:
  /// Compiles a regular expression that must have `groups` capturing groups.
  /// Errors: PatternError::bad_regex, or ambiguous_groups if RE2 counts another number of groups.
  static Result<PathRegex> compile(std::string_view text, std::size_t groups);
  PathRegex(PathRegex&&) noexcept;
  PathRegex& operator=(PathRegex&&) noexcept;
  ~PathRegex();

  /// Returns true if the expression matches the whole of `text`.
  bool matches(std::string_view text) const noexcept;
  /// Adds the text of each group in a `text` that matches; "" for a group that took no part.
  void add_groups(std::string_view text, PathParams& params) const noexcept;
  std::size_t groups() const noexcept { return groups_; }

 private:
  struct Compiled;
  PathRegex(std::unique_ptr<const Compiled> compiled, std::size_t groups) noexcept;

  std::unique_ptr<const Compiled> compiled_;
  std::size_t groups_;
};

}  // namespace weir::http
