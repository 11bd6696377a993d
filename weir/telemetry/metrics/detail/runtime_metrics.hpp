// The metrics that Weir counts itself: of the loops, the servers, the pool and other components.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/loop/metrics.hpp"
#include "weir/telemetry/metrics/detail/series.hpp"

namespace weir {
class Loop;
}

namespace weir::telemetry::detail {

/// A metric that was read, with its samples.
struct ReadMetric {
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
  };
  std::string name;
  std::string unit;
  std::string help;
  MetricKind kind = MetricKind::counter;
  std::vector<Sample> samples;
};

/// Reads the metrics of the loops of a group. It takes no lock that a loop holds while it runs a
/// turn.
/// Errors: throws std::bad_alloc.
class RuntimeMetrics {
 public:
  /// Adds the metrics of one loop.
  void add_loop(Loop& loop);
  /// Adds what the loops of the group of `loop` share. Call it once, after add_loop().
  void add_group(Loop& loop);
  void add(const MetricInfo& info, MetricKind kind, double value,
           std::vector<std::pair<std::string, std::string>> labels = {});

  const std::deque<ReadMetric>& metrics() const noexcept { return metrics_; }
  /// Returns the oldest metric and removes it; nullopt if none is left. Nothing may be added after
  /// the first call.
  std::optional<ReadMetric> take();

 private:
  ReadMetric& find(std::string_view name, std::string_view unit, std::string_view help,
                   MetricKind kind);
  void add_component(const Metric& metric);

  std::deque<ReadMetric> metrics_;
  std::unordered_map<std::string_view, ReadMetric*> by_name_;
};

}  // namespace weir::telemetry::detail
