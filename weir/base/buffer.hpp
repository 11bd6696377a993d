// Buffer: a byte buffer in a block of a core's memory pool, returned to the pool when destroyed.
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

/// A Buffer owns one block of a core's pool and marks the range of the block that holds bytes.
/// It is move-only.
/// Threads: one at a time. A buffer may be moved to another core and destroyed there; its block
/// then returns to the pool of the core that allocated it.
/// Lifetime: independent of the stream that filled the buffer.
class Buffer {
 public:
  /// The default capacity of the buffer for one read.
  static constexpr std::uint32_t default_capacity = 16 * 1024;

  Buffer() noexcept = default;
  /// Returns: an empty buffer with room for `capacity` bytes.
  /// Errors: throws std::bad_alloc.
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
  /// Returns true if the buffer has a block.
  bool owns_memory() const noexcept { return block_ != nullptr; }
  std::size_t capacity() const noexcept { return capacity_; }

  Bytes bytes() const noexcept { return {data(), size()}; }
  std::string_view text() const noexcept { return to_text(bytes()); }
  operator Bytes() const noexcept { return bytes(); }

  /// Returns the unused room after the bytes. The caller fills it and then calls commit().
  MutableBytes room() noexcept { return {block_ + end_, capacity_ - end_}; }
  /// Adds the first `count` bytes of room(), at most its size, to the bytes of the buffer.
  void commit(std::size_t count) noexcept {
    assert(count <= capacity_ - end_);
    end_ += static_cast<std::uint32_t>(count);
  }
  /// Ensures that room() has at least `count` bytes. The bytes of the buffer may move.
  /// Errors: throws std::bad_alloc, also if a buffer of 2 GiB or more would be needed.
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
  /// Removes `count` bytes, at most size(), from the front.
  void consume(std::size_t count) noexcept {
    assert(count <= size());
    begin_ += static_cast<std::uint32_t>(count);
  }
  /// Keeps the first `count` bytes, at most size(), and removes the rest.
  void truncate(std::size_t count) noexcept {
    assert(count <= size());
    end_ = begin_ + static_cast<std::uint32_t>(count);
  }
  /// Removes all bytes. The whole block is room again.
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
