// Counters of things that have names, such as services, as metrics with a label.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/metrics.hpp"

namespace weir::detail {

struct MetricsOfName;

/// Counts for each name what its rows describe. A core has at most names_max names, and further
/// ones share the name "(others)".
/// Threads: the loop's, except for reading the metrics.
class NamedCounters final : MetricSource {
 public:
  /// One counter of each name.
  /// Lifetime: constant.
  struct Row {
    const char* text;  ///< what it counts, in reports for people
    MetricInfo info;   ///< for exporters; the value of its label is the name
    Metric::Kind kind = Metric::Kind::counter;
  };
  static constexpr std::size_t names_max = 64;
  static constexpr std::size_t rows_max = 3;

  /// `rows` is constant, and has at most rows_max elements.
  NamedCounters(Loop& loop, std::span<const Row> rows) noexcept;
  ~NamedCounters() { detach(); }

  /// Returns the counters of `name`, in the order of the rows.
  /// Errors: throws std::bad_alloc.
  std::array<Counter, rows_max>& of(std::string_view name);

 private:
  struct Entry {
    const MetricsOfName* metrics = nullptr;
    std::array<Counter, rows_max> counters;
  };

  void collect(MetricSnapshot& sum) const override;

  const std::span<const Row> rows_;
  std::atomic<std::size_t> count_{0};
  std::array<Entry, names_max + 1> entries_;
};

}  // namespace weir::detail
