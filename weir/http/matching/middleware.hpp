// Middleware: functions that wrap handlers.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

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

/// One middleware function, `Task<Response> name(Request&, Next next)`, with its type erased.
/// Threads: any core.
class Middleware {
 public:
  template <class F>
  static Middleware of(F function) {
    static_assert(std::is_invocable_r_v<Task<Response>, const F&, Request&, Next>,
                  "middleware is a Task<Response>(Request&, Next) with a const operator(), "
                  "since all cores share it");
    return Middleware(
        Target(new F(std::move(function)),
               [](const void* object) noexcept { delete static_cast<const F*>(object); }),
        [](const void* object, Request& request, Next next) -> Task<Response> {
          return (*static_cast<const F*>(object))(request, next);
        });
  }
  /// Calls the function.
  /// Cancel: passed on to the function.
  Task<Response> operator()(Request& request, Next next) const {
    return call_(target_.get(), request, next);
  }

 private:
  using Target = std::unique_ptr<const void, void (*)(const void*) noexcept>;
  using Call = Task<Response> (*)(const void* target, Request&, Next);
  Middleware(Target target, Call call) noexcept : target_(std::move(target)), call_(call) {}

  Target target_;
  Call call_;
};

}  // namespace weir::http
