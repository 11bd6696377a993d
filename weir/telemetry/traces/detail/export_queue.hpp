// The queue of spans or log records between the cores and the exporter.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::telemetry {

/// A bounded queue for each core, and one for the threads without a loop. The exporter takes the
/// items of all of them. An item counts until the exporter releases it. An item that exceeds a
/// limit is destroyed and counted.
/// Threads: push() and the counters on any; take() and release() on the exporter's.
template <class T>
class ExportQueue {
 public:
  static constexpr std::size_t lanes = 64;       ///< cores beyond them share the queues
  static constexpr std::size_t no_core = lanes;  ///< the queue of threads without a loop

  /// Makes queues of at most `count_max` items and about `bytes_max` bytes each.
  ExportQueue(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max), lanes_(std::make_unique<Lanes>()) {}
  ExportQueue(const ExportQueue&) = delete;
  ExportQueue& operator=(const ExportQueue&) = delete;
  ~ExportQueue() {
    for (std::size_t index = 0; index <= lanes; ++index) {
      for (T* item = take(index); item != nullptr;) delete std::exchange(item, item->next);
    }
  }

  static constexpr std::size_t lane_of(unsigned core) noexcept { return core % lanes; }

  /// Adds an item to a queue.
  /// Returns: the number of items of the queue; 0 if the item was dropped.
  std::size_t push(std::unique_ptr<T> item, std::size_t index) noexcept {
    Lane& lane = (*lanes_)[index];
    const std::size_t size = item->bytes();
    // relaxed, in all of this class: the counts order no memory, and `newest` does.
    const std::size_t count = lane.count.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::size_t bytes = lane.bytes.fetch_add(size, std::memory_order_relaxed) + size;
    if (count > count_max_ || bytes > bytes_max_) {
      lane.count.fetch_sub(1, std::memory_order_relaxed);
      lane.bytes.fetch_sub(size, std::memory_order_relaxed);
      lane.dropped.fetch_add(1, std::memory_order_relaxed);
      return 0;
    }
    item->queue = static_cast<unsigned>(index);
    T* const added = item.release();
    added->next = lane.newest.load(std::memory_order_relaxed);
    // release: the exporter sees the contents of the item.
    while (!lane.newest.compare_exchange_weak(added->next, added, std::memory_order_release,
                                              std::memory_order_relaxed)) {
    }
    return count;
  }

  /// Removes and returns all items of a queue, linked by T::next, the newest first. The caller puts
  /// them in their order in steps, because there may be many.
  T* take(std::size_t index) noexcept {
    // acquire pairs with the release in push().
    return (*lanes_)[index].newest.exchange(nullptr, std::memory_order_acquire);
  }
  /// Destroys an item that take() has returned.
  void release(T* item) noexcept {
    Lane& lane = (*lanes_)[item->queue];
    lane.count.fetch_sub(1, std::memory_order_relaxed);
    lane.bytes.fetch_sub(item->bytes(), std::memory_order_relaxed);
    delete item;
  }

  /// Returns the number of items that were added and not released.
  std::size_t size() const noexcept {
    return sum([](const Lane& lane) { return lane.count.load(std::memory_order_relaxed); });
  }
  /// Returns the number of items that were dropped.
  std::uint64_t dropped() const noexcept {
    return sum([](const Lane& lane) { return lane.dropped.load(std::memory_order_relaxed); });
  }

 private:
  struct alignas(128) Lane {  // two cache lines: processors fetch lines in pairs
    std::atomic<T*> newest{nullptr};
    std::atomic<std::size_t> count{0};
    std::atomic<std::size_t> bytes{0};
    std::atomic<std::uint64_t> dropped{0};
  };
  using Lanes = std::array<Lane, lanes + 1>;
  template <class F>
  auto sum(F value) const noexcept {
    auto total = value(lanes_->front());
    for (std::size_t index = 1; index < lanes_->size(); ++index) total += value((*lanes_)[index]);
    return total;
  }

  const std::size_t count_max_;
  const std::size_t bytes_max_;
  const std::unique_ptr<Lanes> lanes_;  // not a member: the frame of a coroutine is not aligned
};

}  // namespace weir::telemetry
