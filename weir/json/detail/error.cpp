#include "weir/json/detail/error.hpp"

namespace weir::json {

std::string Error::message() const {
  std::string message;
  if (!path.empty()) message.append(path).append(": ");
  message.append(what).append(" (at byte ").append(std::to_string(offset)).append(")");
  return message;
}

}  // namespace weir::json
