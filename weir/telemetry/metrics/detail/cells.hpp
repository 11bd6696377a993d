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

/// The cells of one thread, by CellId. A thread that ends leaves its cells, with their numbers, to
/// a later thread, so that no total is lost. Cells are never freed.
/// Threads: of(), current(), known(), find_series() and remember() on the thread; the others on
/// any.
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

  /// Returns the series of `family` with these values if this thread has found it before.
  const Series* find_series(const Family& family, const LabelValues& values) const noexcept;
  void remember(const Series& series) noexcept;

  /// Returns the entry of a cache of series that this thread uses for a number, such as the packed
  /// labels of a request.
  struct Known {
    std::uint64_t key = 0;
    Cell* cells = nullptr;
  };
  Known& known(std::uint64_t key) noexcept {
    return known_[key * 0x9e3779b97f4a7c15 >> (64 - known_bits)];
  }

 private:
  using Chunk = std::array<Cell, chunk_size>;
  static constexpr unsigned known_bits = 8;
  class Lease;

  static ThreadCells* attach() noexcept;
  static Cell* make(CellId first) noexcept;
  const Cell* find(CellId id) const noexcept {
    // acquire pairs with make(): the reader sees zeros or later numbers.
    const Chunk* const chunk = chunks_[id / chunk_size].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[id % chunk_size];
  }

  static constinit thread_local ThreadCells* current_;
  static constinit thread_local bool ended_;  // true after the Lease of this thread
  static std::atomic<ThreadCells*> all_;

  std::array<std::atomic<Chunk*>, chunks_max> chunks_{};
  ThreadCells* next_ = nullptr;  // set before it is published in all_
  bool in_use_ = false;          // guarded by the mutex of attach()
  std::array<Known, std::size_t{1} << known_bits> known_{};
  std::vector<const Series*> series_;  // hash table by Series::hash, with free entries
  std::size_t series_count_ = 0;
};

}  // namespace weir::telemetry::detail
