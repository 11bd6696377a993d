#include "weir/telemetry/metrics/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace weir::telemetry {
namespace {

constexpr std::size_t bounds_max = 64;

detail::Family& register_metric(std::string_view name, detail::MetricKind kind,
                                const MetricOptions& options) {
  return detail::Registry::instance().family(
      name, {.kind = kind,
             .help = options.help,
             .unit = options.unit,
             .labels = options.labels,
             .label_sets_max = options.labels.empty() ? 1 : options.label_sets_max});
}

detail::Family& register_histogram(std::string_view name, const HistogramOptions& options) {
  if (options.bounds.size() > bounds_max || !std::ranges::is_sorted(options.bounds)) {
    throw std::invalid_argument("histogram \"" + std::string(name) +
                                "\" has too many bounds or unsorted ones");
  }
  detail::HistogramLayout layout{.bounds = options.bounds, .native = options.native};
  if (options.native) {
    const double least = options.native_min > 0 ? options.native_min : 1e-6;
    layout.zero_key =
        static_cast<int>(std::floor(std::log2(least))) * detail::NativeBuckets::per_octave;
  }
  return detail::Registry::instance().family(
      name, {.kind = detail::MetricKind::histogram,
             .help = options.help,
             .unit = options.unit,
             .labels = options.labels,
             .label_sets_max = options.labels.empty() ? 1 : options.label_sets_max,
             .buckets = std::move(layout)});
}

/// Returns the series of a metric without labels; those of a metric with labels are in with().
const detail::Series& unlabelled(detail::Family& family) {
  return family.options().labels.empty() ? family.series({}) : family.dropped();
}

}  // namespace

std::vector<double> duration_bounds() {
  return {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10};
}

Counter::Counter(std::string_view name, const MetricOptions& options)
    : family_(&register_metric(name, detail::MetricKind::counter, options)),
      series_(unlabelled(*family_)) {}

Gauge::Gauge(std::string_view name, const MetricOptions& options)
    : family_(&register_metric(name, detail::MetricKind::gauge, options)),
      series_(unlabelled(*family_)) {}

Histogram::Histogram(std::string_view name, const HistogramOptions& options)
    : family_(&register_histogram(name, options)), series_(unlabelled(*family_)) {}

void HistogramSeries::record(double value) const noexcept {
  detail::Cell* const cells = detail::ThreadCells::of(series_->first);
  if (cells == nullptr) return;
  if (series_->dropped) return cells->add(std::uint64_t{1});
  if (value != value) return;  // not a number
  const detail::HistogramLayout& layout = series_->family->options().buckets;
  detail::record(layout, cells, layout.place_of(value));
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t count = 0;
  const std::size_t buckets = family_->options().buckets.bounds.size() + 1;
  for (std::size_t index = 0; index < buckets; ++index) {
    count +=
        detail::ThreadCells::sum(static_cast<detail::CellId>(series_.series_->first + 1 + index));
  }
  return count;
}

namespace detail {

const Series& find_series(Family& family, LabelValues values) noexcept {
  const std::size_t labels = family.options().labels.size();
  if (values.size() > labels) values = values.first(labels);
  if (values.size() == labels) return family.series(values);
  std::array<std::string_view, 16> filled;
  if (labels > filled.size()) return family.dropped();
  std::ranges::copy(values, filled.begin());
  return family.series(std::span(filled.data(), labels));
}

}  // namespace detail
}  // namespace weir::telemetry
