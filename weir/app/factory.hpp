// What a factory's signature says: what it makes and what it asks for.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"

namespace weir::wiring {

template <class... P>
struct Parameters {};

namespace detail {

template <class R, class... P>
struct Function {
  using Returned = R;
  using Taken = Parameters<P...>;
};

template <class T>
struct FunctionOf;  // not defined for what is overloaded or generic
template <class R, class... P>
struct FunctionOf<R (*)(P...)> : Function<R, P...> {};
template <class R, class... P>
struct FunctionOf<R (*)(P...) noexcept> : Function<R, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...) const> : Function<R, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...) const noexcept> : Function<R, P...> {};

template <class F>
auto function_of() {
  if constexpr (requires { sizeof(FunctionOf<F>); }) {
    return FunctionOf<F>();
  } else if constexpr (requires { sizeof(FunctionOf<decltype(&F::operator())>); }) {
    return FunctionOf<decltype(&F::operator())>();
  }
}

template <class R>
struct Made {
  using Stored = R;
  using Service = R;
};
template <class T>
struct Made<Result<T>> : Made<T> {};
template <class T, class D>
struct Made<std::unique_ptr<T, D>> {
  using Stored = std::unique_ptr<T, D>;
  using Service = T;
};

}  // namespace detail

/// A function, or an object with one operator() const (cores may call it at once), that says what
/// it takes.
template <class F>
concept Factory = !std::is_void_v<decltype(detail::function_of<F>())>;

/// Of a factory F: it returns a T, a std::unique_ptr<T>, or a Result of one of them.
template <Factory F>
struct FactoryOf {
  using Returned = typename decltype(detail::function_of<F>())::Returned;
  using Taken = typename decltype(detail::function_of<F>())::Taken;
  using Stored = typename detail::Made<Returned>::Stored;    ///< what is kept
  using Service = typename detail::Made<Returned>::Service;  ///< what others get
};

}  // namespace weir::wiring
