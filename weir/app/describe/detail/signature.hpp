// Finds the parameter types of a class's constructor and of a factory.
//
// C++ has no reflection on the signature of a constructor. A program can test if a class is
// constructible from N arguments that convert to every type. If exactly one N fits, the compiler
// chooses the type of each conversion. Each conversion defines a friend function that returns its
// target type, and a later lookup reads it ("type loophole"; valid in today's language, CWG 2118).
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "weir/app/describe/detail/parameter.hpp"
#include "weir/base/detail/function_type.hpp"
#include "weir/base/result.hpp"

namespace weir::inject {

// The signature of a factory: its result and its parameters.

namespace detail {

template <class R>
struct FactoryResult {
  using Stored = R;
  using Service = R;
};
template <class T>
struct FactoryResult<Result<T>> : FactoryResult<T> {};
template <class T, class D>
struct FactoryResult<std::unique_ptr<T, D>> {
  using Stored = std::unique_ptr<T, D>;
  using Service = T;
};

}  // namespace detail

/// A function, or an object with one operator() const, whose signature lists the dependencies.
/// Several cores may call it at the same time.
template <class F>
concept Factory = requires { requires FunctionTypeOf<F>::callable_as_const; };

/// The types of a factory F, which returns a T, a std::unique_ptr<T>, or a Result of one of them.
template <Factory F>
struct FactoryOf {
  using Returned = typename FunctionTypeOf<F>::ReturnType;
  using ParameterTypes = typename FunctionTypeOf<F>::ParameterTypes;
  /// Type that the container keeps.
  using Stored = typename detail::FactoryResult<Returned>::Stored;
  using Service = typename detail::FactoryResult<Returned>::Service;  ///< type that others get
};

inline constexpr std::size_t parameters_max = 16;

namespace detail {

template <class T, class U>
inline constexpr bool is_other = !std::is_same_v<std::remove_cv_t<U>, T>;

/// An argument that converts to every type except T; T's copy constructor would take that.
template <class T>
struct AnyArgument {
  template <class U, class = std::enable_if_t<is_other<T, U>>>
  operator U&() const noexcept;
};

template <class T, std::size_t>
using AnyArgumentAt = AnyArgument<T>;

// std::is_constructible, because clang 19 crashes on some aggregates with too many initializers in
// a requires-expression.
template <class T, std::size_t... I>
constexpr bool is_constructible_with(std::index_sequence<I...>) {
  return std::is_constructible_v<T, AnyArgumentAt<T, I>...>;
}
template <class T, std::size_t N>
constexpr bool accepts_count() {
  return is_constructible_with<T>(std::make_index_sequence<N>());
}

/// An argument that converts to every reference and to every handle of Weir, but to no other value:
/// both conversions fit that, so it is ambiguous.
template <class T>
struct ReferenceArgument {
  template <class U, class = std::enable_if_t<is_other<T, U>>>
  operator U&() const noexcept;
  template <class U, class = std::enable_if_t<is_other<T, U> && !DescribesParameter<U>>>
  operator U() const noexcept;
};

template <class T, std::size_t>
using ReferenceArgumentAt = ReferenceArgument<T>;

template <class T, std::size_t... I>
constexpr bool takes_only_references(std::index_sequence<I...>) {
  return std::is_constructible_v<T, ReferenceArgumentAt<T, I>...>;
}

inline constexpr std::size_t no_match = parameters_max + 1;
inline constexpr std::size_t ambiguous = parameters_max + 2;

/// Returns the least count from N on that fits.
template <class T, std::size_t N>
constexpr std::size_t least_count() {
  if constexpr (N > parameters_max) {
    return no_match;
  } else if constexpr (accepts_count<T, N>()) {
    return N;
  } else {
    return least_count<T, N + 1>();
  }
}

/// Returns true if T's constructor of N parameters takes a value, which no service provides, and no
/// constructor takes more.
template <class T, std::size_t N>
constexpr bool only_takes_values() {
  return least_count<T, N + 1>() == no_match &&
         !takes_only_references<T>(std::make_index_sequence<N>());
}

/// Returns the number of the constructor's parameters, or of the members that an aggregate
/// requires. A class whose other constructor takes values, such as `explicit Client(Options options
/// = {})`, is made without arguments.
template <class T>
constexpr std::size_t count_parameters() {
  constexpr std::size_t least = least_count<T, 0>();
  if constexpr (std::is_aggregate_v<T> || least == no_match) {
    return least;
  } else if constexpr (constexpr std::size_t more = least_count<T, least + 1>(); more == no_match) {
    return least;
  } else {
    return least == 0 && only_takes_values<T, more>() ? least : ambiguous;
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
/// The key of the N-th parameter of T's constructor. The function is only looked up, never called.
template <class T, std::size_t N>
struct ParameterAt {
  friend auto type_at(ParameterAt<T, N>);
};
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
template <class T, std::size_t N, class U>
struct ProbedType {
  friend auto type_at(ParameterAt<T, N>) { return std::type_identity<U>(); }
};

template <class T, std::size_t N>
struct TypeProbe {
  template <class U, class = std::enable_if_t<is_other<T, U>>,
            std::size_t = sizeof(ProbedType<T, N, U>)>
  operator U&() const noexcept;
};

template <class T, std::size_t... N>
auto parameters_of(std::index_sequence<N...>) {
  static_assert(std::is_constructible_v<T, TypeProbe<T, N>...>);
  return Parameters<typename decltype(type_at(ParameterAt<T, N>()))::type&...>();
}

}  // namespace detail

/// Returns true if the parameters of T's constructor can be found.
template <class T>
inline constexpr bool has_one_constructor = detail::count_parameters<T>() <= parameters_max;

/// Returns Parameters<P...> of T's only constructor, each as a reference. Does not compile, with a
/// message, unless there is exactly one way to make a T.
template <class T>
constexpr auto constructor_parameters() {
  static_assert(std::is_class_v<T> && !std::is_abstract_v<T>, "a service is an object of a class");
  constexpr std::size_t count = detail::count_parameters<T>();
  static_assert(count != detail::ambiguous,
                "this class can be made in several ways, so its dependencies are "
                "ambiguous: register a factory, such as [](const A& a) { return T(a); }");
  static_assert(count != detail::no_match,
                "no public constructor of this class takes references to other services (or there "
                "are two with equally many parameters): register a factory instead");
  if constexpr (count <= parameters_max) {
    return detail::parameters_of<T>(std::make_index_sequence<count>());
  } else {
    return Parameters<>();
  }
}

/// Takes the place of a factory for services that are made by their constructor.
template <class T>
struct ConstructorTag {};

}  // namespace weir::inject
