// A change of the routes while they are served: what is asked for, and the wait until it is done.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/route_publisher.hpp"
#include "weir/task/context.hpp"

namespace weir::http {

/// What a handler is replaced by.
struct Replacement {
  Handler handler;
  HandlerShape shape;
  std::optional<RouteOptions> options;
};

/// It lives in the frame of the task that asks for the change and awaits it, once. What goes, a
/// route that was removed or replaced, is destroyed with it.
/// Threads: its loop's; the publisher's while it waits.
class RouteChange : Runnable, public ListNode {
 public:
  /// Adds the route. Done when every core serves it.
  RouteChange(RoutePublisher& publisher, std::unique_ptr<Route> added) noexcept
      : Runnable(&came_home), publisher_(publisher), kind_(Kind::add), route_(std::move(added)) {}
  /// Replaces its handler, or removes it. Done when the last request on every core has ended that
  /// began before.
  RouteChange(RoutePublisher& publisher, RouteId id, Replacement replacement) noexcept
      : Runnable(&came_home),
        publisher_(publisher),
        kind_(Kind::replace),
        id_(id),
        replacement_(std::move(replacement)) {}
  RouteChange(RoutePublisher& publisher, RouteId id) noexcept
      : Runnable(&came_home), publisher_(publisher), kind_(Kind::remove), id_(id) {}
  ~RouteChange();

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }
  /// The id of the route. Errors: see LiveRoutes.
  Result<RouteId> await_resume() const noexcept {
    if (error_) return fail(error_);
    return id_;
  }

  /// The route that has been taken out and still has requests, or nullptr.
  const Route* retired() const noexcept { return retires_ ? route_.get() : nullptr; }

 private:
  friend class RoutePublisher;
  enum class Kind : std::uint8_t { add, replace, remove };
  enum class Stage : std::uint8_t { asked, published, settled, done };
  /// Its own, since the change is in the publisher's lists as itself.
  struct Cancelling : CancelNode {
    explicit Cancelling(RouteChange& of) noexcept : CancelNode(&ask), change(of) {}
    static void ask(CancelNode& node);
    RouteChange& change;
  };

  bool begin(const Context& context);
  static void came_home(Runnable& self);

  RoutePublisher& publisher_;
  const Kind kind_;
  bool retires_ = false;
  RouteId id_;
  std::unique_ptr<Route> route_;  // the one that comes, then the one that goes
  std::optional<Replacement> replacement_;
  std::error_code error_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  const void* unit_ = nullptr;  // that asks for it: a request's, as a rule
  Cancelling cancelling_{*this};

  // Guarded by the publisher's mutex.
  Stage stage_ = Stage::asked;
  bool impatient_ = false;      // those who are waited for have been asked to stop
  std::size_t unfinished_ = 0;  // readers that may still have requests of the route
};

}  // namespace weir::http
