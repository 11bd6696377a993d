// The routes of a router as one core's server sees them, and the requests of that core that use
// them.
#pragma once

#include <deque>
#include <memory>

#include "weir/base/detail/list.hpp"
#include "weir/http/matching/detail/route_table.hpp"
#include "weir/loop/detail/destroy_queue.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

class RouteUpdate;
class RouteUpdater;
class RouteSnapshot;
class InFlightRequests;

/// Keeps the route of a waiting request until the request ends. It lives in the object that
/// serves the connection. A request that is answered within one turn needs none.
/// Threads: its loop's.
class InFlightRequest : public weir::detail::ListNode {
 public:
  enum class StopReason : std::uint8_t {
    removal_begins,  ///< for requests that do not end by themselves, such as WebSockets
    removal_waits,   ///< the removal of the route no longer waits for the request
  };
  /// Stops the request soon, if the reason concerns it. It may be called repeatedly, and resumes no
  /// coroutine itself.
  using Stop = void (*)(InFlightRequest&, StopReason);
  /// `route` is the request's route, or nullptr. Throws std::bad_alloc if there is no memory,
  /// unless RouteSnapshot::reserve() was called for the route.
  InFlightRequest(RouteSnapshot& snapshot, const Route* route, Stop stop);
  ~InFlightRequest();

  /// Calls the Stop of each request of the list.
  static void stop_all(weir::detail::List<InFlightRequest>& requests, StopReason reason);

 private:
  InFlightRequests* in_flight_ = nullptr;
  Stop stop_;
};

/// The waiting requests of one route, or of all routes of one owner, on one core.
/// Threads: that core's.
class InFlightRequests {
 public:
  /// Is called when a request has ended.
  virtual void on_request_ended() = 0;

  weir::detail::List<InFlightRequest> requests;

 protected:
  ~InFlightRequests() = default;
};

/// The waiting requests of one route on one core.
struct RouteInFlight final : InFlightRequests {
  explicit RouteInFlight(RouteSnapshot& owner) noexcept : snapshot(owner) {}
  void on_request_ended() override;

  RouteSnapshot& snapshot;
  RouteUpdate* retiring = nullptr;  ///< update that waits for the last request
};

/// The routes as one server on one core serves them. It takes over the newest published table
/// between two runnables of its loop. The routes therefore never change while a request is looked
/// up and answered within one turn.
/// Threads: its loop's; any thread while the loop does not run.
/// Lifetime: outlives the requests of its server; its loop and its router outlive it.
class RouteSnapshot : public weir::detail::ListNode {
 public:
  RouteSnapshot(Loop& loop, RouteUpdater& updater);
  ~RouteSnapshot();
  const RouteTable& table() const noexcept { return *table_; }
  /// Allocates the memory for an InFlightRequest of `route` in advance.
  void reserve(const Route& route) {
    if (route.owner_in_flight == nullptr) static_cast<void>(in_flight_of(route));
  }

 private:
  friend class RouteUpdater;
  friend class InFlightRequest;
  friend RouteInFlight;
  struct WeakSnapshot;
  class Notice;

  /// Makes a notice whose destroy_on_owner(), on any thread, calls `what` with this snapshot on
  /// the snapshot's loop. It calls nothing if the snapshot is gone by then. The snapshot must be
  /// alive during make_notice().
  loop::DestroyQueue::Destroyable& make_notice(void (RouteUpdater::*what)(RouteSnapshot&));
  RouteInFlight& in_flight_of(const Route& route);
  RouteInFlight* in_flight_of(const RouteUpdate& change) noexcept;

  const RouteTable* table_;
  Loop& loop_;
  RouteUpdater& updater_;
  std::shared_ptr<WeakSnapshot> weak_snapshot_;
  std::deque<RouteInFlight> in_flight_;  // by Route::slot
  bool up_to_date_ = true;               // guarded by the updater's mutex
};

}  // namespace weir::http
