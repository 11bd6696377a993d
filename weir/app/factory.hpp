// What a factory's signature says: what it makes and what it asks for.
#pragma once

#include <memory>
#include <type_traits>

#include "weir/base/detail/function_type.hpp"
#include "weir/base/result.hpp"

namespace weir::wiring {

namespace detail {

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
concept Factory = requires { requires FunctionTypeOf<F>::callable_as_const; };

/// Of a factory F: it returns a T, a std::unique_ptr<T>, or a Result of one of them.
template <Factory F>
struct FactoryOf {
  using Returned = typename FunctionTypeOf<F>::Returned;
  using Taken = typename FunctionTypeOf<F>::Taken;
  using Stored = typename detail::Made<Returned>::Stored;    ///< what is kept
  using Service = typename detail::Made<Returned>::Service;  ///< what others get
};

}  // namespace weir::wiring
