// The messages of pattern errors.
#include "weir/http/matching/pattern_error.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace weir::http {
namespace {

constexpr std::array error_texts = {
    "nothing is wrong",
    "the pattern does not start with '/'",
    "the pattern has a character that is not allowed in a path (percent-encode it)",
    "the pattern has a bad percent escape",
    "the pattern has a dot segment, which matches no request",
    "the pattern has a brace inside a segment, but a path parameter is a whole segment",
    "the pattern has a brace that is not closed",
    "the pattern has a path parameter without a valid name",
    "the pattern has an empty regular expression",
    "the pattern has a regular expression that RE2 rejects",
    "the pattern has a regular expression whose groups RE2 counts differently",
    "the pattern has a segment after its wildcard",
    "the pattern has too many segments",
    "the pattern has too many path parameters",
    "the handler does not take as many path parameters as the pattern has",
    "the handler must take the wildcard as Wildcard or a string, and no other parameter as "
    "Wildcard",
};
static_assert(error_texts.size() ==
              static_cast<std::size_t>(PatternError::wrong_wildcard_type) + 1);

class PatternCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.http.pattern"; }
  std::string message(int code) const override {
    const auto index = static_cast<std::size_t>(code);
    return index < error_texts.size() ? error_texts[index] : "unknown error";
  }
};

}  // namespace

const std::error_category& pattern_category() noexcept {
  static const PatternCategory category;
  return category;
}

}  // namespace weir::http
