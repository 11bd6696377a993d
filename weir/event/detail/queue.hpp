// A first-in first-out queue of records of different lengths, in chunks of its core's memory.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

namespace weir::detail {

/// Records lie one behind the other, each at a multiple of 8 bytes, so that a queue of small events
/// is walked like an array. A record does not move. While the queue stays within a chunk it takes
/// no memory; beyond, a chunk at a time from the core's BlockPool, where they go back to. The last
/// chunk is kept until give_back().
/// Threads: one at a time. Lifetime: emptied before it is destroyed (asserted).
class EventQueue {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{16} * 1024;
  static constexpr std::size_t record_bytes_max = 256;

  EventQueue() noexcept = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue();

  bool empty() const noexcept { return read_ == write_; }
  /// What memory it has kept; it is empty.
  void give_back() noexcept;

  /// Makes sure that add() of so many bytes cannot fail. Errors: throws std::bad_alloc.
  void make_room(std::size_t bytes) {
    assert(bytes % 8 == 0 && bytes <= record_bytes_max);
    if (static_cast<std::size_t>(limit_ - write_) < bytes) [[unlikely]]
      grow();
  }
  /// A new last record of so many bytes, for which room was made; the caller writes it.
  std::byte* add(std::size_t bytes) noexcept {
    assert(static_cast<std::size_t>(limit_ - write_) >= bytes);
    return std::exchange(write_, write_ + bytes);
  }

  /// The first record. Not of an empty queue.
  std::byte* front() const noexcept {
    assert(!empty());
    return read_;
  }
  /// Removes it. `bytes` as it was added.
  void pop(std::size_t bytes) noexcept {
    read_ += bytes;
    if (read_ == write_) {
      rewind();
    } else if (read_ == read_end_) {
      next_chunk();
    }
  }

 private:
  struct Chunk {
    Chunk* next;
    std::byte* end;  // of what is written, once that goes on in the next one
    std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  static_assert(sizeof(Chunk) % 8 == 0);

  void grow();
  void next_chunk() noexcept;
  // Empty, so there is but one chunk: begin it anew.
  void rewind() noexcept { read_ = write_ = last_->begin(); }

  std::byte* write_ = nullptr;
  std::byte* limit_ = nullptr;  // of the last chunk
  std::byte* read_ = nullptr;
  std::byte* read_end_ = nullptr;  // of the first chunk, once there is a next one
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
};

}  // namespace weir::detail
