// Types as values, and their names: what services are and ask for, what events are.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::wiring {

/// A type; its address is its identity, its name is for people.
struct Type {
  std::string_view name;
};

namespace detail {
template <class T>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}
inline constexpr std::size_t spelled_before = spelled<double>().find("double");
inline constexpr std::size_t spelled_around = spelled<double>().size() - 6;
}  // namespace detail

/// As the compiler writes it, with its namespaces. Lives as long as the program.
template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view whole = detail::spelled<T>();
  return whole.substr(detail::spelled_before, whole.size() - detail::spelled_around);
}

template <class T>
inline constexpr Type type{type_name<T>()};

}  // namespace weir::wiring
