// Middleware: functions and filters that wrap handlers.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/http/matching/core_demands.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class RouteMatch;

/// The rest of the chain after a middleware. `co_await next(request)` returns the response of the
/// next middleware or, at the end of the chain, of the route's handler or of the router itself.
/// Lifetime: that of the request.
class Next {
 public:
  /// Calls the next element of the chain.
  /// Cancel: passed on to the called middleware or handler.
  Task<Response> operator()(Request& request) const;

 private:
  friend class RouteMatch;
  Next(const RouteMatch& match, std::size_t index) noexcept : match_(&match), index_(index) {}

  const RouteMatch* match_;
  std::size_t index_;
};

namespace detail {

template <class F>
concept HasBefore = requires(const F& filter, Request& request) {
  { filter.before(request) } -> std::same_as<std::optional<Response>>;
};
template <class F>
concept HasAfter = requires(const F& filter, Request& request, Response& response) {
  { filter.after(request, response) } -> std::same_as<void>;
};

}  // namespace detail

/// A MiddlewareFilter is middleware that never waits: a class with one or both of these const
/// functions.
///
///     std::optional<Response> before(Request& request) const;
///     void after(Request& request, Response& response) const;
///
/// before() returns the response that replaces the rest of the chain, or nothing. after() changes
/// the response that the rest of the chain has made. A filter is cheaper than a function that takes
/// a Next, because it needs no coroutine. A handler that does not wait stays one. after() also gets
/// each error that the server sends in place of a response, such as 413, 500 or 503. It may
/// therefore run twice for one request, or without before().
template <class F>
concept MiddlewareFilter = detail::HasBefore<F> || detail::HasAfter<F>;

/// One middleware with its type erased: a function `Task<Response> name(Request&, Next next)`, or a
/// MiddlewareFilter.
/// Threads: any core.
class Middleware {
 public:
  template <class F>
  static Middleware of(F function) {
    static_assert(
        MiddlewareFilter<F> || std::is_invocable_r_v<Task<Response>, const F&, Request&, Next>,
        "middleware is a Task<Response>(Request&, Next) with a const operator(), or an "
        "http::MiddlewareFilter with const members, since all cores share it");
    Middleware made(Target(new F(std::move(function)), [](const void* object) noexcept {
      delete static_cast<const F*>(object);
    }));
    made.demands_ = detail::core_demands_of<F>();
    if constexpr (!MiddlewareFilter<F>) {
      made.call_ = [](const void* object, Request& request, Next next) -> Task<Response> {
        return (*static_cast<const F*>(object))(request, next);
      };
    }
    if constexpr (detail::HasBefore<F>) {
      made.before_ = [](const void* object, Request& request) {
        return static_cast<const F*>(object)->before(request);
      };
    }
    if constexpr (detail::HasAfter<F>) {
      made.after_ = [](const void* object, Request& request, Response& response) {
        static_cast<const F*>(object)->after(request, response);
      };
    }
    return made;
  }
  /// Returns true for a function, which may wait; false for a filter.
  bool waits() const noexcept { return call_ != nullptr; }
  /// Calls the function.
  /// Cancel: passed on to the function.
  Task<Response> operator()(Request& request, Next next) const {
    return call_(target_.get(), request, next);
  }
  /// Calls the functions of a filter; those that it does not have do nothing.
  std::optional<Response> before(Request& request) const {
    if (before_ == nullptr) return std::nullopt;
    return before_(target_.get(), request);
  }
  void after(Request& request, Response& response) const {
    if (after_ != nullptr) after_(target_.get(), request, response);
  }
  bool has_after() const noexcept { return after_ != nullptr; }
  /// Returns what the middleware takes on the core of `loop`; nothing if it does not declare it.
  CoreDemands demands(Loop& loop) const {
    return demands_ != nullptr ? demands_(target_.get(), loop) : CoreDemands();
  }

 private:
  using Target = std::unique_ptr<const void, void (*)(const void*) noexcept>;
  explicit Middleware(Target target) noexcept : target_(std::move(target)) {}

  Target target_;
  Task<Response> (*call_)(const void* target, Request&, Next) = nullptr;
  std::optional<Response> (*before_)(const void* target, Request&) = nullptr;
  void (*after_)(const void* target, Request&, Response&) = nullptr;
  detail::CoreDemandsOf demands_ = nullptr;
};

/// The middleware of the groups of a route, outermost first.
/// Threads: const members on any thread.
class GroupMiddleware {
 public:
  void push_back(std::shared_ptr<const Middleware> middleware) {
    waits_ = waits_ || middleware->waits();
    list_.push_back(std::move(middleware));
  }
  void append(const GroupMiddleware& inner) {
    list_.insert(list_.end(), inner.list_.begin(), inner.list_.end());
    waits_ = waits_ || inner.waits_;
  }
  bool empty() const noexcept { return list_.empty(); }
  std::size_t size() const noexcept { return list_.size(); }
  const Middleware& operator[](std::size_t index) const noexcept { return *list_[index]; }
  /// Returns true if one of the middleware may wait.
  bool waits() const noexcept { return waits_; }

 private:
  std::vector<std::shared_ptr<const Middleware>> list_;
  bool waits_ = false;
};

}  // namespace weir::http
