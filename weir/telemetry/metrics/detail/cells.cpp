#include "weir/telemetry/metrics/detail/cells.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace weir::telemetry::detail {
namespace {

/// Guards the list of all cells and ThreadCells::in_use_.
std::mutex& list_mutex() {
  static std::mutex& mutex = *new std::mutex;  // threads may end after the static objects
  return mutex;
}

bool has_values(const Series& series, const Family& family, LabelValues values) noexcept {
  return series.family == &family && std::ranges::equal(series.values, values);
}

}  // namespace

constinit thread_local ThreadCells* ThreadCells::current_ = nullptr;
constinit thread_local bool ThreadCells::ended_ = false;
std::atomic<ThreadCells*> ThreadCells::all_{nullptr};

/// Gives the cells of a thread that ends to a later thread.
class ThreadCells::Lease {
 public:
  explicit Lease(ThreadCells& cells) noexcept : cells_(cells) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    current_ = nullptr;
    ended_ = true;
    const std::lock_guard lock(list_mutex());
    cells_.in_use_ = false;
  }

 private:
  ThreadCells& cells_;
};

ThreadCells* ThreadCells::attach() noexcept {
  if (ended_) return nullptr;
  ThreadCells* mine = nullptr;
  try {
    const std::lock_guard lock(list_mutex());
    // relaxed: this mutex guards all writes.
    mine = all_.load(std::memory_order_relaxed);
    while (mine != nullptr && mine->in_use_) mine = mine->next_;
    if (mine == nullptr) {
      mine = new ThreadCells;
      mine->next_ = all_.load(std::memory_order_relaxed);
      all_.store(mine, std::memory_order_release);
    }
    mine->in_use_ = true;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  current_ = mine;
  static thread_local const Lease lease(*mine);
  return mine;
}

Cell* ThreadCells::make(CellId first) noexcept {
  ThreadCells* const cells = current();
  if (cells == nullptr) return nullptr;
  std::atomic<Chunk*>& place = cells->chunks_[first / chunk_size];
  Chunk* chunk = place.load(std::memory_order_relaxed);
  if (chunk == nullptr) {
    chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) return nullptr;
    place.store(chunk, std::memory_order_release);
  }
  return &(*chunk)[first % chunk_size];
}

std::uint64_t ThreadCells::sum(CellId id) noexcept {
  std::uint64_t sum = 0;
  for (const ThreadCells* each = first(); each != nullptr; each = each->next()) {
    if (const Cell* const cell = each->find(id)) sum += cell->value();
  }
  return sum;
}

double ThreadCells::real_sum(CellId id) noexcept {
  double sum = 0;
  for (const ThreadCells* each = first(); each != nullptr; each = each->next()) {
    if (const Cell* const cell = each->find(id)) sum += cell->real();
  }
  return sum;
}

const Series* ThreadCells::find_series(const Family& family,
                                       const LabelValues& values) const noexcept {
  if (series_.empty()) return nullptr;
  const std::size_t mask = series_.size() - 1;
  for (std::size_t at = hash_of(family, values) & mask;; at = (at + 1) & mask) {
    const Series* const each = series_[at];
    if (each == nullptr || has_values(*each, family, values)) return each;
  }
}

void ThreadCells::remember(const Series& series) noexcept {
  const auto insert = [](std::vector<const Series*>& table, const Series& added) {
    const std::size_t mask = table.size() - 1;
    std::size_t at = added.hash & mask;
    while (table[at] != nullptr) at = (at + 1) & mask;
    table[at] = &added;
  };
  if (2 * (series_count_ + 1) > series_.size()) {
    try {
      std::vector<const Series*> larger(std::max<std::size_t>(16, 2 * series_.size()));
      for (const Series* const each : series_) {
        if (each != nullptr) insert(larger, *each);
      }
      series_ = std::move(larger);
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  insert(series_, series);
  ++series_count_;
}

}  // namespace weir::telemetry::detail
