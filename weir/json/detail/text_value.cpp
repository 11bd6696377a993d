#include "weir/json/detail/text_value.hpp"

#include <cstddef>

namespace weir::json::detail {

std::string expected_signed(std::int64_t min, std::int64_t max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string expected_unsigned(std::uint64_t max) {
  return "an integer from 0 to " + std::to_string(max);
}

void append_expected_name(std::string& out, std::string_view name, std::size_t index,
                          std::size_t count) {
  if (index > 0) out.append(index + 1 == count ? " or " : ", ");
  out.append("\"").append(name).append("\"");
}

}  // namespace weir::json::detail
