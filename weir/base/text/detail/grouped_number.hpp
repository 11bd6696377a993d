// Numbers for people: groups of three digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::detail {

/// Returns the number with a comma between groups of three digits: "1,234,567".
inline std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace weir::detail
