// Shelves: arrays that grow without moving what lies on them.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::wiring {

using Index = std::uint32_t;
inline constexpr Index none = UINT32_MAX;

/// T's by index, in runs that lie side by side; what was given back is used again. References stay
/// valid until then. Threads: one for what is here; the T's may be another's.
template <class T, std::size_t chunk = 256>
class Shelf {
 public:
  /// `count` fresh T's (at most `chunk`), side by side; gives the index of the first.
  Index take(std::size_t count = 1) {
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
  /// A run as it was taken.
  void give_back(Index first, std::size_t count = 1) {
    if (free_.size() <= count) free_.resize(count + 1);
    free_[count].push_back(first);
  }

  T& operator[](Index index) noexcept { return chunks_[index / chunk][index % chunk]; }
  const T& operator[](Index index) const noexcept { return chunks_[index / chunk][index % chunk]; }
  /// Above every index that was given out.
  Index size() const noexcept { return static_cast<Index>(size_); }
  void clear() noexcept {
    chunks_.clear();
    free_.clear();
    size_ = 0;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<std::vector<Index>> free_;  // by the length of the run
  std::size_t size_ = 0;
};

}  // namespace weir::wiring
