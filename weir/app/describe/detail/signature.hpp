// The parameters of a class's constructor, found without a word from its author.
//
// A constructor cannot be asked for its signature. But whether a class can be made of so many
// arguments can be: of arguments that convert to everything. Where exactly one count fits, each
// conversion that the compiler chose leaves its target type behind, by defining a friend function
// that is looked up afterwards ("type loophole"; allowed by the language as it is, CWG 2118).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "weir/app/factory.hpp"

namespace weir::wiring {

inline constexpr std::size_t parameters_max = 16;

namespace detail {

template <class T, class U>
inline constexpr bool is_other = !std::is_same_v<std::remove_cv_t<U>, T>;

/// An argument that converts to anything but a T, which its copy constructor would take.
template <class T>
struct Anything {
  template <class U, class = std::enable_if_t<is_other<T, U>>>
  operator U&() const noexcept;
};

template <class T, std::size_t>
using AnythingFor = Anything<T>;

// Of std::is_constructible rather than of a requires-expression: with that, clang 19 crashes on
// some structs that get too many.
template <class T, std::size_t... I>
constexpr bool is_made_of(std::index_sequence<I...>) {
  return std::is_constructible_v<T, AnythingFor<T, I>...>;
}
template <class T, std::size_t N>
constexpr bool takes() {
  return is_made_of<T>(std::make_index_sequence<N>());
}

inline constexpr std::size_t none_fits = parameters_max + 1;
inline constexpr std::size_t several_fit = parameters_max + 2;

/// The least count from N on that fits.
template <class T, std::size_t N>
constexpr std::size_t least_count() {
  if constexpr (N > parameters_max) {
    return none_fits;
  } else if constexpr (takes<T, N>()) {
    return N;
  } else {
    return least_count<T, N + 1>();
  }
}

/// How many parameters the constructor has. Of a plain struct: how many members must be given.
template <class T>
constexpr std::size_t count_parameters() {
  constexpr std::size_t least = least_count<T, 0>();
  if constexpr (std::is_aggregate_v<T> || least == none_fits) {
    return least;
  } else {
    return least_count<T, least + 1>() == none_fits ? least : several_fit;
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
/// The N-th parameter of T's constructor; the function is only ever looked up.
template <class T, std::size_t N>
struct ParameterAt {
  friend auto type_at(ParameterAt<T, N>);
};
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
template <class T, std::size_t N, class U>
struct Found {
  friend auto type_at(ParameterAt<T, N>) { return std::type_identity<U>(); }
};

template <class T, std::size_t N>
struct Finder {
  template <class U, class = std::enable_if_t<is_other<T, U>>, std::size_t = sizeof(Found<T, N, U>)>
  operator U&() const noexcept;
};

template <class T, std::size_t... N>
auto parameters_of(std::index_sequence<N...>) {
  static_assert(std::is_constructible_v<T, Finder<T, N>...>);
  return Parameters<typename decltype(type_at(ParameterAt<T, N>()))::type&...>();
}

}  // namespace detail

/// Whether the parameters of T's constructor can be found.
template <class T>
inline constexpr bool has_one_constructor = detail::count_parameters<T>() <= parameters_max;

/// Parameters<P...> of T's one constructor, each as a reference. Does not compile, and says why,
/// where there is not exactly one way to make a T.
template <class T>
constexpr auto constructor_parameters() {
  static_assert(std::is_class_v<T> && !std::is_abstract_v<T>, "a service is an object of a class");
  constexpr std::size_t count = detail::count_parameters<T>();
  static_assert(count != detail::several_fit,
                "this class can be made in several ways, so its constructor does not say what it "
                "needs: register a factory, such as [](const A& a) { return T(a); }");
  static_assert(count != detail::none_fits,
                "no public constructor of this class takes references to other services (or there "
                "are two with equally many parameters): register a factory instead");
  if constexpr (count <= parameters_max) {
    return detail::parameters_of<T>(std::make_index_sequence<count>());
  } else {
    return Parameters<>();
  }
}

/// Stands for that constructor where else a factory is.
template <class T>
struct Constructing {};

}  // namespace weir::wiring
