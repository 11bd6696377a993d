// The read buffers that a core has lent to the kernel, which picks one for each arrival.
#pragma once

#include <liburing.h>

#include <array>
#include <cstdint>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"

namespace weir::uring {

/// A ring of empty buffers shared by all streams of a loop, so that an idle one holds none. A
/// buffer that leaves the ring with data is replaced at once: how long a handler keeps it is
/// nothing to the others.
/// Threads: the loop's. Lifetime: outlives the kernel's use of it: destroy the ring's owner first,
/// or close it.
class Buffers {
 public:
  static constexpr std::uint16_t group = 0;

  Buffers() noexcept = default;
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Registers the ring, still without buffers. Errors: the kernel's.
  Result<> open(io_uring& ring);

  /// Puts buffers wherever there are none: all of them at first, and those that could not be
  /// replaced when memory was short. Returns whether the kernel has any.
  bool fill() noexcept;

  /// Takes buffer `id`, into which the kernel has put `size` bytes.
  Buffer take(std::uint16_t id, std::size_t size) noexcept;
  /// How many there are at most for what arrives before the next look at completions.
  std::size_t lent() const noexcept { return count - missing_.size(); }
  /// Looks at what the kernel has put into it instead; give_back() it afterwards.
  Bytes peek(std::uint16_t id, std::size_t size) noexcept;
  void give_back(std::uint16_t id) noexcept { lend(id); }

 private:
  // More than arrives in one turn, mostly; if not, receives end with ENOBUFS; see Core::starved.
  static constexpr unsigned count = 256;
  static constexpr std::size_t ring_bytes = count * sizeof(io_uring_buf);

  bool replace(std::uint16_t id) noexcept;
  void lend(std::uint16_t id) noexcept;

  io_uring_buf_ring* ring_ = nullptr;
  std::array<Buffer, count> buffers_;
  std::vector<std::uint16_t> missing_;
};

}  // namespace weir::uring
