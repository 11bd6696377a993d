#include "weir/http/matching/detail/path_regex.hpp"

#include <re2/re2.h>

#include <array>
#include <utility>

namespace weir::http {
namespace {

RE2::Options expression_options() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

struct Expression::Compiled {
  explicit Compiled(std::string_view text)
      : re(re2::StringPiece(text.data(), text.size()), expression_options()) {}
  RE2 re;
};

Expression::Expression(std::unique_ptr<const Compiled> compiled, std::size_t groups) noexcept
    : compiled_(std::move(compiled)), groups_(groups) {}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

Result<Expression> Expression::compile(std::string_view text, std::size_t groups) {
  auto compiled = std::make_unique<const Compiled>(text);
  if (!compiled->re.ok()) return fail(PatternFault::bad_expression);
  if (compiled->re.NumberOfCapturingGroups() != static_cast<int>(groups)) {
    return fail(PatternFault::unclear_groups);
  }
  return Expression(std::move(compiled), groups);
}

bool Expression::matches(std::string_view text) const noexcept {
  const re2::StringPiece piece(text.data(), text.size());
  return compiled_->re.Match(piece, 0, text.size(), RE2::ANCHOR_BOTH, nullptr, 0);
}

void Expression::add_groups(std::string_view text, Captures& captures) const noexcept {
  if (groups_ == 0) return;
  std::array<re2::StringPiece, pattern_captures_max + 1> found;
  const re2::StringPiece piece(text.data(), text.size());
  compiled_->re.Match(piece, 0, text.size(), RE2::ANCHOR_BOTH, found.data(),
                      static_cast<int>(groups_) + 1);
  for (std::size_t group = 1; group <= groups_; ++group) {
    captures.add({found[group].data(), found[group].size()});
  }
}

}  // namespace weir::http
