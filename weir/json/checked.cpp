#include "weir/json/checked.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <stdexcept>

namespace weir::detail {
namespace {

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

std::size_t count_characters(std::string_view text) noexcept {
  // Each character has one byte that is no continuation byte, 10xxxxxx (RFC 3629 §3).
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char each) {
    return (static_cast<unsigned char>(each) & 0xC0U) != 0x80U;
  }));
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
