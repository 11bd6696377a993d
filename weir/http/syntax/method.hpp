// Request methods: an enumerator for each known method and its name on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::http {

/// A request method (RFC 9110 §9, PATCH: RFC 5789, QUERY: RFC 10008). `other` is any other token;
/// the request keeps its text.
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
  query,
  other,
};

inline constexpr std::size_t method_count = 11;

/// Returns the method whose name is `text`, or `other`. Names are case-sensitive (RFC 9110 §9.1).
Method method_of(std::string_view text) noexcept;

/// Returns the name on the wire, empty for `other`.
/// Lifetime: the text lives as long as the process.
std::string_view name_of(Method method) noexcept;

/// Returns true if the method is safe, that is, essentially read-only (RFC 9110 §9.2.1).
constexpr bool is_safe(Method method) noexcept {
  return method == Method::get || method == Method::head || method == Method::options ||
         method == Method::trace || method == Method::query;
}

/// Returns true if repeating the request has the same effect as sending it once (RFC 9110 §9.2.2).
constexpr bool is_idempotent(Method method) noexcept {
  return is_safe(method) || method == Method::put || method == Method::delete_;
}

/// Returns true if the method gives a meaning to the content of a request, which therefore has a
/// length even if it is empty (RFC 9110 §8.6). Requests of other methods may have content too.
constexpr bool expects_content(Method method) noexcept {
  return method == Method::post || method == Method::put || method == Method::patch ||
         method == Method::query;
}

}  // namespace weir::http
