// Counters, gauges and histograms of an application, for exporters such as mount_metrics().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/telemetry/metrics/detail/cells.hpp"
#include "weir/telemetry/metrics/detail/series.hpp"

namespace weir::telemetry {

// Each thread counts in its own cells, so an addition is a load and a store. A metric with the
// same name is the same metric, so a service that replaces another goes on with its totals.

/// Describes a Counter or a Gauge.
struct MetricOptions {
  std::string help = {};                 ///< one sentence for people
  std::string unit = {};                 ///< in UCUM, such as "s", "By" or "{order}"
  std::vector<std::string> labels = {};  ///< the names of the labels
  /// Number of sets of label values. Measurements of further sets are counted as
  /// telemetry_measurements_dropped of the metric, and not in the metric.
  std::size_t label_sets_max = 200;
};

/// The bounds of OpenTelemetry for durations in seconds, from 5 ms to 10 s.
std::vector<double> duration_bounds();

/// Describes a Histogram.
struct HistogramOptions {
  std::string help = {};
  std::string unit = "s";                ///< in UCUM; record(Duration) needs "s"
  std::vector<std::string> labels = {};  ///< the names of the labels
  std::size_t label_sets_max = 200;      ///< see MetricOptions
  /// The upper bounds of the buckets, in ascending order; at most 64.
  std::vector<double> bounds = duration_bounds();
  /// Also counts in exponential buckets (schema 3 of Prometheus), which costs 2 KiB for each series
  /// and core.
  bool native = true;
  /// The smallest value that has an exponential bucket of its own. Smaller values share the zero
  /// bucket. Values above 2^30 times this value share the last bucket.
  double native_min = 1e-6;
};

/// The total of one set of label values. It is a small value that a hot path keeps.
/// Threads: any.
class CounterSeries {
 public:
  void add(std::uint64_t amount = 1) const noexcept {
    if (detail::Cell* const cell = detail::ThreadCells::of(cell_)) cell->add(dropped_ ? 1 : amount);
  }

 private:
  friend class Counter;
  explicit CounterSeries(const detail::Series& series) noexcept
      : cell_(series.first), dropped_(series.dropped) {}
  detail::CellId cell_;
  bool dropped_;
};

/// A Counter is a total that only grows, such as the orders that a shop has taken. It is a member
/// of a service or of any object.
/// Threads: any.
class Counter {
 public:
  /// Errors: throws std::invalid_argument if the name is empty or names another kind of metric;
  /// std::bad_alloc. Names of metrics, or of labels of one metric, that Prometheus could not tell
  /// apart are std::invalid_argument too. "a.b" and "a_b" are one name there.
  explicit Counter(std::string_view name, const MetricOptions& options = {});

  /// Adds to the total of a counter without labels.
  void add(std::uint64_t amount = 1) const noexcept { series_.add(amount); }
  /// Returns the total of these label values, in the order of MetricOptions::labels. It allocates
  /// memory and takes a lock only for values that are new, until there are label_sets_max. A byte
  /// that is not part of a printable character and no line feed counts as the text \xNN.
  template <class... Values>
  CounterSeries with(const Values&... values) const noexcept;
  /// Returns the present total of a counter without labels, over all threads.
  std::uint64_t value() const noexcept { return detail::ThreadCells::sum(series_.cell_); }

 private:
  detail::Family* family_;
  CounterSeries series_;
};

/// The value of one set of label values of a Gauge.
/// Threads: any.
class GaugeSeries {
 public:
  void add(std::int64_t amount = 1) const noexcept {
    detail::Cell* const cell = detail::ThreadCells::of(cell_);
    if (cell != nullptr) cell->add(dropped_ ? 1 : static_cast<std::uint64_t>(amount));
  }
  void subtract(std::int64_t amount = 1) const noexcept { add(-amount); }

 private:
  friend class Gauge;
  explicit GaugeSeries(const detail::Series& series) noexcept
      : cell_(series.first), dropped_(series.dropped) {}
  detail::CellId cell_;
  bool dropped_;
};

/// A Gauge is a value that goes up and down, such as the jobs in a queue. Gauges with the same name
/// add up, so that each core's service has its own Gauge.
/// Threads: any; set() on one thread at a time.
class Gauge {
 public:
  /// Errors: those of Counter.
  explicit Gauge(std::string_view name, const MetricOptions& options = {});
  /// Removes the value of set().
  ~Gauge() { set(0); }
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

  void add(std::int64_t amount = 1) const noexcept { series_.add(amount); }
  void subtract(std::int64_t amount = 1) const noexcept { series_.subtract(amount); }
  /// Replaces the value that this object has set before.
  void set(std::int64_t value) noexcept {
    if (value != set_) series_.add(value - set_);
    set_ = value;
  }
  /// Returns the value of these label values; see Counter::with().
  template <class... Values>
  GaugeSeries with(const Values&... values) const noexcept;
  std::int64_t value() const noexcept {
    return static_cast<std::int64_t>(detail::ThreadCells::sum(series_.cell_));
  }

 private:
  detail::Family* family_;
  GaugeSeries series_;
  std::int64_t set_ = 0;
};

/// The distribution of one set of label values of a Histogram.
/// Threads: any.
class HistogramSeries {
 public:
  /// Records a value in the unit of the histogram.
  void record(double value) const noexcept;
  /// Records a duration, in a histogram of seconds.
  void record(Duration value) const noexcept {
    record(std::chrono::duration<double>(value).count());
  }

 private:
  friend class Histogram;
  friend class ServerMetrics;
  explicit HistogramSeries(const detail::Series& series) noexcept : series_(&series) {}
  const detail::Series* series_;
};

/// A Histogram counts values in buckets, such as the durations of calls.
/// Threads: any.
class Histogram {
 public:
  /// Errors: those of Counter; std::invalid_argument if the bounds do not ascend or are more than
  /// 64.
  explicit Histogram(std::string_view name, const HistogramOptions& options = {});

  void record(double value) const noexcept { series_.record(value); }
  void record(Duration value) const noexcept { series_.record(value); }
  /// Returns the distribution of these label values; see Counter::with().
  template <class... Values>
  HistogramSeries with(const Values&... values) const noexcept;
  /// Returns the number of recorded values of a histogram without labels.
  std::uint64_t count() const noexcept;

 private:
  friend class ServerMetrics;
  detail::Family* family_;
  HistogramSeries series_;
};

namespace detail {

/// Adds a value to the cells of a histogram, as often as it was measured.
inline void record(const HistogramLayout& layout, Cell* cells, const HistogramLayout::Place& place,
                   std::uint64_t times = 1) noexcept {
  cells[0].add(place.value * static_cast<double>(times));
  cells[place.bucket].add(times);
  if (layout.native) cells[place.native_bucket].add(times);
}

/// Returns the series of these values; missing values are empty, further ones are left out.
const Series& find_series(Family& family, LabelValues values) noexcept;

}  // namespace detail

template <class... Values>
CounterSeries Counter::with(const Values&... values) const noexcept {
  const std::array<std::string_view, sizeof...(Values)> texts{std::string_view(values)...};
  return CounterSeries(detail::find_series(*family_, texts));
}
template <class... Values>
GaugeSeries Gauge::with(const Values&... values) const noexcept {
  const std::array<std::string_view, sizeof...(Values)> texts{std::string_view(values)...};
  return GaugeSeries(detail::find_series(*family_, texts));
}
template <class... Values>
HistogramSeries Histogram::with(const Values&... values) const noexcept {
  const std::array<std::string_view, sizeof...(Values)> texts{std::string_view(values)...};
  return HistogramSeries(detail::find_series(*family_, texts));
}

}  // namespace weir::telemetry
