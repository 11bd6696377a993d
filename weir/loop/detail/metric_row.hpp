// The table in which a MetricSource describes its metrics.
#pragma once

#include <cstdint>
#include <span>

#include "weir/loop/metrics.hpp"

namespace weir::detail {

/// One metric of a Source.
/// Lifetime: constant.
template <class Source>
struct MetricRow {
  const char* name;  ///< in reports for people
  std::uint64_t (*value)(const Source& source);
  MetricInfo info;  ///< for exporters
  Metric::Kind kind = Metric::Kind::counter;
  bool when_used = false;  ///< left out while the value is 0
};

/// The MetricRow::value of a member that is a Counter, such as `count_of<&EventCounters::handled>`.
template <auto Member>
inline constexpr auto count_of =
    [](const auto& source) -> std::uint64_t { return (source.*Member).value(); };

/// Adds the metrics of `source`. The table must be constant, because `sum` keeps its addresses.
template <class Source>
void collect_rows(MetricSnapshot& sum, std::span<const MetricRow<Source>> rows,
                  const Source& source) {
  for (const MetricRow<Source>& each : rows) {
    const std::uint64_t value = each.value(source);
    if (value == 0 && each.when_used) continue;
    sum.add({each.name, value, each.kind, &each.info});
  }
}

}  // namespace weir::detail
