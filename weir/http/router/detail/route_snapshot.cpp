#include "weir/http/router/detail/route_snapshot.hpp"

#include <cassert>
#include <mutex>
#include <utility>

#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/router/detail/route_update.hpp"
#include "weir/http/router/detail/route_updater.hpp"

namespace weir::http {

/// The way from a notice to the snapshot, if it still exists. A notice may come late, when its
/// loop ends.
struct RouteSnapshot::WeakSnapshot {
  std::mutex mutex;
  RouteSnapshot* snapshot;

  explicit WeakSnapshot(RouteSnapshot& target) noexcept : snapshot(&target) {}
  RouteSnapshot* get() {
    const std::lock_guard lock(mutex);
    return snapshot;
  }
  void clear() {
    const std::lock_guard lock(mutex);
    snapshot = nullptr;
  }
};

/// A notice to a snapshot. It runs in a runnable of its own on the snapshot's loop, or
/// immediately if it is released there. It runs on the releasing thread after the end of that loop;
/// the WeakSnapshot is empty then.
class RouteSnapshot::Notice : public loop::DestroyQueue::Destroyable {
 public:
  using What = void (RouteUpdater::*)(RouteSnapshot&);
  Notice(loop::DestroyQueue& owner_queue, std::shared_ptr<WeakSnapshot> weak_snapshot, What what)
      : Destroyable(owner_queue, &run_on_owner),
        weak_snapshot_(std::move(weak_snapshot)),
        what_(what) {}

 private:
  static void run_on_owner(Destroyable& self) noexcept {
    const std::unique_ptr<Notice> notice(static_cast<Notice*>(&self));
    RouteSnapshot* const snapshot = notice->weak_snapshot_->get();
    if (snapshot != nullptr) (snapshot->updater_.*notice->what_)(*snapshot);
  }
  std::shared_ptr<WeakSnapshot> weak_snapshot_;
  What what_;
};

RouteSnapshot::RouteSnapshot(Loop& loop, RouteUpdater& updater)
    : loop_(loop), updater_(updater), weak_snapshot_(std::make_shared<WeakSnapshot>(*this)) {
  table_ = &updater_.attach(*this);
}

RouteSnapshot::~RouteSnapshot() {
  weak_snapshot_->clear();
  updater_.detach(*this);
}

loop::DestroyQueue::Destroyable& RouteSnapshot::make_notice(
    void (RouteUpdater::*what)(RouteSnapshot&)) {
  return *new Notice(loop_.destroy_queue(), weak_snapshot_, what);
}

RouteInFlight& RouteSnapshot::in_flight_of(const Route& route) {
  while (in_flight_.size() <= route.slot) in_flight_.emplace_back(*this);
  return in_flight_[route.slot];
}

/// Returns the requests that the change waits for; nullptr if there are none.
RouteInFlight* RouteSnapshot::in_flight_of(const RouteUpdate& change) noexcept {
  const Route* const route = change.retired();
  if (route == nullptr || route->slot >= in_flight_.size()) return nullptr;
  RouteInFlight& in_flight = in_flight_[route->slot];
  return in_flight.requests.empty() ? nullptr : &in_flight;
}

void RouteInFlight::on_request_ended() {
  if (!requests.empty() || retiring == nullptr) return;
  snapshot.updater_.on_last_request_ended(*std::exchange(retiring, nullptr));
}

void InFlightRequest::stop_all(weir::detail::List<InFlightRequest>& requests, StopReason reason) {
  for (InFlightRequest* each = requests.front(); each != nullptr; each = requests.next(*each)) {
    each->stop_(*each, reason);
  }
}

InFlightRequest::InFlightRequest(RouteSnapshot& snapshot, const Route* route, Stop stop)
    : stop_(stop) {
  if (route == nullptr) return;
  if (route->owner_in_flight != nullptr) {
    in_flight_ = &route->owner_in_flight->on(snapshot.loop_);
  } else {
    in_flight_ = &snapshot.in_flight_of(*route);
  }
  in_flight_->requests.push_back(*this);
}

InFlightRequest::~InFlightRequest() {
  unlink();
  if (in_flight_ != nullptr) in_flight_->on_request_ended();
}

}  // namespace weir::http
