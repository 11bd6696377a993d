// A buffer lent by a core: bytes that were read, or room to write into, given back when dropped.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"

namespace weir {

/// Move-only owner of one block of a core's pool, with the part of it that holds bytes.
/// Threads: one at a time; may be moved to and dropped on another core, the block finds its way
/// home. Lifetime: independent of the stream it came from.
class Buffer {
 public:
  /// What a core lends for one read unless told otherwise.
  static constexpr std::uint32_t default_capacity = 16 * 1024;

  Buffer() noexcept = default;
  /// An empty buffer with room for `capacity` bytes. Errors: throws std::bad_alloc.
  static Buffer with_capacity(std::uint32_t capacity = default_capacity) {
    return Buffer(static_cast<std::byte*>(BlockPool::allocate(capacity, BlockUse::buffer)),
                  capacity);
  }

  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        begin_(std::exchange(other.begin_, 0)),
        end_(std::exchange(other.end_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    std::swap(block_, taken.block_);
    std::swap(begin_, taken.begin_);
    std::swap(end_, taken.end_);
    std::swap(capacity_, taken.capacity_);
    return *this;
  }
  ~Buffer() { BlockPool::release(block_); }

  std::byte* data() noexcept { return block_ + begin_; }
  const std::byte* data() const noexcept { return block_ + begin_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  /// Whether there is a block at all.
  bool owns_memory() const noexcept { return block_ != nullptr; }
  std::size_t capacity() const noexcept { return capacity_; }

  Bytes bytes() const noexcept { return {data(), size()}; }
  std::string_view text() const noexcept { return to_text(bytes()); }
  operator Bytes() const noexcept { return bytes(); }

  /// The unused room behind the bytes; fill it, then tell how much by grow().
  MutableBytes room() noexcept { return {block_ + end_, capacity_ - end_}; }
  void grow(std::size_t count) noexcept {
    assert(count <= capacity_ - end_);
    end_ += static_cast<std::uint32_t>(count);
  }
  /// Sees to it that there is room for `count` bytes more; the bytes that are there may move.
  /// Errors: throws std::bad_alloc, also where they would be 2 GiB and more.
  void make_room(std::size_t count) {
    if (capacity_ - end_ >= count) return;
    const std::size_t used = size();
    if (count >= size_max - used) throw std::bad_alloc();
    const std::size_t doubled = std::min(2 * used, size_max);
    Buffer larger = with_capacity(static_cast<std::uint32_t>(
        std::max({std::size_t{default_capacity}, doubled, used + count})));
    if (used != 0) std::memcpy(larger.block_, data(), used);
    larger.end_ = static_cast<std::uint32_t>(used);
    *this = std::move(larger);
  }
  /// Drops `count` bytes at the front.
  void consume(std::size_t count) noexcept {
    assert(count <= size());
    begin_ += static_cast<std::uint32_t>(count);
  }
  /// Drops what is behind the first `count` bytes.
  void truncate(std::size_t count) noexcept {
    assert(count <= size());
    end_ = begin_ + static_cast<std::uint32_t>(count);
  }
  /// Drops all bytes; the whole block is room again.
  void clear() noexcept { begin_ = end_ = 0; }

 private:
  static constexpr std::size_t size_max = std::size_t{1} << 31;

  Buffer(std::byte* block, std::uint32_t capacity) noexcept : block_(block), capacity_(capacity) {}

  std::byte* block_ = nullptr;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t capacity_ = 0;
};

}  // namespace weir
