#include "weir/http/method.hpp"

#include <array>

namespace weir::http {
namespace {

constexpr std::array<std::string_view, method_count> names{
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", ""};

}  // namespace

Method method_of(std::string_view text) noexcept {
  for (std::size_t index = 0; index + 1 < names.size(); ++index) {
    if (names[index] == text) return static_cast<Method>(index);
  }
  return Method::other;
}

std::string_view name_of(Method method) noexcept {
  return names[static_cast<std::size_t>(method)];
}

}  // namespace weir::http
