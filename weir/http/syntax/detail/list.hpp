// The elements of a list in the value of a header (RFC 9110 §5.6.1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

/// Calls `use(element)` for each element of a list that is not empty, until it returns true.
/// Returns true then. A comma in quotes separates elements too.
template <class Use>
constexpr bool any_element(std::string_view list, const Use& use) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!element.empty() && use(element)) return true;
  }
  return false;
}

/// Returns true if a list has the token, in any letter case.
constexpr bool has_token(std::string_view list, std::string_view token) {
  return any_element(list, [token](auto each) { return equals_ignoring_case(each, token); });
}

}  // namespace weir::http
