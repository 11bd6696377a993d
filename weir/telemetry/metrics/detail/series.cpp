#include "weir/telemetry/metrics/detail/series.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/telemetry/metrics/detail/cells.hpp"
#include "weir/telemetry/metrics/detail/exposition.hpp"

namespace weir::telemetry::detail {

/// One size of a SeriesTable, of a power of two. At most half of the places have a series.
struct SeriesTable::Places {
  explicit Places(std::size_t count, Places* smaller)
      : mask(count - 1),
        series(std::make_unique<std::atomic<const Series*>[]>(count)),
        older(smaller) {}
  std::size_t mask;
  std::unique_ptr<std::atomic<const Series*>[]> series;
  std::unique_ptr<Places> older;

  void insert(const Series& added) noexcept {
    std::size_t at = added.hash & mask;
    // relaxed: one thread at a time writes. release pairs with find().
    while (series[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & mask;
    series[at].store(&added, std::memory_order_release);
  }
};

namespace {

/// Returns true if a page shows the value as it is, with its line feeds.
bool is_printable_text(std::string_view value) noexcept {
  for (;;) {
    const std::size_t printable = printable_prefix(value);
    if (printable == value.size()) return true;
    if (value[printable] != '\n') return false;
    value.remove_prefix(printable + 1);
  }
}

}  // namespace

SeriesTable::~SeriesTable() {
  delete places_.load(std::memory_order_relaxed);
}

std::size_t SeriesTable::hash_of(LabelValues values) noexcept {
  constexpr std::size_t factor = 0x9e3779b97f4a7c15;
  std::size_t hash = 0;
  for (const std::string_view value : values) {
    hash = (hash ^ std::hash<std::string_view>()(value)) * factor;
  }
  return hash ^ hash >> 32;
}

const Series* SeriesTable::find(LabelValues values, std::size_t hash) const noexcept {
  const Places* const places = places_.load(std::memory_order_acquire);
  if (places == nullptr) return nullptr;
  for (std::size_t at = hash & places->mask;; at = (at + 1) & places->mask) {
    const Series* const each = places->series[at].load(std::memory_order_acquire);
    if (each == nullptr) return nullptr;
    if (each->hash == hash && std::ranges::equal(each->values, values)) return each;
  }
}

void SeriesTable::reserve() {
  Places* const now = places_.load(std::memory_order_relaxed);
  if (now != nullptr && 2 * (size_ + 1) <= now->mask + 1) return;
  auto larger = std::make_unique<Places>(now == nullptr ? 4 : 2 * (now->mask + 1), now);
  for (std::size_t at = 0; now != nullptr && at <= now->mask; ++at) {
    const Series* const each = now->series[at].load(std::memory_order_relaxed);
    if (each != nullptr) larger->insert(*each);
  }
  places_.store(larger.release(), std::memory_order_release);
}

void SeriesTable::insert(const Series& series) noexcept {
  places_.load(std::memory_order_relaxed)->insert(series);
  ++size_;
}

Family::Family(std::string name, FamilyOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  dropped_.family = this;
  dropped_.dropped = true;
  dropped_.first = Registry::instance().allocate(1);
}

const Series& Family::series(LabelValues values) noexcept {
  const std::size_t hash = SeriesTable::hash_of(values);
  // acquire pairs with add(): if the family is full, the table has all of its series.
  const bool full = full_.load(std::memory_order_acquire);
  if (const Series* const known = table_.find(values, hash)) return *known;
  try {
    return add_unknown(values, hash, full);
  } catch (const std::bad_alloc&) {
    return dropped_;
  }
}

/// Adds a series that no value names yet, unless the family is full.
const Series& Family::add_unknown(LabelValues values, std::size_t hash, bool full) {
  if (!std::ranges::all_of(values, is_printable_text)) {
    std::vector<std::string> printed;
    for (const std::string_view each : values) printed.push_back(to_printable_lines(each));
    const std::vector<std::string_view> views(printed.begin(), printed.end());
    return series(views);
  }
  return full ? dropped_ : add(values, hash);
}

const Series& Family::add(LabelValues values, std::size_t hash) {
  const std::lock_guard lock(mutex_);
  if (const Series* const known = table_.find(values, hash)) return *known;
  const std::size_t most = std::max<std::size_t>(1, options_.label_sets_max);
  if (table_.size() >= most) return dropped_;
  auto made = std::make_unique<Series>();
  made->family = this;
  made->values.assign(values.begin(), values.end());
  made->hash = hash;
  table_.reserve();
  made->first = Registry::instance().allocate(cell_count());
  if (made->first == 0) {
    full_.store(true, std::memory_order_release);
    return dropped_;
  }
  Series& added = *made.release();
  table_.insert(added);
  (last_ == nullptr ? first_ : last_->next).store(&added, std::memory_order_release);
  last_ = &added;
  if (table_.size() == most) full_.store(true, std::memory_order_release);
  return added;
}

namespace {

/// Throws std::invalid_argument if two labels have one name in Prometheus, or if one has a name
/// that Prometheus uses itself.
void check_labels(std::string_view metric, const FamilyOptions& options) {
  std::vector<std::string> names;
  for (const std::string& each : options.labels) {
    std::string name = label_name(each);
    const bool taken = std::ranges::find(names, name) != names.end();
    const bool reserved = options.kind == MetricKind::histogram && name == "le";
    if (taken || reserved || each.empty()) {
      throw std::invalid_argument("metric \"" + std::string(metric) + "\": the label \"" + each +
                                  "\" is empty, reserved or has the name of another");
    }
    names.push_back(std::move(name));
  }
}

}  // namespace

Registry& Registry::instance() {
  static Registry& registry = *new Registry;
  return registry;
}

Family& Registry::family(std::string_view name, FamilyOptions options) {
  if (name.empty()) throw std::invalid_argument("a metric has no name");
  const std::lock_guard lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    const FamilyOptions& present = known->second->options();
    if (present.kind != options.kind || present.labels != options.labels ||
        present.buckets != options.buckets) {
      throw std::invalid_argument("metric \"" + std::string(name) +
                                  "\" exists with another kind, other labels or other buckets");
    }
    return *known->second;
  }
  check_labels(name, options);
  std::vector<std::string> exposed = exposed_names(name, options.unit, options.kind);
  for (const std::string& each : exposed) {
    if (!exposed_.contains(each)) continue;
    throw std::invalid_argument("metric \"" + std::string(name) +
                                "\" has the name of another one in Prometheus: " + each);
  }
  auto made = std::make_unique<Family>(std::string(name), std::move(options));
  try {
    by_name_.emplace(made->name(), made.get());
    exposed_.insert(exposed.begin(), exposed.end());
  } catch (...) {
    for (const std::string& each : exposed) exposed_.erase(each);
    by_name_.erase(made->name());
    throw;
  }
  Family* const added = made.release();
  (last_ == nullptr ? first_ : last_->next_).store(added, std::memory_order_release);
  last_ = added;
  return *added;
}

/// The cells of a series lie in one chunk of ThreadCells.
CellId Registry::allocate(std::size_t count) noexcept {
  constexpr std::size_t chunk = ThreadCells::chunk_size;
  const std::lock_guard lock(cells_mutex_);
  std::size_t first = next_cell_;
  if (first % chunk + count > chunk) first = (first / chunk + 1) * chunk;
  if (count > chunk || first + count > ThreadCells::cells_max) return 0;
  next_cell_ = first + count;
  return static_cast<CellId>(first);
}

}  // namespace weir::telemetry::detail
