// Request methods: the ones Weir knows by number, every other one by its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::http {

/// A request method (RFC 9110 §9, PATCH: RFC 5789). `other` is any token that is not one of these;
/// its text is kept beside it, and a server answers it with 501 unless a route names it.
enum class Method : std::uint8_t {
  get,
  head,
  post,
  put,
  delete_,
  connect,
  options,
  trace,
  patch,
  other,
};

inline constexpr std::size_t method_count = 10;

/// The method whose name is `text`; names are case-sensitive (RFC 9110 §9.1).
Method method_of(std::string_view text) noexcept;

/// The name on the wire, empty for `other`. Lives as long as the process.
std::string_view name_of(Method method) noexcept;

/// True where RFC 9110 §9.2.1 promises that asking changes nothing.
constexpr bool is_safe(Method method) noexcept {
  return method == Method::get || method == Method::head || method == Method::options ||
         method == Method::trace;
}

/// True where repeating the request means the same as sending it once (RFC 9110 §9.2.2).
constexpr bool is_idempotent(Method method) noexcept {
  return is_safe(method) || method == Method::put || method == Method::delete_;
}

}  // namespace weir::http
