// Unpredictable bits from the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::os {

/// 64 bits that nobody can guess. Any thread. Costs a system call; the process ends in the one case
/// that it has no source of them at all (no getrandom(2) and no /dev/urandom).
std::uint64_t random_bits() noexcept;

/// Fills `bytes` with them.
void fill_random(std::span<std::byte> bytes) noexcept;

}  // namespace weir::os
