#include "weir/loop/detail/named_counters.hpp"

#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace weir::detail {

/// Describes the metrics of one name, in memory that lives as long as the process: the totals of a
/// core that has ended refer to it.
struct MetricsOfName {
  MetricsOfName(std::span<const NamedCounters::Row> rows, std::string_view label_value)
      : name(label_value) {
    for (std::size_t index = 0; index < rows.size(); ++index) {
      texts[index] = std::string(rows[index].text) + ": " + name;
      infos[index] = rows[index].info;
      infos[index].label_value = name;
    }
  }
  MetricsOfName(const MetricsOfName&) = delete;
  MetricsOfName& operator=(const MetricsOfName&) = delete;

  const std::string name;
  std::array<std::string, NamedCounters::rows_max> texts;
  std::array<MetricInfo, NamedCounters::rows_max> infos;
};

namespace {

constexpr std::string_view others = "(others)";

/// Returns the description of `name`. The process keeps a bounded number of them.
/// Errors: throws std::bad_alloc.
const MetricsOfName& metrics_of(std::span<const NamedCounters::Row> rows, std::string_view name) {
  constexpr std::size_t most = 1024;
  using Key = std::pair<const NamedCounters::Row*, std::string>;
  struct Known {
    std::mutex mutex;
    std::map<Key, std::unique_ptr<const MetricsOfName>> by_name;
  };
  static Known& known = *new Known;  // cores may end after the static objects
  const std::lock_guard lock(known.mutex);
  // Each table has room for the shared name.
  const bool shared =
      known.by_name.size() >= most && !known.by_name.contains(Key(rows.data(), std::string(name)));
  auto& place = known.by_name[Key(rows.data(), std::string(shared ? others : name))];
  if (place == nullptr) place = std::make_unique<const MetricsOfName>(rows, shared ? others : name);
  return *place;
}

}  // namespace

NamedCounters::NamedCounters(Loop& loop, std::span<const Row> rows) noexcept : rows_(rows) {
  assert(rows.size() <= rows_max);
  loop.metrics().add(*this);
}

std::array<Counter, NamedCounters::rows_max>& NamedCounters::of(std::string_view name) {
  // relaxed: this thread has stored it.
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t index = 0; index < count; ++index) {
    if (entries_[index].metrics->name == name) return entries_[index].counters;
  }
  if (count == entries_.size()) return entries_.back().counters;
  const MetricsOfName& metrics = metrics_of(rows_, count == names_max ? others : name);
  // If the process has no room for the name, it is that of the others.
  for (std::size_t index = 0; index < count; ++index) {
    if (entries_[index].metrics == &metrics) return entries_[index].counters;
  }
  entries_[count].metrics = &metrics;
  // release pairs with collect(): the reader sees the entry.
  count_.store(count + 1, std::memory_order_release);
  return entries_[count].counters;
}

void NamedCounters::collect(MetricSnapshot& sum) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t at = 0; at < count; ++at) {
    const Entry& entry = entries_[at];
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      sum.add({entry.metrics->texts[row], entry.counters[row].value(), rows_[row].kind,
               &entry.metrics->infos[row]});
    }
  }
}

}  // namespace weir::detail
