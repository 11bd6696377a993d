// What the type of a function says: what it returns and what it takes.
#pragma once

#include <type_traits>

namespace weir {

/// A list of types, of parameters as a rule.
template <class... P>
struct Parameters {};

namespace detail {

template <bool callable, class R, class... P>
struct FunctionType {
  using Returned = R;
  using Taken = Parameters<P...>;
  /// False for an operator() that is not const: a mutable lambda's.
  static constexpr bool callable_as_const = callable;
};

template <class T>
struct PlainFunctionType;  // not defined for what is overloaded or generic
template <class R, class... P>
struct PlainFunctionType<R (*)(P...)> : FunctionType<true, R, P...> {};
template <class R, class... P>
struct PlainFunctionType<R (*)(P...) noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...) const> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...) const noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...) const&> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...) const & noexcept> : FunctionType<true, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...)> : FunctionType<false, R, P...> {};
template <class R, class C, class... P>
struct PlainFunctionType<R (C::*)(P...) noexcept> : FunctionType<false, R, P...> {};

template <class F>
constexpr auto function_type() {
  if constexpr (requires { sizeof(PlainFunctionType<F>); }) {
    return PlainFunctionType<F>();
  } else if constexpr (requires { sizeof(PlainFunctionType<decltype(&F::operator())>); }) {
    return PlainFunctionType<decltype(&F::operator())>();
  }
}

}  // namespace detail

/// Of a pointer to a function, or an object with one operator(): a class with the types Returned
/// and Taken (a Parameters<...>), and the constant callable_as_const. void for what is overloaded
/// or generic, and for what is no function.
template <class F>
using FunctionTypeOf = decltype(detail::function_type<F>());

}  // namespace weir
