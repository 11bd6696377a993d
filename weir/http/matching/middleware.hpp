// Middleware: functions around handlers.
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

/// What a middleware is around: `co_await next(request)` gives the answer of the next one, at the
/// end of the handler or of the router itself. Lifetime: the request's.
class Next {
 public:
  /// Cancel: passed on to what it calls.
  Task<Response> operator()(Request& request) const;

 private:
  friend class RouteMatch;
  Next(const RouteMatch& match, std::size_t index) noexcept : match_(&match), index_(index) {}

  const RouteMatch* match_;
  std::size_t index_;
};

/// One `Task<Response> name(Request&, Next next)`, whatever its type was. Threads: any core.
class Middleware {
 public:
  template <class F>
  static Middleware of(F function) {
    static_assert(std::is_invocable_r_v<Task<Response>, const F&, Request&, Next>,
                  "middleware is a Task<Response>(Request&, Next) that may be called as const, "
                  "since all cores share it");
    return Middleware(
        Target(new F(std::move(function)),
               [](const void* object) noexcept { delete static_cast<const F*>(object); }),
        [](const void* object, Request& request, Next next) -> Task<Response> {
          return (*static_cast<const F*>(object))(request, next);
        });
  }
  /// Cancel: passed on to it.
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
