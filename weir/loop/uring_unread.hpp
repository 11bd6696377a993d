// What has arrived on a stream before anybody asked for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"

namespace weir::uring {

/// A first-in first-out queue of buffers. It knows how much memory it holds, not only how many
/// bytes wait in it: a peer that sends byte by byte must not pin a whole read buffer with each.
/// Small arrivals are therefore copied together, into buffers that grow with what waits.
/// Threads: the loop's. Memory: two pointers and a count while empty.
class Unread {
 public:
  /// Arrivals up to this size are better copied than kept in the buffer that they came in.
  static constexpr std::size_t small_max = Buffer::default_capacity / 4;

  Unread() noexcept = default;
  ~Unread();
  Unread(const Unread&) = delete;
  Unread& operator=(const Unread&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  /// Bytes of memory in the queued buffers.
  std::size_t held() const noexcept { return held_; }

  /// Errors: both throw std::bad_alloc and have queued nothing then.
  void push(Buffer buffer);
  /// For at most small_max bytes.
  void push_copy(Bytes bytes);

  /// The oldest buffer; there is one.
  Buffer pop() noexcept;
  /// Moves as many bytes as there are, or fit, into `target`.
  std::size_t read(MutableBytes target) noexcept;

 private:
  struct Chunk;

  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
  std::size_t held_ = 0;
};

}  // namespace weir::uring
