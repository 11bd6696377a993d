// Counts and times of the requests of each route, by core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/server/server_observer.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/loop/loop.hpp"

namespace weir::admin {

/// Times in buckets, each at most a quarter wider than the one below.
class TimeHistogram {
 public:
  static constexpr std::size_t buckets_max = 112;

  void add(Duration time) noexcept { ++counts_[bucket_of(time)]; }
  void add(const TimeHistogram& other) noexcept;
  /// Removes the times of an older state of the same histogram.
  void subtract(const TimeHistogram& older) noexcept;
  std::uint64_t count() const noexcept;
  /// Returns the time that `part` of all times do not exceed, from 0 to 1; zero if there are none.
  Duration quantile(double part) const noexcept;

  static std::size_t bucket_of(Duration time) noexcept;
  /// Returns the first time that is longer than all times of a bucket.
  static Duration end_of(std::size_t bucket) noexcept;

 private:
  std::array<std::uint64_t, buckets_max> counts_{};
};

/// The ended requests of one method and route.
struct RouteCounts {
  const http::RouteName* route = nullptr;  ///< nullptr: the router itself answered, as with 404
  http::Method method = http::Method::other;
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;    ///< with a status of 500 or more
  std::uint64_t incomplete = 0;  ///< whose client left before it had the response
  Duration longest{};
  TimeHistogram times;
};

/// Returns "GET /notes/{id}".
std::string name_of(const RouteCounts& counts);

/// The routes of one core, as a slot of its loop.
/// Threads: the loop's.
class CoreRoutes {
 public:
  /// Limit of entries. Further routes count as those of the router itself.
  static constexpr std::size_t routes_max = 256;

  void add(const http::EndedRequest& request, Duration time) noexcept;
  const std::vector<RouteCounts>& all() const noexcept { return routes_; }

 private:
  RouteCounts* find(const http::EndedRequest& request);

  std::vector<RouteCounts> routes_;
  std::vector<std::vector<std::uint16_t>> by_number_;  // indices of routes_, by RouteName::number
};

/// Counts the ended requests of servers, and passes them on.
/// Threads: each core calls it on its own thread.
class RouteObserver final : public http::ServerObserver {
 public:
  /// `next` gets the same requests, unless it is nullptr.
  explicit RouteObserver(http::ServerObserver* next) noexcept : next_(next) {}
  void on_requests_ended(Loop& loop, Instant end,
                         std::span<const http::EndedRequest> requests) noexcept override;

 private:
  http::ServerObserver* next_;
};

/// Adds the counts of one core to the sums of all.
void add_routes(std::vector<RouteCounts>& sums, const std::vector<RouteCounts>& core);

}  // namespace weir::admin
