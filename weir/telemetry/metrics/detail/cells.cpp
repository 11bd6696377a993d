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

void KnownCells::insert(std::vector<Entry>& table, const Entry& entry) noexcept {
  const std::size_t mask = table.size() - 1;
  std::size_t at = hash_of(entry.key) & mask;
  while (table[at].key != 0) at = (at + 1) & mask;
  table[at] = entry;
}

void KnownCells::add(const Entry& entry) noexcept {
  if (count_ == entries_max) return;
  if (2 * (count_ + 1) > table_.size()) {
    try {
      std::vector<Entry> larger(std::max<std::size_t>(64, 2 * table_.size()));
      for (const Entry& each : table_) {
        if (each.key != 0) insert(larger, each);
      }
      table_ = std::move(larger);
    } catch (const std::bad_alloc&) {
      return;
    }
    entries_ = table_.data();
    mask_ = table_.size() - 1;
  }
  insert(table_, entry);
  ++count_;
}

}  // namespace weir::telemetry::detail
