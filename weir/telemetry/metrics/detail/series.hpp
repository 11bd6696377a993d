// The metrics of the process, and their series: one for each set of label values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weir/telemetry/metrics/detail/buckets.hpp"

namespace weir::telemetry::detail {

using CellId = std::uint32_t;
using LabelValues = std::span<const std::string_view>;

enum class MetricKind : std::uint8_t { counter, gauge, histogram };

/// Describes a metric when it is registered.
struct FamilyOptions {
  MetricKind kind = MetricKind::counter;
  std::string help;
  std::string unit;
  std::vector<std::string> labels;
  std::size_t label_sets_max = 0;
  double scale = 1;              ///< factor of the exported values
  HistogramLayout buckets = {};  ///< of a histogram
};

class Family;

/// One set of label values of a family, with its cells. It lives as long as the process.
struct Series {
  const Family* family = nullptr;
  std::vector<std::string> values;
  std::size_t hash = 0;
  CellId first = 0;
  bool dropped = false;  ///< counts the measurements of label sets beyond the limit
  std::atomic<Series*> next{nullptr};
};

/// The series of a family by their label values: a hash table with open addressing. It grows by a
/// larger copy, and keeps the smaller ones for readers that still use them.
/// Threads: find() any; the others one at a time.
class SeriesTable {
 public:
  SeriesTable() noexcept = default;
  SeriesTable(const SeriesTable&) = delete;
  SeriesTable& operator=(const SeriesTable&) = delete;
  ~SeriesTable();

  static std::size_t hash_of(LabelValues values) noexcept;
  /// Returns the series with these values; nullptr if there is none.
  const Series* find(LabelValues values, std::size_t hash) const noexcept;
  /// Makes room for one more series.
  /// Errors: throws std::bad_alloc.
  void reserve();
  /// Adds a series, after reserve().
  void insert(const Series& series) noexcept;
  std::size_t size() const noexcept { return size_; }

 private:
  struct Places;
  std::atomic<Places*> places_{nullptr};  // the newest
  std::size_t size_ = 0;
};

/// A metric of the process with all its series. It lives as long as the process.
/// Threads: any.
class Family {
 public:
  Family(std::string name, FamilyOptions options);

  const std::string& name() const noexcept { return name_; }
  const FamilyOptions& options() const noexcept { return options_; }
  /// Returns the number of cells of each series.
  std::size_t cell_count() const noexcept {
    return options_.kind == MetricKind::histogram ? options_.buckets.cell_count() : 1;
  }
  /// Returns the series with these values, and adds it if it is new. Values that are not printable
  /// are those of their printable form, because a page shows that form. Returns the dropped series
  /// if there are too many, or if there is no memory. It takes a lock only to add a series.
  const Series& series(LabelValues values) noexcept;
  /// Returns the series whose cell counts the measurements of label sets beyond the limit.
  const Series& dropped() const noexcept { return dropped_; }
  /// Returns true if no series will be added any more, so that others are dropped for ever.
  bool is_full() const noexcept { return full_.load(std::memory_order_relaxed); }

  /// Returns the oldest series; Series::next leads to the others.
  const Series* first() const noexcept { return first_.load(std::memory_order_acquire); }
  const Family* next() const noexcept { return next_.load(std::memory_order_acquire); }

 private:
  friend class Registry;
  const Series& add_unknown(LabelValues values, std::size_t hash, bool full);
  const Series& add(LabelValues values, std::size_t hash);

  const std::string name_;
  const FamilyOptions options_;
  std::mutex mutex_;  // guards the addition of series
  SeriesTable table_;
  std::atomic<bool> full_{false};  // true: no series will be added any more
  std::atomic<Series*> first_{nullptr};
  Series* last_ = nullptr;
  Series dropped_;
  std::atomic<Family*> next_{nullptr};
};

/// All metrics of the process that have a Family. It is never destroyed.
/// Threads: any.
class Registry {
 public:
  static Registry& instance();

  /// Returns the metric called `name`, and adds it if it is new.
  /// Errors: throws std::invalid_argument if the name is empty, if the metric exists with another
  /// kind, other labels or other buckets, or if Prometheus could not tell its name or its labels
  /// from others; std::bad_alloc.
  Family& family(std::string_view name, FamilyOptions options);
  /// Returns the oldest metric; Family::next() leads to the others.
  const Family* first() const noexcept { return first_.load(std::memory_order_acquire); }

  /// Returns the first of `count` cells in a row that no series has; 0 if there are none left. Cell
  /// 0 counts what could not be counted elsewhere.
  CellId allocate(std::size_t count) noexcept;

 private:
  Registry() = default;

  std::mutex mutex_;  // guards the addition of families
  std::unordered_map<std::string_view, Family*> by_name_;
  std::unordered_set<std::string> exposed_;  // the names of Prometheus
  std::atomic<Family*> first_{nullptr};
  Family* last_ = nullptr;
  std::mutex cells_mutex_;
  std::size_t next_cell_ = 1;
};

}  // namespace weir::telemetry::detail
