// Unpredictable random bits. libc calls getrandom(2) and has a fallback if that call is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace weir::os {

/// Fills `bytes` with unpredictable bits, at the cost of a system call. The process ends if it has
/// no source of random bits at all (no getrandom(2) and no /dev/urandom).
/// Threads: any.
inline void fill_random(std::span<std::byte> bytes) noexcept {
  ::arc4random_buf(bytes.data(), bytes.size());
}

/// Returns 64 unpredictable bits, as fill_random() does.
/// Threads: any.
inline std::uint64_t random_bits() noexcept {
  std::uint64_t bits = 0;
  fill_random(std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

}  // namespace weir::os
