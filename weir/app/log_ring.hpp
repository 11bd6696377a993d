// A bounded queue of log records, from one core to the thread that writes them out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/loop/figures.hpp"

namespace weir {

/// Bytes in a circle. Neither side ever waits for the other: what does not fit is dropped, and
/// counted. Threads: push() and count_up() one at a time, mark() and take() another one at a time.
class LogRing final : public FigureSource {
 public:
  /// `number` tells the rings of one Logs apart.
  LogRing(std::size_t bytes, unsigned number);
  ~LogRing() { leave(); }
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  unsigned number() const noexcept { return number_; }
  const Counter& dropped() const noexcept { return dropped_; }

  /// Adds a record; false: there is no room, and it is dropped.
  bool push(Bytes record) noexcept;
  /// 1, 2, 3 …
  std::uint64_t count_up() noexcept { return ++count_; }

  /// Whether there is anything to take.
  bool empty() const noexcept;
  /// take() gives what has been pushed by now, and no more until the next mark().
  void mark() noexcept;
  /// Moves the next record to `record`; false: there is none.
  bool take(std::vector<std::byte>& record);

  /// "log records dropped": in the figures of its loop from the first one on.
  void tell(FigureSum& sum) const override;

  LogRing* next = nullptr;  ///< in the list of all, set before it is published
  // Of the side that takes.
  std::vector<std::byte> head;  ///< taken, but not written out; empty: none
  std::uint64_t drops_told = 0;

 private:
  void copy_in(std::uint64_t at, Bytes bytes) noexcept;
  void copy_out(std::uint64_t at, MutableBytes bytes) const noexcept;

  const std::size_t size_;  // a power of two
  const unsigned number_;
  const std::unique_ptr<std::byte[]> bytes_;
  Counter dropped_;
  std::uint64_t count_ = 0;
  std::uint64_t taken_seen_ = 0;  // of the side that pushes: taken_, some time ago
  std::uint64_t marked_ = 0;      // of the side that takes
  // Positions that only grow; modulo size_ they are places.
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace weir
