#include "weir/json/codec.hpp"

namespace weir::json::detail {

bool fail_expected_names(Reader& in, const std::string_view* names, std::size_t count) {
  std::string what("expected ");
  for (std::size_t index = 0; index < count; ++index) {
    if (index > 0) what.append(index + 1 == count ? " or " : ", ");
    what.append("\"").append(names[index]).append("\"");
  }
  return in.fail_text(what.append(", found another string"));
}

}  // namespace weir::json::detail
