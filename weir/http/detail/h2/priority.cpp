#include "weir/http/detail/h2/priority.hpp"

#include <algorithm>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

Priority parse_priority(std::string_view value) noexcept {
  Priority priority;
  while (!value.empty()) {
    const auto comma = std::min(value.find(','), value.size());
    const std::string_view whole = trim(value.substr(0, comma));
    value.remove_prefix(std::min(comma + 1, value.size()));
    // A string may contain commas. No known parameter is a string, so reading stops here.
    if (whole.find('"') != std::string_view::npos) break;
    const std::string_view member = trim(whole.substr(0, whole.find(';')));
    if (member.size() == 3 && member.starts_with("u=") && member[2] >= '0' && member[2] <= '7') {
      priority.urgency = static_cast<std::uint8_t>(member[2] - '0');
    } else if (member == "i" || member == "i=?1") {
      priority.incremental = true;
    } else if (member == "i=?0") {
      priority.incremental = false;
    }
  }
  return priority;
}

}  // namespace weir::http
