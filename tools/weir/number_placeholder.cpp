// Numbers in requests: finding the placeholder and counting.
#include "tools/weir/number_placeholder.hpp"

#include <algorithm>

namespace weir::bench {
namespace {

// An odd and large stride lets connections begin far from each other, with any number of digits.
constexpr std::uint64_t stride = 0x9e3779b97f4a7c15;

std::uint64_t least(unsigned digits) {
  std::uint64_t value = 1;
  for (; digits > 1; --digits) value *= 10;
  return value;
}

}  // namespace

Result<NumberPlaceholder> NumberPlaceholder::find(std::string_view request) {
  NumberPlaceholder found;
  found.offset = request.find('#');
  if (found.offset == std::string_view::npos) return fail(Errc::bad_input);
  const std::string_view rest = request.substr(found.offset);
  const std::size_t size = std::min(rest.find_first_not_of('#'), rest.size());
  if (size > digits_max || rest.find('#', size) != std::string_view::npos) {
    return fail(Errc::bad_input);
  }
  found.digits = static_cast<unsigned>(size);
  return found;
}

std::uint64_t NumberPlaceholder::first(unsigned connection) const noexcept {
  const std::uint64_t low = least(digits);
  return low + (connection * stride >> 8) % (9 * low);
}

std::uint64_t NumberPlaceholder::next(std::uint64_t number) const noexcept {
  const std::uint64_t low = least(digits);
  return number + 1 == 10 * low ? low : number + 1;
}

}  // namespace weir::bench
