// Randomness, from libc's getrandom(2) with its fallback for machines that refuse that call.
#include "weir/os/detail/io/random.hpp"

#include <cstdlib>

namespace weir::os {

std::uint64_t random_bits() noexcept {
  std::uint64_t bits = 0;
  fill_random(std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

void fill_random(std::span<std::byte> bytes) noexcept {
  ::arc4random_buf(bytes.data(), bytes.size());
}

}  // namespace weir::os
