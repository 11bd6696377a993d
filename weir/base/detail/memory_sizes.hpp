// Arithmetic of memory_bound(): a result that does not fit is the largest number.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"

namespace weir::detail {

inline constexpr std::uint64_t unbounded = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t sum(std::initializer_list<std::uint64_t> parts) noexcept {
  std::uint64_t total = 0;
  for (const std::uint64_t each : parts) {
    if (__builtin_add_overflow(total, each, &total)) return unbounded;
  }
  return total;
}

constexpr std::uint64_t product(std::uint64_t left, std::uint64_t right) noexcept {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? unbounded : result;
}

/// Returns the size that BlockPool allocates for `bytes`: at most twice `bytes` and 8 more, with a
/// header.
constexpr std::uint64_t block(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t overhead = 16 + 8;
  return sum({overhead, bytes > BlockPool::block_max ? bytes : std::bit_ceil(bytes)});
}

/// Returns the size of the memory of a Buffer with room for `bytes`.
constexpr std::uint64_t buffer(std::uint64_t bytes) noexcept {
  return block(std::max<std::uint64_t>(bytes, Buffer::default_capacity));
}

}  // namespace weir::detail
