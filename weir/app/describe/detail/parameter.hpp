// Parameters of a constructor or factory, without their C++ types.
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
class ServiceRoutes;
}
}  // namespace weir

namespace weir::inject {

enum class DependencyKind : std::uint8_t {
  required,   ///< const T&, T&, inject::Where<T, Filter>: a required service
  optional,   ///< inject::Optional<T>, inject::All<T>: services that appear and disappear
  lazy,       ///< inject::Lazy<T>: a service that is requested when it is used
  remote,     ///< inject::Remote<T>: a service on another core that appears and disappears
  scoped,     ///< inject::Scoped<Root>: factories for scopes, which appear and disappear
  root,       ///< the root object of a scope, for a scoped service
  self,       ///< the factory's own instance, for a factory of scoped services
  requester,  ///< Requester: the requiring service
  scope,      ///< Scope&: where the service may spawn tasks
  loop,       ///< Loop&: the loop that the service runs on
  app,        ///< App&: the app, for introspection
  routes,     ///< http::ServiceRoutes&: where the service may register routes
};

/// Returns true if the parameter takes exactly one service, now or later.
constexpr bool is_single_kind(DependencyKind kind) noexcept {
  return kind == DependencyKind::required || kind == DependencyKind::lazy;
}
/// Returns true if the parameter takes services that may appear and disappear.
constexpr bool is_dynamic_kind(DependencyKind kind) noexcept {
  return kind == DependencyKind::optional || kind == DependencyKind::remote ||
         kind == DependencyKind::scoped;
}
constexpr bool is_service_kind(DependencyKind kind) noexcept {
  return is_single_kind(kind) || is_dynamic_kind(kind);
}

/// One parameter without its C++ type.
struct Parameter {
  const Type* type;
  const Filter* filter;
  DependencyKind kind;
  bool writable;  ///< true if the service may change the argument, which one core alone uses then
};

/// A class of Weir that describes its own parameter, as `static constexpr Parameter parameter`.
/// The container constructs it from the argument: `explicit P(void*)`.
template <class P>
concept DescribesParameter = requires {
  { std::remove_cvref_t<P>::parameter } -> std::convertible_to<Parameter>;
};

/// The kind of a plain reference: a required service, except for the types below.
template <class T>
inline constexpr DependencyKind dependency_kind_of = DependencyKind::required;
template <>
inline constexpr DependencyKind dependency_kind_of<Scope> = DependencyKind::scope;
template <>
inline constexpr DependencyKind dependency_kind_of<Loop> = DependencyKind::loop;
template <>
inline constexpr DependencyKind dependency_kind_of<App> = DependencyKind::app;
template <>
inline constexpr DependencyKind dependency_kind_of<http::ServiceRoutes> = DependencyKind::routes;

template <class P>
inline constexpr bool is_parameter =
    DescribesParameter<P> ||
    (std::is_lvalue_reference_v<P> && std::is_class_v<std::remove_reference_t<P>>);

template <class P>
constexpr Parameter parameter_of() {
  using T = std::remove_cvref_t<P>;
  if constexpr (DescribesParameter<P>) {
    return T::parameter;
  } else {
    static_assert(is_parameter<P>,
                  "a service takes others as `const T&` or `T&`, inject::Where<T, Filter>, "
                  "inject::Optional<T>, inject::All<T>, inject::Lazy<T>, inject::Remote<T>, "
                  "inject::Scoped<Root>, or inject::Requester, Scope&, Loop&, App&, "
                  "http::ServiceRoutes&; for values write a factory");
    return {&type<T>, nullptr, dependency_kind_of<T>, !std::is_const_v<std::remove_reference_t<P>>};
  }
}

/// Returns the argument for a parameter P. `given` is the object or the handle's state.
template <class P>
decltype(auto) argument(void* given) {
  if constexpr (DescribesParameter<P>) {
    return std::remove_cvref_t<P>(given);
  } else {
    return *static_cast<std::remove_reference_t<P>*>(given);
  }
}

}  // namespace weir::inject
