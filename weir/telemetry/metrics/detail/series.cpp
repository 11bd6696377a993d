#include "weir/telemetry/metrics/detail/series.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

#include "weir/telemetry/metrics/detail/cells.hpp"

namespace weir::telemetry::detail {

std::size_t hash_of(const Family& family, LabelValues values) noexcept {
  constexpr std::size_t factor = 0x9e3779b97f4a7c15;
  std::size_t hash = std::hash<const void*>()(&family);
  for (const std::string_view value : values) {
    hash = (hash ^ std::hash<std::string_view>()(value)) * factor;
  }
  return hash ^ hash >> 32;
}

Family::Family(std::string name, FamilyOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  dropped_.family = this;
  dropped_.dropped = true;
  dropped_.first = Registry::instance().allocate(1);
}

const Series* Family::find(LabelValues values, std::size_t hash) const noexcept {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto each = begin; each != end; ++each) {
    if (std::ranges::equal(each->second->values, values)) return each->second;
  }
  return nullptr;
}

const Series& Family::series(LabelValues values) noexcept {
  const std::size_t hash = hash_of(*this, values);
  const std::lock_guard lock(mutex_);
  if (const Series* const known = find(values, hash)) return *known;
  const std::size_t most = std::max<std::size_t>(1, options_.label_sets_max);
  if (by_hash_.size() >= most) return dropped_;
  try {
    auto made = std::make_unique<Series>();
    made->family = this;
    made->values.assign(values.begin(), values.end());
    made->hash = hash;
    const auto place = by_hash_.emplace(hash, made.get());
    made->first = Registry::instance().allocate(cell_count());
    if (made->first == 0) {
      by_hash_.erase(place);
      return dropped_;
    }
    Series* const added = made.release();
    (last_ == nullptr ? first_ : last_->next).store(added, std::memory_order_release);
    last_ = added;
    return *added;
  } catch (const std::bad_alloc&) {
    return dropped_;
  }
}

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
  auto made = std::make_unique<Family>(std::string(name), std::move(options));
  by_name_.emplace(made->name(), made.get());
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
