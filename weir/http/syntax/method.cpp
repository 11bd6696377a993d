// The names of the request methods.
#include "weir/http/syntax/method.hpp"

#include <array>

namespace weir::http {
namespace {

constexpr std::array<std::string_view, method_count> names{
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY", ""};

}  // namespace

Method method_of(std::string_view text) noexcept {
  const auto only = [text](Method method) {
    return text == name_of(method) ? method : Method::other;
  };
  if (text.empty()) return Method::other;
  switch (text.front()) {
    case 'G':
      return only(Method::get);
    case 'H':
      return only(Method::head);
    case 'P':
      if (text == "POST") return Method::post;
      return text == "PUT" ? Method::put : only(Method::patch);
    case 'D':
      return only(Method::delete_);
    case 'C':
      return only(Method::connect);
    case 'O':
      return only(Method::options);
    case 'T':
      return only(Method::trace);
    case 'Q':
      return only(Method::query);
    default:
      return Method::other;
  }
}

std::string_view name_of(Method method) noexcept {
  return names[static_cast<std::size_t>(method)];
}

}  // namespace weir::http
