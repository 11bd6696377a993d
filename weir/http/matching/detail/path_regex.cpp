// The RE2 side of regular expressions in patterns.
#include "weir/http/matching/detail/path_regex.hpp"

#include <re2/re2.h>

#include <array>
#include <utility>

namespace weir::http {
namespace {

RE2::Options regex_options() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

struct PathRegex::Compiled {
  explicit Compiled(std::string_view text)
      : re(re2::StringPiece(text.data(), text.size()), regex_options()) {}
  RE2 re;
};

PathRegex::PathRegex(std::unique_ptr<const Compiled> compiled, std::size_t groups) noexcept
    : compiled_(std::move(compiled)), groups_(groups) {}
PathRegex::PathRegex(PathRegex&&) noexcept = default;
PathRegex& PathRegex::operator=(PathRegex&&) noexcept = default;
PathRegex::~PathRegex() = default;

Result<PathRegex> PathRegex::compile(std::string_view text, std::size_t groups) {
  auto compiled = std::make_unique<const Compiled>(text);
  if (!compiled->re.ok()) return fail(PatternError::bad_regex);
  if (compiled->re.NumberOfCapturingGroups() != static_cast<int>(groups)) {
    return fail(PatternError::ambiguous_groups);
  }
  return PathRegex(std::move(compiled), groups);
}

bool PathRegex::matches(std::string_view text) const noexcept {
  const re2::StringPiece piece(text.data(), text.size());
  return compiled_->re.Match(piece, 0, text.size(), RE2::ANCHOR_BOTH, nullptr, 0);
}

void PathRegex::add_groups(std::string_view text, PathParams& params) const noexcept {
  if (groups_ == 0) return;
  std::array<re2::StringPiece, path_params_max + 1> found;
  const re2::StringPiece piece(text.data(), text.size());
  compiled_->re.Match(piece, 0, text.size(), RE2::ANCHOR_BOTH, found.data(),
                      static_cast<int>(groups_) + 1);
  for (std::size_t group = 1; group <= groups_; ++group) {
    params.add({found[group].data(), found[group].size()});
  }
}

}  // namespace weir::http
