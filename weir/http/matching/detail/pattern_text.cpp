#include "weir/http/pattern_fault.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace weir::http {
namespace {

constexpr std::array fault_texts = {
    "nothing is wrong",
    "the pattern does not start with '/'",
    "the pattern has a character that no path has: write it as a percent escape",
    "the pattern has a bad percent escape",
    "the pattern has a dot segment, which no request has",
    "the pattern has a brace inside a segment, but a capture is a whole segment",
    "the pattern has a brace that is not closed",
    "the pattern has a capture without a proper name",
    "the pattern has an empty expression",
    "the pattern has a regular expression that RE2 refuses",
    "the pattern has a regular expression whose groups cannot be counted",
    "the pattern has something behind its rest",
    "the pattern has too many segments",
    "the pattern has too many captures",
    "the handler does not take as many captures as the pattern has",
    "the rest of a path must be taken as Rest or a string, and nothing else as Rest",
};
static_assert(fault_texts.size() == static_cast<std::size_t>(PatternFault::wrong_rest_type) + 1);

class PatternCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.http.pattern"; }
  std::string message(int code) const override {
    const auto index = static_cast<std::size_t>(code);
    return index < fault_texts.size() ? fault_texts[index] : "unknown fault";
  }
};

}  // namespace

const std::error_category& pattern_category() noexcept {
  static const PatternCategory category;
  return category;
}

}  // namespace weir::http
