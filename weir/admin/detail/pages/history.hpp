// Reports of the recent past, for rates and for growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/admin/detail/pages/route_statistics.hpp"
#include "weir/base/time.hpp"
#include "weir/runtime/report.hpp"

namespace weir::admin {

/// The memory at one moment of the past.
struct MemorySample {
  Duration age{};
  std::optional<std::uint64_t> resident_bytes;
  std::uint64_t frames = 0;
  std::uint64_t buffers = 0;
  std::uint64_t blocks = 0;
  std::uint64_t connections = 0;
};

/// A report, and the two older ones that it is compared with.
struct Observation {
  RuntimeReport now;
  std::optional<std::uint64_t> resident_bytes;  ///< of the process, now
  RuntimeReport recent;                         ///< some seconds old; for rates
  Duration recent_age{};                        ///< zero: there is no older report
  RuntimeReport oldest;                         ///< up to ten minutes old; for growth
  Duration oldest_age{};
  std::optional<std::uint64_t> oldest_resident_bytes;
  Duration up{};                     ///< time since the first report
  std::vector<MemorySample> memory;  ///< of the last ten minutes, the latest one first
};

/// The requests of all routes some seconds ago.
struct RouteObservation {
  std::shared_ptr<const RouteTable> recent;  ///< nullptr: there is no older state
  Duration recent_age{};
};

/// Keeps the reports of the last requests for a page, at most one for each second. Without requests
/// it does nothing.
/// Threads: any.
class History {
 public:
  /// Adds the report of this moment, and returns it with older ones.
  Observation observe(RuntimeReport report, std::optional<std::uint64_t> resident_bytes,
                      Instant now);
  /// Adds the routes of this moment, and returns older ones.
  RouteObservation observe(std::shared_ptr<const RouteTable> routes, Instant now);

 private:
  struct RouteSample {
    Instant at;
    std::shared_ptr<const RouteTable> routes;
  };
  struct Sample {
    Instant at;
    RuntimeReport report;
    std::optional<std::uint64_t> resident_bytes;
  };
  static MemorySample memory_of(const Sample& sample, Duration age);

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

/// Returns the value of metric_of(). It looks first at `place`, where another core has the metric.
std::uint64_t metric_at(const CoreReport& core, std::size_t place, std::string_view name) noexcept;

}  // namespace weir::admin
