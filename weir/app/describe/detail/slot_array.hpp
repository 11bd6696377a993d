// SlotArray: an array that grows without moving its elements and reuses released slots.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::inject {

using Index = std::uint32_t;
inline constexpr Index no_index = UINT32_MAX;

/// Elements by index, allocated in contiguous runs. Released runs are reused. References stay
/// valid until their element is released.
/// Threads: one for the array itself; the elements may belong to other threads.
template <class T, std::size_t chunk = 256>
class SlotArray {
 public:
  /// Allocates `count` fresh elements (at most `chunk`) side by side.
  /// Returns: the index of the first.
  Index allocate(std::size_t count = 1) {
    assert(count != 0 && count <= chunk);
    if (count < free_.size() && !free_[count].empty()) {
      const Index first = free_[count].back();
      free_[count].pop_back();
      for (std::size_t i = 0; i < count; ++i) (*this)[first + static_cast<Index>(i)] = T();
      return first;
    }
    if (size_ % chunk + count > chunk || size_ % chunk == 0) {
      size_ = chunks_.size() * chunk;
      chunks_.push_back(std::make_unique<T[]>(chunk));
    }
    const auto first = static_cast<Index>(size_);
    size_ += count;
    return first;
  }
  /// Releases a run, which must be a whole allocation.
  void release(Index first, std::size_t count = 1) {
    if (free_.size() <= count) free_.resize(count + 1);
    free_[count].push_back(first);
  }

  T& operator[](Index index) noexcept { return chunks_[index / chunk][index % chunk]; }
  const T& operator[](Index index) const noexcept { return chunks_[index / chunk][index % chunk]; }
  /// Returns an index above every allocated index.
  Index size() const noexcept { return static_cast<Index>(size_); }
  void clear() noexcept {
    chunks_.clear();
    free_.clear();
    size_ = 0;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<std::vector<Index>> free_;  // by length of the run
  std::size_t size_ = 0;
};

}  // namespace weir::inject
