// Lines and the fields in them, as the system's configuration files have them.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::names {

/// Takes what is before the first of `ends` off `text`, that one too; all of it, if there is none.
inline std::string_view take_until(std::string_view& text, std::string_view ends) noexcept {
  const std::size_t end = text.find_first_of(ends);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

inline std::string_view take_line(std::string_view& text) noexcept {
  return take_until(text, "\n");
}

/// The next field of a line, between blanks; empty: there is none.
inline std::string_view take_field(std::string_view& line) noexcept {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    line = {};
    return {};
  }
  line.remove_prefix(begin);
  return take_until(line, blanks);
}

}  // namespace weir::names
