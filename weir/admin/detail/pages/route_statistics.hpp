// Counts and times of the requests of each route, by core.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/time.hpp"
#include "weir/http/server/server_observer.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::admin {

/// Times in buckets, each at most a quarter wider than the one below.
class TimeHistogram {
 public:
  static constexpr std::size_t buckets_max = 112;

  void add(Duration time) noexcept { ++counts_[bucket_of(time)]; }
  void add_count(std::size_t bucket, std::uint64_t count) noexcept { counts_[bucket] += count; }
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
std::string name_of(const http::RouteName* route, http::Method method);

/// The counts of one route on one core. Other threads may read them meanwhile.
/// Threads: the core's; any for add_to().
class RouteCounters {
 public:
  RouteCounters(const http::RouteName* route, http::Method method) noexcept
      : route_(route), method_(method) {}

  const http::RouteName* route() const noexcept { return route_; }
  http::Method method() const noexcept { return method_; }
  void add(const http::EndedRequest& request, Duration time) noexcept;
  /// Adds the present values to a sum. It reads each value separately.
  void add_to(RouteCounts& sum) const noexcept;

 private:
  const http::RouteName* route_;
  http::Method method_;
  weir::detail::Counter requests_;
  weir::detail::Counter failures_;
  weir::detail::Counter incomplete_;
  weir::detail::Counter longest_;  // in nanoseconds
  std::array<weir::detail::Counter, TimeHistogram::buckets_max> times_;
};

/// The routes of one core, as a slot of its loop.
/// Threads: the loop's; any for size() and at().
class CoreRoutes {
 public:
  /// Limit of entries. Further routes count as those of the router itself.
  static constexpr std::size_t routes_max = 1024;

  CoreRoutes() = default;
  CoreRoutes(const CoreRoutes&) = delete;
  CoreRoutes& operator=(const CoreRoutes&) = delete;
  ~CoreRoutes();

  void add(const http::EndedRequest& request, Duration time) noexcept;
  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  /// Returns an entry below size(), which is never removed.
  const RouteCounters& at(std::size_t index) const noexcept { return *routes_[index]; }

 private:
  RouteCounters* find(const http::EndedRequest& request);
  RouteCounters& make(const http::RouteName* route, http::Method method);

  std::array<RouteCounters*, routes_max> routes_{};
  std::atomic<std::size_t> size_{0};                   // release: the entries below it are complete
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

/// The sums of all cores, by method and route.
class RouteTable {
 public:
  /// Returns the entry of a method and route, which is made if necessary.
  RouteCounts& at(const http::RouteName* route, http::Method method);
  /// Returns nullptr if there is no such entry.
  const RouteCounts* find(const http::RouteName* route, http::Method method) const noexcept;
  const std::deque<RouteCounts>& all() const noexcept { return routes_; }

 private:
  using Key = std::pair<const http::RouteName*, http::Method>;
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<const void*>()(key.first) ^ static_cast<std::size_t>(key.second);
    }
  };

  std::deque<RouteCounts> routes_;
  std::unordered_map<Key, RouteCounts*, Hash> index_;
};

/// Reads the counts of all cores that run together with `loop`, in several turns.
/// Errors: throws std::bad_alloc.
/// Cancel: not affected.
Task<std::shared_ptr<const RouteTable>> read_routes(Loop& loop);

/// One route, as pages show it.
struct RouteRow {
  const http::RouteName* route = nullptr;
  http::Method method = http::Method::other;
  std::uint64_t requests = 0;  ///< since the start
  std::uint64_t failures = 0;
  std::uint64_t incomplete = 0;
  Duration longest{};
  std::uint64_t recent_requests = 0;
  std::uint64_t recent_failures = 0;
  double rate = 0;  ///< recent requests for each second
  /// Times of the recent requests; those since the start if there were none.
  Duration p50{};
  Duration p90{};
  Duration p99{};
};

/// Returns the routes with requests, those with most recent requests first. `recent` is an older
/// state, or nullptr. It works in several turns of `loop`.
/// Errors: throws std::bad_alloc.
/// Cancel: not affected.
/// Lifetime: both tables outlive the task.
Task<std::vector<RouteRow>> compare_routes(Loop& loop, const RouteTable& now,
                                           const RouteTable* recent, Duration recent_age);

}  // namespace weir::admin
