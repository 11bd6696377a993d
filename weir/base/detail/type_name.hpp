// Types as values, and their names, for the types of services, dependencies and events.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::inject {

/// A type as a value. The address of the object identifies the type; the name is for users.
struct Type {
  std::string_view name;
};

namespace detail {
template <class T>
constexpr std::string_view function_name() {
  return __PRETTY_FUNCTION__;
}
inline constexpr std::size_t name_offset = function_name<double>().find("double");
inline constexpr std::size_t affix_size = function_name<double>().size() - 6;
}  // namespace detail

/// Returns the name of T as the compiler writes it, with its namespaces.
/// Lifetime: the program.
template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view whole = detail::function_name<T>();
  return whole.substr(detail::name_offset, whole.size() - detail::affix_size);
}

template <class T>
inline constexpr Type type{type_name<T>()};

}  // namespace weir::inject
