// The requests that an owner of routes has on each core.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "weir/http/route_reader.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {

/// Those of all routes of one owner on one core that wait, as their RouteUses. Threads: that
/// core's.
struct RouteTenancy {
  List<RouteUse> requests;
  CoreManualResetEvent empty{true};  ///< reset by who waits for the last of them

  void left() {
    if (requests.empty()) empty.set();
  }
};

/// One owner's, on the cores that it answers on.
/// Threads: on() any; a tenancy is its core's. Lifetime: longer than its requests.
class RouteTenancies {
 public:
  /// On one core, or on all `cores`.
  RouteTenancies(std::string owner, std::size_t cores)
      : owner_(std::move(owner)),
        size_(cores),
        tenancies_(std::make_unique<RouteTenancy[]>(cores)) {}

  RouteTenancy& on(const Loop& loop) noexcept { return tenancies_[size_ == 1 ? 0 : loop.core()]; }
  /// Whose they are, for people.
  const std::string& owner() const noexcept { return owner_; }

 private:
  std::string owner_;
  std::size_t size_;
  std::unique_ptr<RouteTenancy[]> tenancies_;
};

}  // namespace weir::http
