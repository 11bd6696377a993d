// The functions that add routes, one for each usual method.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/route.hpp"

namespace weir::http {

/// The base of a class that adds routes: each function calls add() of Derived with the name of its
/// method, and returns what add() returns. A pattern is a literal, or a Pattern that was made at
/// run time if Derived takes one.
template <class Derived, template <class F> class PatternOf = PatternFor>
class RouteMethods {
 public:
  template <class F>
  auto get(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("GET", pattern, std::move(handler), limits);
  }
  template <class F>
  auto get(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("GET", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto head(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("HEAD", pattern, std::move(handler), limits);
  }
  template <class F>
  auto head(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("HEAD", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto post(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("POST", pattern, std::move(handler), limits);
  }
  template <class F>
  auto post(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("POST", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto put(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PUT", pattern, std::move(handler), limits);
  }
  template <class F>
  auto put(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PUT", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto patch(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PATCH", pattern, std::move(handler), limits);
  }
  template <class F>
  auto patch(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("PATCH", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto del(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("DELETE", pattern, std::move(handler), limits);
  }
  template <class F>
  auto del(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("DELETE", std::move(pattern), std::move(handler), limits);
  }
  template <class F>
  auto options(std::type_identity_t<PatternOf<F>> pattern, F handler, RouteOptions limits = {}) {
    return derived().add("OPTIONS", pattern, std::move(handler), limits);
  }
  template <class F>
  auto options(Pattern pattern, F handler, RouteOptions limits = {}) {
    return derived().add("OPTIONS", std::move(pattern), std::move(handler), limits);
  }

 private:
  Derived& derived() noexcept { return static_cast<Derived&>(*this); }
};

}  // namespace weir::http
