// A regular expression of a route's pattern, matched in linear time whatever the peer sends.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/matching/path_params.hpp"

namespace weir::http {

/// A compiled expression in RE2's syntax. Threads: matching may happen on any core.
class Expression {
 public:
  /// Errors: PatternFault::bad_expression; unclear_groups if it has another number of groups.
  static Result<Expression> compile(std::string_view text, std::size_t groups);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// True if it matches the whole of `text`.
  bool matches(std::string_view text) const noexcept;
  /// Adds what each group caught of a `text` that matches; a group that took no part caught "".
  void add_groups(std::string_view text, Captures& captures) const noexcept;
  std::size_t groups() const noexcept { return groups_; }

 private:
  struct Compiled;
  Expression(std::unique_ptr<const Compiled> compiled, std::size_t groups) noexcept;

  std::unique_ptr<const Compiled> compiled_;
  std::size_t groups_;
};

}  // namespace weir::http
