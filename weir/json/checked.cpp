#include "weir/json/checked.hpp"

#include <re2/re2.h>

#include <stdexcept>

#include "weir/base/text/detail/utf8.hpp"

namespace weir::detail {
namespace {

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

std::optional<std::size_t> count_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end; ++count) {
    const std::size_t bytes = utf8_length(at, end);
    if (bytes == 0) return std::nullopt;
    at += bytes;
  }
  return count;
}

struct CompiledPattern::Compiled {
  explicit Compiled(std::string_view expression)
      : re(re2::StringPiece(expression.data(), expression.size()), quiet()) {}
  RE2 re;
};

CompiledPattern::CompiledPattern(std::string_view expression)
    : compiled_(std::make_unique<const Compiled>(expression)) {
  if (compiled_->re.ok()) return;
  throw std::invalid_argument("rule::Pattern<\"" + std::string(expression) +
                              "\">: " + compiled_->re.error());
}
CompiledPattern::~CompiledPattern() = default;

bool CompiledPattern::matches(std::string_view text) const {
  const re2::StringPiece piece(text.data(), text.size());
  return compiled_->re.Match(piece, 0, text.size(), RE2::ANCHOR_BOTH, nullptr, 0);
}

}  // namespace weir::detail
