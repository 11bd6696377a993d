// What a parameter of a constructor or factory asks for.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "weir/app/describe/service_options.hpp"
#include "weir/base/detail/type_name.hpp"

namespace weir {
class App;
class Loop;
class Scope;
namespace http {
class Routes;
}
}  // namespace weir

namespace weir::wiring {

enum class Need : std::uint8_t {
  required,   ///< const T&, T&, Chosen<T, Filter>: not without it
  some,       ///< Optional<T>, All<T>: as they come and go
  lazy,       ///< Lazy<T>: when it asks for it
  remote,     ///< Remote<T>: on another core, as it comes and goes
  opened,     ///< Scoped<Seed>: what is made for scopes, as it comes and goes
  seed,       ///< of a scoped service: what its scope was opened for
  self,       ///< of the maker of scoped services: its node
  requester,  ///< Requester: who asks
  scope,      ///< Scope&: where the service may spawn
  loop,       ///< Loop&: the loop that it lives on
  app,        ///< App&: for introspection
  routes,     ///< http::Routes&: where the service may register routes
};

/// Whether it is for one other service, which must be there sooner or later.
constexpr bool is_for_one(Need need) noexcept {
  return need == Need::required || need == Need::lazy;
}
/// Whether it is for services that may come and go meanwhile.
constexpr bool is_for_any(Need need) noexcept {
  return need == Need::some || need == Need::remote || need == Need::opened;
}
constexpr bool is_for_others(Need need) noexcept {
  return is_for_one(need) || is_for_any(need);
}

/// One parameter, without its C++ type.
struct Parameter {
  const Type* type;
  const Filter* filter;
  Need need;
  bool writable;  ///< the service may change what it is given: only on one core
};

/// A class of Weir's own that says itself what it needs, as `static constexpr Parameter needs`, and
/// is made of what the wiring gives: `explicit P(void*)`.
template <class P>
concept TellsItsNeed = requires {
  { std::remove_cvref_t<P>::needs } -> std::convertible_to<Parameter>;
};

/// What a plain reference asks for: another service, but for the few types below.
template <class T>
inline constexpr Need need_of = Need::required;
template <>
inline constexpr Need need_of<Scope> = Need::scope;
template <>
inline constexpr Need need_of<Loop> = Need::loop;
template <>
inline constexpr Need need_of<App> = Need::app;
template <>
inline constexpr Need need_of<http::Routes> = Need::routes;

template <class P>
inline constexpr bool is_parameter =
    TellsItsNeed<P> ||
    (std::is_lvalue_reference_v<P> && std::is_class_v<std::remove_reference_t<P>>);

template <class P>
constexpr Parameter parameter_of() {
  using T = std::remove_cvref_t<P>;
  if constexpr (TellsItsNeed<P>) {
    return T::needs;
  } else {
    static_assert(
        is_parameter<P>,
        "a service asks for others by `const T&` or `T&`, Chosen<T, Filter>, Optional<T>, "
        "All<T>, Lazy<T>, Remote<T>, Scoped<Seed>, or for Requester, Scope&, Loop&, App&, "
        "http::Routes&; for values write a factory");
    return {&type<T>, nullptr, need_of<T>, !std::is_const_v<std::remove_reference_t<P>>};
  }
}

/// The argument for a parameter P: `given` is the object or cell that was found for it.
template <class P>
decltype(auto) argument(void* given) {
  if constexpr (TellsItsNeed<P>) {
    return std::remove_cvref_t<P>(given);
  } else {
    return *static_cast<std::remove_reference_t<P>*>(given);
  }
}

}  // namespace weir::wiring
