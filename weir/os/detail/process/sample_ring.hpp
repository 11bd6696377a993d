// A queue of samples from a signal handler to one reader, in memory of a fixed size.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weir::os {

/// A SampleRing passes records of words from one writer to one reader. The writer may be a signal
/// handler: push() neither waits nor allocates. A record that does not fit is dropped and counted.
/// Threads: push() on one, drain() on one, dropped() on any.
class SampleRing {
 public:
  using Word = std::uintptr_t;

  /// `words` is a power of two. The kernel provides the memory when it is written for the first
  /// time.
  /// Errors: throws std::bad_alloc.
  explicit SampleRing(std::size_t words)
      : size_(words), words_(std::make_unique_for_overwrite<Word[]>(words)) {
    assert(std::has_single_bit(words));
  }

  /// Appends a record that consists of two parts.
  void push(const Word* head, std::size_t head_size, const Word* tail,
            std::size_t tail_size) noexcept {
    const std::size_t size = head_size + tail_size;
    const std::size_t end = end_.load(std::memory_order_relaxed);  // only this thread writes it
    // acquire: the reader no longer reads what it has taken.
    if (size + 1 > size_ - (end - begin_.load(std::memory_order_acquire))) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    std::size_t at = end;
    put(at++, size);
    for (std::size_t index = 0; index < head_size; ++index) put(at++, head[index]);
    for (std::size_t index = 0; index < tail_size; ++index) put(at++, tail[index]);
    end_.store(at, std::memory_order_release);
  }

  /// Calls `use(std::span<const Word>)` for each record, the oldest first, and removes it. It stops
  /// after `most` records.
  /// Returns: the number of records.
  template <class Use>
  std::size_t drain(std::size_t most, Use use) {
    const std::size_t end = end_.load(std::memory_order_acquire);
    std::size_t at = begin_.load(std::memory_order_relaxed);
    std::vector<Word> record;
    std::size_t count = 0;
    for (; at != end && count < most; ++count) {
      record.resize(get(at++));
      for (Word& each : record) each = get(at++);
      begin_.store(at, std::memory_order_release);
      use(std::span<const Word>(record));
    }
    return count;
  }

  /// Returns the number of records that were dropped.
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  void put(std::size_t at, Word word) noexcept { words_[at & (size_ - 1)] = word; }
  Word get(std::size_t at) const noexcept { return words_[at & (size_ - 1)]; }

  std::size_t size_;
  std::unique_ptr<Word[]> words_;
  std::atomic<std::size_t> begin_{0};  // they only grow
  std::atomic<std::size_t> end_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace weir::os
