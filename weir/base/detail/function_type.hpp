// Type traits of functions: the return type and the parameter types.
#pragma once

#include <type_traits>

namespace weir {

/// A list of types, usually those of a function's parameters.
template <class... P>
struct Parameters {};

namespace detail {

template <bool callable, class R, class... P>
struct FunctionType {
  using ReturnType = R;
  using ParameterTypes = Parameters<P...>;
  /// False for an operator() that is not const, such as that of a mutable lambda.
  static constexpr bool callable_as_const = callable;
};

template <class T>
struct FunctionTraits;  // undefined for overloaded and generic functions
template <class R, class... P>
struct FunctionTraits<R (*)(P...)> : FunctionType<true, R, P...> {};
template <class R, class... P>
struct FunctionTraits<R (*)(P...) noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const&> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const & noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...)> : FunctionType<false, R, P...> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) noexcept> : FunctionType<false, R, P...> {};

template <class F>
constexpr auto function_type() {
  if constexpr (requires { sizeof(FunctionTraits<F>); }) {
    return FunctionTraits<F>();
  } else if constexpr (requires { sizeof(FunctionTraits<decltype(&F::operator())>); }) {
    return FunctionTraits<decltype(&F::operator())>();
  }
}

}  // namespace detail

/// The traits of F, a function pointer or a class with one operator(). FunctionTypeOf<F> is a class
/// with the types ReturnType and ParameterTypes (a Parameters<...>) and the constant
/// callable_as_const. It is void if F is overloaded, generic or not a function.
template <class F>
using FunctionTypeOf = decltype(detail::function_type<F>());

}  // namespace weir
