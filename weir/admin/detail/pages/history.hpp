// Reports of the recent past, for rates and for growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/admin/detail/pages/route_statistics.hpp"
#include "weir/base/time.hpp"
#include "weir/runtime/report.hpp"

namespace weir::admin {

/// A report, and the two older ones that it is compared with.
struct Observation {
  RuntimeReport now;
  std::optional<std::uint64_t> resident_bytes;  ///< of the process, now
  RuntimeReport recent;                         ///< some seconds old; for rates
  Duration recent_age{};                        ///< zero: there is no older report
  RuntimeReport oldest;                         ///< up to ten minutes old; for growth
  Duration oldest_age{};
  std::optional<std::uint64_t> oldest_resident_bytes;
  Duration up{};  ///< time since the first report
};

/// The requests of all routes, and their state some seconds ago.
struct RouteObservation {
  std::vector<RouteCounts> now;
  std::vector<RouteCounts> recent;
  Duration recent_age{};  ///< zero: there is no older state
};

/// Keeps the reports of the last requests for a page, at most one for each second. Without requests
/// it does nothing.
/// Threads: any.
class History {
 public:
  /// Adds the report of this moment, and returns it with older ones.
  Observation observe(RuntimeReport report, std::optional<std::uint64_t> resident_bytes,
                      Instant now);
  /// Does the same for routes.
  RouteObservation observe(std::vector<RouteCounts> routes, Instant now);

 private:
  struct RouteSample {
    Instant at;
    std::vector<RouteCounts> routes;
  };
  struct Sample {
    Instant at;
    RuntimeReport report;
    std::optional<std::uint64_t> resident_bytes;
  };
  static constexpr Duration recent_step = std::chrono::seconds(1);
  static constexpr std::size_t recent_max = 5;
  static constexpr Duration old_step = std::chrono::seconds(15);
  static constexpr std::size_t old_max = 40;

  std::mutex mutex_;  // guards the members below
  Instant first_at_ = never;
  std::deque<Sample> recent_;
  std::deque<Sample> old_;
  std::deque<RouteSample> routes_;
};

/// Returns the increase of a counter for each second; nothing is negative.
double rate_of(std::uint64_t now, std::uint64_t before, Duration elapsed) noexcept;

/// Returns the value of the metric with this name; 0 if there is none.
std::uint64_t metric_of(const CoreReport& core, std::string_view name) noexcept;

}  // namespace weir::admin
