// Lower case of ASCII letters, the case in which names of hosts and headers are compared.
#pragma once

#include <string>
#include <string_view>

namespace weir {

/// Returns an ASCII letter in lower case and every other byte unchanged.
constexpr char to_lower(char character) noexcept {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character + ('a' - 'A'))
                                              : character;
}

/// Returns the text with all ASCII letters in lower case.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& each : lower) each = to_lower(each);
  return lower;
}

}  // namespace weir
