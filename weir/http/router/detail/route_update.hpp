// One change of the routes while they are served, and the wait for its end.
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
#include "weir/http/router/detail/route_updater.hpp"
#include "weir/task/context.hpp"

namespace weir::http {

/// The new handler of a route, for a replacement.
struct HandlerReplacement {
  Handler handler;
  HandlerShape shape;
  std::optional<RouteOptions> options;
};

/// A RouteUpdate is one change of the routes. It lives in the frame of the task that requests the
/// change, which awaits it once. It destroys the removed or replaced route with itself.
/// Cancel: see LiveRoutes.
/// Threads: its loop's; the updater's while it waits.
class RouteUpdate : loop::Runnable, public weir::detail::ListNode {
 public:
  /// Adds a route. The update is done when every core serves the route.
  RouteUpdate(RouteUpdater& updater, std::unique_ptr<Route> added) noexcept
      : loop::Runnable(&on_completed_at_owner),
        updater_(updater),
        kind_(Kind::add),
        route_(std::move(added)) {}
  /// Replaces a route's handler, or removes a route. The update is done when all requests of the
  /// route that began earlier have ended on every core.
  RouteUpdate(RouteUpdater& updater, RouteId id, HandlerReplacement replacement) noexcept
      : loop::Runnable(&on_completed_at_owner),
        updater_(updater),
        kind_(Kind::replace),
        id_(id),
        replacement_(std::move(replacement)) {}
  RouteUpdate(RouteUpdater& updater, RouteId id) noexcept
      : loop::Runnable(&on_completed_at_owner), updater_(updater), kind_(Kind::remove), id_(id) {}
  ~RouteUpdate();

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }
  /// Returns: the id of the route.
  /// Errors: see LiveRoutes.
  Result<RouteId> await_resume() const noexcept {
    if (error_) return fail(error_);
    return id_;
  }

  /// Returns the removed or replaced route, which may still have requests, or nullptr.
  const Route* retired() const noexcept { return retires_ ? route_.get() : nullptr; }

 private:
  friend class RouteUpdater;
  enum class Kind : std::uint8_t { add, replace, remove };
  enum class Stage : std::uint8_t { queued, published, waiting_for_requests, done };
  /// A node of its own, because the update itself is a node of the updater's lists.
  struct CancelHook : CancelNode {
    explicit CancelHook(RouteUpdate& of) noexcept : CancelNode(update_kind), change(of) {}
    static void on_cancel(CancelNode& node);
    static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
      return static_cast<const CancelHook&>(node).change.handle_;
    }
    static constexpr CancelNode::Kind update_kind{&on_cancel, "route update", &coroutine_of};
    RouteUpdate& change;
  };

  bool begin(const Context& context);
  static void on_completed_at_owner(loop::Runnable& self);

  RouteUpdater& updater_;
  const Kind kind_;
  bool retires_ = false;
  RouteId id_;
  std::unique_ptr<Route> route_;  // the route to add, then the removed one
  std::optional<HandlerReplacement> replacement_;
  std::error_code error_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  const void* requesting_route_ = nullptr;  // origin of the requesting task, as a rule a route
  CancelHook cancel_hook_{*this};

  // Guarded by the updater's mutex.
  Stage stage_ = Stage::queued;
  bool stop_requested_ = false;        // true if the awaited requests are to stop
  std::size_t snapshots_pending_ = 0;  // snapshots that may still have requests of the route
};

}  // namespace weir::http
