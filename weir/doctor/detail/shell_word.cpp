#include "weir/doctor/detail/shell_word.hpp"

#include <algorithm>

namespace weir::doctor {
namespace {

bool is_plain(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
         (each >= '0' && each <= '9') || std::string_view("_@%+=:,./-").contains(each);
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  for (const char each : text) {
    // A single quote ends the quoted part, and stands in double quotes before the next one.
    if (each == '\'') {
      word += "'\"'\"'";
    } else {
      word += each;
    }
  }
  return word + "'";
}

}  // namespace weir::doctor
