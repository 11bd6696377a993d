// Memory that a library of compression allocates, counted and bounded for each state.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>

namespace weir::compression::detail {

/// The memory of one state of a library. The libraries get its functions as callbacks.
/// Threads: one at a time.
/// Lifetime: it outlives all blocks.
class CountedMemory {
 public:
  explicit CountedMemory(std::size_t bytes_max = std::numeric_limits<std::size_t>::max()) noexcept
      : bytes_max_(bytes_max) {}
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns true if an allocation was refused because of the bound.
  bool exceeded() const noexcept { return exceeded_; }

  /// Returns a block for any type. Returns nullptr if there is no memory, or above the bound.
  void* allocate(std::size_t bytes) noexcept {
    if (bytes > bytes_max_ - bytes_) {
      exceeded_ = true;
      return nullptr;
    }
    auto* const header = static_cast<Header*>(std::malloc(sizeof(Header) + bytes));
    if (header == nullptr) return nullptr;
    header->bytes = bytes;
    bytes_ += bytes;
    return header + 1;
  }
  /// Frees a block of `memory`, which is a CountedMemory. A null block is allowed.
  static void release(void* memory, void* block) noexcept {
    if (block == nullptr) return;
    Header* const header = static_cast<Header*>(block) - 1;
    static_cast<CountedMemory*>(memory)->bytes_ -= header->bytes;
    std::free(header);
  }

 private:
  struct alignas(std::max_align_t) Header {
    std::size_t bytes;
  };

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  bool exceeded_ = false;
};

}  // namespace weir::compression::detail
