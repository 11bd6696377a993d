#include "weir/telemetry/metrics/detail/exposition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "weir/base/text/detail/printable.hpp"

namespace weir::telemetry::detail {
namespace {

struct UnitName {
  std::string_view unit;
  std::string_view name;
};
// The names of units, by "Prometheus and OpenMetrics Compatibility" of OpenTelemetry.
constexpr std::array unit_names{
    UnitName{"s", "seconds"},      UnitName{"ms", "milliseconds"}, UnitName{"us", "microseconds"},
    UnitName{"ns", "nanoseconds"}, UnitName{"min", "minutes"},     UnitName{"h", "hours"},
    UnitName{"d", "days"},         UnitName{"By", "bytes"},        UnitName{"KiBy", "kibibytes"},
    UnitName{"MiBy", "mebibytes"}, UnitName{"GiBy", "gibibytes"},  UnitName{"%", "percent"},
    UnitName{"Cel", "celsius"},    UnitName{"m", "meters"},        UnitName{"g", "grams"},
    UnitName{"J", "joules"},       UnitName{"W", "watts"},         UnitName{"V", "volts"},
    UnitName{"A", "amperes"},      UnitName{"Hz", "hertz"},
};

bool is_letter(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || each == '_';
}
bool is_digit(char each) noexcept {
  return each >= '0' && each <= '9';
}

/// Replaces each run of other characters by one '_'.
std::string sanitized(std::string_view name) {
  std::string text;
  for (const char each : name) {
    if (is_letter(each) || is_digit(each)) {
      if (each != '_' || text.empty() || text.back() != '_') text += each;
    } else if (!text.empty() && text.back() != '_') {
      text += '_';
    }
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  if (text.empty() || is_digit(text.front())) text.insert(text.begin(), '_');
  return text;
}

/// Returns the words of a unit; empty for one without words, such as "{request}".
std::string unit_words(std::string_view unit, MetricKind kind) {
  if (unit == "1") return kind == MetricKind::gauge ? "ratio" : "";
  if (unit.starts_with('{')) return {};
  for (const UnitName& each : unit_names) {
    if (each.unit == unit) return std::string(each.name);
  }
  if (const std::size_t slash = unit.find('/'); slash != unit.npos) {
    std::string per = unit_words(unit.substr(slash + 1), kind);
    if (per.ends_with('s')) per.pop_back();
    const std::string first = unit_words(unit.substr(0, slash), kind);
    return first.empty() ? "per_" + per : first + "_per_" + per;
  }
  return unit.empty() ? std::string() : sanitized(unit);
}

/// Appends a text with escapes: \\ and \n, and \" if it is quoted.
void append_escaped(std::string& out, std::string_view text, bool quoted) {
  for (const char each : text) {
    if (each == '\\') {
      out += "\\\\";
    } else if (each == '\n') {
      out += "\\n";
    } else if (each == '"' && quoted) {
      out += "\\\"";
    } else {
      out += each;
    }
  }
}

std::string_view type_name(MetricKind kind) noexcept {
  switch (kind) {
    case MetricKind::counter:
      return "counter";
    case MetricKind::gauge:
      return "gauge";
    case MetricKind::histogram:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

std::string_view content_type(Format format) noexcept {
  switch (format) {
    case Format::text:
      return "text/plain; version=0.0.4; charset=utf-8";
    case Format::openmetrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case Format::protobuf:
      return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
             "encoding=delimited";
  }
  return {};
}

std::string metric_name(std::string_view name, std::string_view unit, MetricKind kind) {
  std::string text = sanitized(name);
  if (kind == MetricKind::counter && text.ends_with("_total")) text.resize(text.size() - 6);
  const std::string words = unit_words(unit, kind);
  if (!words.empty() && text != words && !text.ends_with("_" + words)) text += "_" + words;
  return text;
}

std::string label_name(std::string_view name) {
  std::string text = sanitized(name);
  while (text.starts_with("__")) text.erase(0, 1);  // Prometheus reserves two underscores
  return text;
}

std::vector<std::string> exposed_names(std::string_view name, std::string_view unit,
                                       MetricKind kind) {
  const std::string family = metric_name(name, unit, kind);
  std::vector<std::string> names{family};
  if (kind == MetricKind::counter) names.push_back(family + "_total");
  if (kind != MetricKind::histogram) return names;
  for (const char* const suffix : {"_bucket", "_sum", "_count"}) names.push_back(family + suffix);
  return names;
}

bool Exposition::begin(std::string_view name, std::string_view unit, std::string_view help,
                       MetricKind kind) {
  const std::string printable = to_printable_lines(help);
  kind_ = kind;
  name_ = metric_name(name, unit, kind);
  if (!names_.insert(name_).second) return false;
  const bool is_counter = kind == MetricKind::counter;
  if (format_ == Format::protobuf) {
    family_.clear();
    family_.add(1, std::string_view(is_counter ? name_ + "_total" : name_));
    family_.add(2, std::string_view(printable));
    family_.add(3, std::uint64_t{is_counter ? 0U : kind == MetricKind::gauge ? 1U : 4U});
    return true;
  }
  const bool open = format_ == Format::openmetrics;
  const std::string_view suffix = is_counter && !open ? "_total" : "";
  if (!printable.empty()) {
    output_ += "# HELP ";
    append_name(suffix);
    output_ += ' ';
    append_escaped(output_, printable, open);
    output_ += '\n';
  }
  output_ += "# TYPE ";
  append_name(suffix);
  output_.append(" ").append(type_name(kind)).append("\n");
  const std::string words = open ? unit_words(unit, kind) : std::string();
  if (!words.empty() && name_.ends_with("_" + words)) {
    output_ += "# UNIT ";
    append_name({});
    output_.append(" ").append(words).append("\n");
  }
  return true;
}

void Exposition::sample(std::span<const Label> labels, double value) {
  if (format_ == Format::protobuf) {
    part_.clear();
    part_.add(1, value);
    begin_metric(labels).add(kind_ == MetricKind::counter ? 3 : 2, part_);
    return add_to_family();
  }
  append_name(kind_ == MetricKind::counter ? "_total" : "");
  append_labels(labels);
  append_value(value);
}

void Exposition::histogram(std::span<const Label> labels, const HistogramLayout& layout,
                           const HistogramData& data) {
  if (format_ == Format::protobuf) return native_histogram(labels, layout, data);
  std::uint64_t count = 0;
  std::string bound;
  for (std::size_t index = 0; index < data.counts.size(); ++index) {
    count += data.counts[index];
    bound = "+Inf";
    if (index < layout.bounds.size()) {
      std::array<char, 32> room;
      const auto end = std::to_chars(room.data(), room.data() + room.size(), layout.bounds[index]);
      bound.assign(room.data(), end.ptr);
      // OpenMetrics 1.0: a bound is a float in its canonical form.
      const bool is_float = bound.find_first_of(".e") != bound.npos;
      if (format_ == Format::openmetrics && !is_float) bound += ".0";
    }
    append_name("_bucket");
    append_labels(labels, bound);
    append_value(count);
  }
  append_name("_sum");
  append_labels(labels);
  append_value(data.sum);
  append_name("_count");
  append_labels(labels);
  append_value(count);
}

/// Appends a histogram with explicit and native buckets. The count is that of the native buckets,
/// because Prometheus rejects a native histogram with another one. The explicit buckets were read
/// at another moment, so each is at most the count.
void Exposition::native_histogram(std::span<const Label> labels, const HistogramLayout& layout,
                                  const HistogramData& data) {
  std::uint64_t count = 0;
  for (const std::uint64_t each : layout.native ? data.native_counts : data.counts) count += each;
  weir::detail::ProtobufWriter& metric = begin_metric(labels);
  weir::detail::ProtobufWriter histogram;
  histogram.add(1, count);
  histogram.add(2, data.sum);
  std::uint64_t below = 0;
  for (std::size_t index = 0; index < layout.bounds.size(); ++index) {
    below += data.counts[index];
    part_.clear();
    part_.add(1, std::min(below, count));
    part_.add(2, layout.bounds[index]);
    histogram.add(3, part_);
  }
  if (layout.native) {
    histogram.add_zigzag(5, NativeBuckets::schema);
    histogram.add(6, layout.zero_threshold());
    histogram.add(7, data.native_counts.front());
    weir::detail::ProtobufWriter deltas;
    std::int64_t before = 0;
    int gap = layout.zero_key + 1;  // from the end of the last span; absolute for the first one
    std::size_t index = 1;
    const auto& counts = data.native_counts;
    while (index < counts.size()) {
      if (counts[index] == 0) {
        ++gap;
        ++index;
        continue;
      }
      std::size_t length = 0;
      for (; index < counts.size() && counts[index] != 0; ++index, ++length) {
        deltas.append_zigzag(static_cast<std::int64_t>(counts[index]) - before);
        before = static_cast<std::int64_t>(counts[index]);
      }
      part_.clear();
      part_.add_zigzag(1, gap);
      part_.add(2, std::uint64_t{length});
      histogram.add(12, part_);
      gap = 0;
    }
    histogram.add(13, std::string_view(deltas.bytes()));
  }
  metric.add(7, histogram);
  add_to_family();
}

/// Adds metric_ to the family.
void Exposition::add_to_family() {
  family_.add(4, metric_);
  if (family_.bytes().size() < piece_bytes) return;
  parts_.push_back(family_.bytes());
  family_.clear();
}

void Exposition::end() {
  if (format_ != Format::protobuf) return;
  std::size_t size = family_.bytes().size();
  for (const std::string& each : parts_) size += each.size();
  part_.clear();
  part_.append_varint(size);
  output_ += part_.bytes();
  for (std::string& each : parts_) ready_.push_back(std::exchange(output_, std::move(each)));
  parts_.clear();
  output_ += family_.bytes();
}

std::string Exposition::take() {
  if (ready_.empty()) return std::exchange(output_, {});
  std::string oldest = std::move(ready_.front());
  ready_.pop_front();
  return oldest;
}

void Exposition::finish() {
  if (format_ == Format::openmetrics) output_ += "# EOF\n";
}

void Exposition::append_name(std::string_view suffix) {
  output_.append(name_).append(suffix);
}

void Exposition::append_labels(std::span<const Label> labels, std::string_view bound) {
  char before = '{';
  const auto append = [&](std::string_view name, std::string_view value) {
    output_ += before;
    output_.append(name).append("=\"");
    append_escaped(output_, value, true);
    output_ += '"';
    before = ',';
  };
  for (const auto& [name, value] : labels) {
    if (!value.empty()) append(name, to_printable_lines(value));
  }
  if (!bound.empty()) append("le", bound);
  if (before == ',') output_ += '}';
  output_ += ' ';
}

void Exposition::append_value(std::uint64_t value) {
  std::array<char, 24> room;
  output_.append(room.data(), std::to_chars(room.data(), room.data() + room.size(), value).ptr);
  output_ += '\n';
}

void Exposition::append_value(double value) {
  if (std::isfinite(value)) {
    std::array<char, 32> room;
    output_.append(room.data(), std::to_chars(room.data(), room.data() + room.size(), value).ptr);
  } else {
    output_ += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  }
  output_ += '\n';
}

weir::detail::ProtobufWriter& Exposition::begin_metric(std::span<const Label> labels) {
  metric_.clear();
  weir::detail::ProtobufWriter label;
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    label.clear();
    label.add(1, name);
    label.add(2, std::string_view(to_printable_lines(value)));
    metric_.add(1, label);
  }
  return metric_;
}

}  // namespace weir::telemetry::detail
