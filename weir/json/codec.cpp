// Error texts of codecs: the kinds and names that were expected, and the check of a whole text.
#include "weir/json/codec.hpp"

#include <array>
#include <bit>

#include "weir/json/read.hpp"

namespace weir::json {

bool is_well_formed(std::string_view text, const ReadOptions& options) {
  Reader in(text, options);
  return in.begin() && in.skip_value() && in.finish();
}

namespace detail {
namespace {

/// Returns the text before the name at `index` in `a, b or c`.
std::string_view separator_before(std::size_t index, std::size_t count) {
  if (index == 0) return "";
  return index + 1 == count ? " or " : ", ";
}

}  // namespace

bool fail_expected_kinds(Reader& in, Kinds kinds) {
  // The names are in the order of Kind.
  constexpr std::array<std::string_view, 6> names{"null",     "true or false", "a number",
                                                  "a string", "an array",      "an object"};
  const auto count = static_cast<std::size_t>(std::popcount(kinds));
  std::string expected;
  std::size_t index = 0;
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    if ((kinds >> kind & 1U) == 0) continue;
    expected.append(separator_before(index++, count)).append(names[kind]);
  }
  return in.fail_expected(expected);
}

bool fail_expected_names(Reader& in, const std::string_view* names, std::size_t count) {
  std::string what("expected ");
  for (std::size_t index = 0; index < count; ++index) {
    what.append(separator_before(index, count)).append("\"").append(names[index]).append("\"");
  }
  return in.fail_text(what.append(", found a different string"));
}

}  // namespace detail
}  // namespace weir::json
