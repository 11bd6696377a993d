#include "weir/telemetry/metrics/mount_metrics.hpp"

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/telemetry/metrics/detail/cells.hpp"
#include "weir/telemetry/metrics/detail/exposition.hpp"
#include "weir/telemetry/metrics/detail/runtime_metrics.hpp"
#include "weir/telemetry/metrics/detail/series.hpp"

namespace weir::telemetry {
namespace {

using detail::Exposition;
using detail::Label;
using detail::MetricKind;
using detail::ThreadCells;

/// Longest time of a loop turn that the page takes. It ends with the series that exceeds it.
constexpr Duration piece_time = std::chrono::microseconds(100);
/// Series between two looks at the clock. The page looks after each histogram.
constexpr std::size_t series_per_look = 16;

/// Returns the value of a counter or gauge.
double value_of(const detail::Series& series, MetricKind kind) noexcept {
  const std::uint64_t sum = ThreadCells::sum(series.first);
  if (kind == MetricKind::counter) return static_cast<double>(sum);
  return static_cast<double>(static_cast<std::int64_t>(sum));
}

/// Reads the cells of one thread after the other, because those of a series lie in a row.
void read_histogram(const detail::Series& series, const detail::HistogramLayout& layout,
                    bool native, detail::HistogramData& data) {
  data.sum = 0;
  data.counts.assign(layout.bounds.size() + 1, 0);
  data.native_counts.assign(native ? layout.cell_count() - layout.native_offset() : 0, 0);
  for (const ThreadCells* each = ThreadCells::first(); each != nullptr; each = each->next()) {
    const detail::Cell* const cells = each->find(series.first);
    if (cells == nullptr) continue;
    data.sum += cells[0].real();
    for (std::size_t index = 0; index < data.counts.size(); ++index) {
      data.counts[index] += cells[1 + index].value();
    }
    const detail::Cell* const native_cells = cells + layout.native_offset();
    for (std::size_t index = 0; index < data.native_counts.size(); ++index) {
      data.native_counts[index] += native_cells[index].value();
    }
  }
}

/// Writes the page to the client, one piece for each loop turn.
class PageWriter {
 public:
  PageWriter(Loop& loop, http::BodySink& sink, detail::Format format,
             const MetricsPageOptions& options) noexcept
      : loop_(loop), sink_(sink), format_(format), options_(options), out_(format) {}

  Task<Result<>> write() {
    begin_piece();
    if (options_.runtime) {
      WEIR_CO_TRY(co_await write_runtime());
    }
    WEIR_CO_TRY(co_await write_families());
    WEIR_CO_TRY(co_await write_dropped());
    out_.finish();
    WEIR_CO_TRY(co_await flush());
    co_return co_await flush();  // what is behind the complete pieces
  }

 private:
  void begin_piece() noexcept {
    looks_at_ = series_per_look;
    piece_end_ = after(loop_.platform().now(), piece_time);
  }
  /// Ends a piece: sends what is complete, and goes on in the next turn.
  Task<Result<>> flush() {
    do {
      const std::string piece = out_.take();
      if (!piece.empty()) {
        WEIR_CO_TRY(co_await sink_.write(piece));
      }
      co_await weir::detail::NextTurn(loop_);
    } while (out_.has_piece());
    begin_piece();
    co_return {};
  }
  /// Returns true if this turn has done enough, after `series` more of them.
  bool piece_is_full(std::size_t series) noexcept {
    if (out_.has_piece()) return true;
    if (series < looks_at_) {
      looks_at_ -= series;
      return false;
    }
    looks_at_ = series_per_look;
    return loop_.platform().now() >= piece_end_;
  }

  Task<Result<>> write_runtime() {
    detail::RuntimeMetrics metrics;
    for (Loop* const each : loop_.group().loops()) {
      metrics.add_loop(*each);
      co_await weir::detail::NextTurn(loop_);
    }
    metrics.add_group(loop_);
    if (options_.memory_bound != 0) {
      metrics.add({"weir.memory_bound", "By", "Upper bound of the memory of the server."},
                  MetricKind::gauge, static_cast<double>(options_.memory_bound));
    }
    co_await weir::detail::NextTurn(loop_);
    begin_piece();
    while (const auto each = metrics.take()) {
      if (!out_.begin(each->name, each->unit, each->help, each->kind)) {
        if (piece_is_full(1)) {  // work without output counts too
          WEIR_CO_TRY(co_await flush());
        }
        continue;
      }
      for (const detail::ReadMetric::Sample& sample : each->samples) {
        names_.clear();
        for (const auto& label : sample.labels) names_.push_back(detail::label_name(label.first));
        labels_.clear();
        for (std::size_t index = 0; index < names_.size(); ++index) {
          labels_.emplace_back(names_[index], sample.labels[index].second);
        }
        out_.sample(labels_, sample.value);
        if (piece_is_full(1)) {
          WEIR_CO_TRY(co_await flush());
        }
      }
      out_.end();
    }
    co_return {};
  }

  Task<Result<>> write_families() {
    const detail::Family* family = detail::Registry::instance().first();
    for (; family != nullptr; family = family->next()) {
      const detail::FamilyOptions& options = family->options();
      if (!out_.begin(family->name(), options.unit, options.help, options.kind)) {
        if (piece_is_full(1)) {  // work without output counts too
          WEIR_CO_TRY(co_await flush());
        }
        continue;
      }
      names_.clear();
      for (const std::string& name : options.labels) names_.push_back(detail::label_name(name));
      for (const detail::Series* each = family->first(); each != nullptr;
           each = each->next.load(std::memory_order_acquire)) {
        if (piece_is_full(write_series(*each, options))) {
          WEIR_CO_TRY(co_await flush());
        }
      }
      out_.end();
      if (piece_is_full(1)) {
        WEIR_CO_TRY(co_await flush());
      }
    }
    co_return {};
  }

  /// Returns the series that are as much work.
  std::size_t write_series(const detail::Series& series, const detail::FamilyOptions& options) {
    labels_.clear();
    for (std::size_t index = 0; index < names_.size(); ++index) {
      labels_.emplace_back(names_[index], series.values[index]);
    }
    if (options.kind == MetricKind::histogram) {
      const bool native = options.buckets.native && format_ == detail::Format::protobuf;
      read_histogram(series, options.buckets, native, histogram_);
      out_.histogram(labels_, options.buckets, histogram_);
      return series_per_look;
    }
    out_.sample(labels_, value_of(series, options.kind) * options.scale);
    return 1;
  }

  /// Writes the number of measurements that were not counted in their metric.
  Task<Result<>> write_dropped() {
    if (!out_.begin("telemetry.measurements.dropped", {},
                    "Measurements of label sets beyond the limit of a metric.",
                    MetricKind::counter)) {
      co_return {};
    }
    const detail::Family* family = detail::Registry::instance().first();
    for (; family != nullptr; family = family->next()) {
      const std::uint64_t dropped = ThreadCells::sum(family->dropped().first);
      if (dropped != 0) {
        const std::array labels{Label("metric", family->name())};
        out_.sample(labels, static_cast<double>(dropped));
      }
      if (piece_is_full(1)) {
        WEIR_CO_TRY(co_await flush());
      }
    }
    out_.end();
    co_return {};
  }

  Loop& loop_;
  http::BodySink& sink_;
  const detail::Format format_;
  const MetricsPageOptions options_;
  Exposition out_;
  detail::HistogramData histogram_;
  std::vector<std::string> names_;
  std::vector<Label> labels_;
  std::size_t looks_at_ = 0;  // series until the next look at the clock
  Instant piece_end_{};
};

Task<Result<>> write_page(http::BodySink& sink, Loop* loop, detail::Format format,
                          MetricsPageOptions options) {
  PageWriter writer(*loop, sink, format, options);
  co_return co_await writer.write();
}

http::Response page(http::Request& request, detail::Format format,
                    const MetricsPageOptions& options) {
  http::Response response = http::stream("text/plain", write_page, request.loop(), format, options);
  response.set_header("Content-Type", detail::content_type(format));
  response.set_header("Vary", "Accept");
  return response;
}

}  // namespace

http::Response MetricsPage::operator()(http::Request& request) const {
  if (request.loop() == nullptr) return http::Status::service_unavailable;
  const detail::Format format = detail::choose_format(request.header("accept").value_or(""));
  return page(request, format, options_);
}

Result<http::RouteId> mount_metrics(http::Router& router, std::string_view path,
                                    const MetricsPageOptions& options) {
  WEIR_TRY(http::Pattern pattern, http::Pattern::parse(path));
  return router.get(std::move(pattern), MetricsPage(options));
}

}  // namespace weir::telemetry
