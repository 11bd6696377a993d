// The seats of a route that each core answers by itself: who answers there, and who waits for that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {

struct Route;

/// One core's seat. Who has it is the tenant: the route, of some owner, whose handler answers.
/// Threads: its core's.
class RouteSeat {
 public:
  /// nullptr: nobody is there.
  const Route* tenant() const noexcept { return tenant_; }
  /// Nobody is there, but somebody will be soon: requests wait for that.
  bool expecting() const noexcept { return expecting_; }

  /// Also from another: requests that come from now on are the new one's.
  void take(const Route& tenant) {
    tenant_ = &tenant;
    settle();
  }
  void leave(bool expecting) {
    tenant_ = nullptr;
    expecting_ = expecting;
    if (expecting) settled_.reset();
  }
  /// Nobody comes any more.
  void give_up() {
    if (expecting_) settle();
  }

  /// `co_await seat.settled()`: returns when nobody is expected, because somebody came or nobody
  /// will. Look again then. Errors: Errc::cancelled.
  /// Cancel: returns in the loop's next round.
  auto settled() noexcept { return settled_.wait(); }

 private:
  friend class RouteSeats;
  void settle() {
    expecting_ = false;
    settled_.set();
  }

  const Loop* loop_ = nullptr;
  const Route* tenant_ = nullptr;
  bool expecting_ = false;
  CoreManualResetEvent settled_{true};
};

/// Threads: on() any; a seat is its core's. Lifetime: longer than the requests that wait for one.
class RouteSeats {
 public:
  /// For the loops of one group: a loop's core() is its place in `loops`. Requests that wait for
  /// somebody wait for `wait_max`.
  RouteSeats(std::span<Loop* const> loops, Duration wait_max);

  /// nullptr on a loop that is none of them: another runtime's that serves the router too.
  RouteSeat* on(const Loop& loop) noexcept {
    const std::size_t core = loop.core();
    if (core >= size_ || seats_[core].loop_ != &loop) return nullptr;
    return &seats_[core];
  }
  Duration wait_max() const noexcept { return wait_max_; }

 private:
  std::size_t size_;
  Duration wait_max_;
  std::unique_ptr<RouteSeat[]> seats_;
};

}  // namespace weir::http
