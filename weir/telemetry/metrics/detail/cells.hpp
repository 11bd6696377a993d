// The cells in which a thread counts for all metrics of the process.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weir/telemetry/metrics/detail/series.hpp"

namespace weir::telemetry::detail {

/// A number with one writing thread, which any thread may read. It holds an integer or the bits of
/// a double. Relaxed order is enough, because a number orders no other memory.
class Cell {
 public:
  void add(std::uint64_t amount) noexcept {
    bits_.store(bits_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void add(double amount) noexcept {
    bits_.store(std::bit_cast<std::uint64_t>(real() + amount), std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return bits_.load(std::memory_order_relaxed); }
  double real() const noexcept { return std::bit_cast<double>(value()); }

 private:
  std::atomic<std::uint64_t> bits_{0};
};

/// The cells that a thread has found for a number, such as the packed labels of a request: a hash
/// table with open addressing.
/// Threads: one.
class KnownCells {
 public:
  struct Entry {
    std::uint64_t key = 0;  ///< 0: none
    Cell* cells = nullptr;  ///< nullptr: the measurements are dropped
  };
  KnownCells() noexcept = default;
  KnownCells(const KnownCells&) = delete;
  KnownCells& operator=(const KnownCells&) = delete;

  /// Returns the entry of a key other than 0; nullptr if there is none.
  const Entry* find(std::uint64_t key) const noexcept {
    for (std::size_t at = hash_of(key) & mask_;; at = (at + 1) & mask_) {
      if (entries_[at].key == key) return &entries_[at];
      if (entries_[at].key == 0) return nullptr;
    }
  }
  /// Adds an entry. Does nothing if there are entries_max, or if there is no memory.
  void add(const Entry& entry) noexcept;

 private:
  static constexpr std::size_t entries_max = std::size_t{1} << 14;
  static const Entry empty_;

  static std::size_t hash_of(std::uint64_t key) noexcept {
    // The highest bits depend on all bits of the key. Tables have at most 2^15 places.
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15 >> 48);
  }
  static void insert(std::vector<Entry>& table, const Entry& entry) noexcept;

  const Entry* entries_ = &empty_;  // the data of table_
  std::size_t mask_ = 0;
  std::size_t count_ = 0;
  std::vector<Entry> table_;
};

inline constexpr KnownCells::Entry KnownCells::empty_{};

/// The cells of one thread, by CellId. A thread that ends leaves its cells, with their numbers, to
/// a later thread, so that no total is lost. Cells are never freed.
/// Threads: of(), current() and known() on the thread; the others on any.
class ThreadCells {
 public:
  static constexpr std::size_t chunk_size = 1024;
  static constexpr std::size_t chunks_max = 1024;
  static constexpr std::size_t cells_max = chunk_size * chunks_max;

  /// Returns the first cell of a series, for this thread; nullptr if there is no memory.
  static Cell* of(CellId first) noexcept {
    if (const ThreadCells* const cells = current_) [[likely]] {
      // relaxed: this thread has stored it.
      Chunk* const chunk = cells->chunks_[first / chunk_size].load(std::memory_order_relaxed);
      if (chunk != nullptr) [[likely]]
        return &(*chunk)[first % chunk_size];
    }
    return make(first);
  }
  /// Returns the cells of this thread; nullptr if there is no memory.
  static ThreadCells* current() noexcept { return current_ != nullptr ? current_ : attach(); }
  /// Returns the cells of all threads, linked by next().
  static const ThreadCells* first() noexcept { return all_.load(std::memory_order_acquire); }
  const ThreadCells* next() const noexcept { return next_; }

  /// Returns the sum of a cell over all threads.
  static std::uint64_t sum(CellId id) noexcept;
  static double real_sum(CellId id) noexcept;

  /// Returns the first cell of a series, which lie in a row; nullptr if this thread has none.
  const Cell* find(CellId first) const noexcept {
    // acquire pairs with make(): the reader sees zeros or later numbers.
    const Chunk* const chunk = chunks_[first / chunk_size].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[first % chunk_size];
  }

  /// Returns the cells of the requests that this thread has counted; see ServerMetrics.
  KnownCells& known_requests() noexcept { return known_requests_; }

 private:
  using Chunk = std::array<Cell, chunk_size>;
  class Lease;

  static ThreadCells* attach() noexcept;
  static Cell* make(CellId first) noexcept;

  static constinit thread_local ThreadCells* current_;
  static constinit thread_local bool ended_;  // true after the Lease of this thread
  static std::atomic<ThreadCells*> all_;

  std::array<std::atomic<Chunk*>, chunks_max> chunks_{};
  ThreadCells* next_ = nullptr;  // set before it is published in all_
  bool in_use_ = false;          // guarded by the mutex of attach()
  KnownCells known_requests_;
};

}  // namespace weir::telemetry::detail
