// Writes metrics in the formats of Prometheus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/base/text/detail/protobuf_writer.hpp"
#include "weir/telemetry/metrics/detail/buckets.hpp"
#include "weir/telemetry/metrics/detail/series.hpp"

namespace weir::telemetry::detail {

/// The formats of an answer to Prometheus.
enum class Format : std::uint8_t {
  text,         ///< the text format 0.0.4
  openmetrics,  ///< OpenMetrics 1.0
  protobuf,     ///< delimited messages of io.prometheus.client.MetricFamily
};

/// Returns the value of Content-Type.
std::string_view content_type(Format format) noexcept;

/// Returns the format that the client prefers by its Accept header (RFC 9110 §12.5.1). Equal
/// preferences select protobuf before OpenMetrics before text. Returns text if the client accepts
/// none of them. Members that violate the grammar are ignored.
Format choose_format(std::string_view accept) noexcept;

/// The name of a label and its value.
using Label = std::pair<std::string_view, std::string_view>;

/// The numbers of a histogram at one moment.
struct HistogramData {
  double sum = 0;
  std::vector<std::uint64_t> counts = {};  ///< by explicit bucket, not cumulative
  std::vector<std::uint64_t> native_counts =
      {};  ///< see HistogramLayout; empty without native buckets
};

/// Returns a name of Prometheus: every other character is '_'. The unit of OpenTelemetry is its
/// last word, such as "_seconds".
std::string metric_name(std::string_view name, std::string_view unit, MetricKind kind);
std::string label_name(std::string_view name);

/// Returns all names that a metric has in a page: that of its family and those of its samples.
std::vector<std::string> exposed_names(std::string_view name, std::string_view unit,
                                       MetricKind kind);

/// Writes metrics, one family after the other, into pieces of bytes for take().
/// Errors: throws std::bad_alloc.
class Exposition {
 public:
  /// The size from which a piece is complete. A piece exceeds it by at most one series.
  static constexpr std::size_t piece_bytes = 16 * 1024;

  explicit Exposition(Format format) noexcept : format_(format) {}

  /// Begins a family. Returns false if a family of that name was written before; the caller then
  /// leaves it out. `name` and `unit` are those of OpenTelemetry.
  bool begin(std::string_view name, std::string_view unit, std::string_view help, MetricKind kind);
  /// Appends a sample of a counter or a gauge. Labels with an empty value are left out.
  void sample(std::span<const Label> labels, double value);
  void histogram(std::span<const Label> labels, const HistogramLayout& layout,
                 const HistogramData& data);
  /// Ends the family.
  void end();
  /// Ends the output.
  void finish();

  /// Returns true if a piece is complete. In protobuf no piece of a family is before its end,
  /// because the family begins with its size.
  bool has_piece() const noexcept { return !ready_.empty() || output_.size() >= piece_bytes; }
  /// Returns the oldest piece and removes it. If none is complete, returns what there is of one.
  std::string take();

 private:
  void append_name(std::string_view suffix);
  void append_labels(std::span<const Label> labels, std::string_view bound = {});
  void append_value(double value);
  void append_value(std::uint64_t value);
  weir::detail::ProtobufWriter& begin_metric(std::span<const Label> labels);
  void native_histogram(std::span<const Label> labels, const HistogramLayout& layout,
                        const HistogramData& data);
  void add_to_family();

  Format format_;
  MetricKind kind_ = MetricKind::counter;
  std::string name_;               // without the suffixes of samples
  std::string output_;             // the newest piece
  std::deque<std::string> ready_;  // complete pieces
  std::unordered_set<std::string> names_;
  weir::detail::ProtobufWriter family_;  // the last part of the family
  std::vector<std::string> parts_;       // the parts before it
  weir::detail::ProtobufWriter metric_;
  weir::detail::ProtobufWriter part_;
};

}  // namespace weir::telemetry::detail
