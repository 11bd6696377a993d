// A fast hash of bytes with 128 bits. It is no cryptographic hash: without a secret seed, texts
// with equal hashes can be made on purpose.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

/// The hash of a text.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

/// Returns the hash of `text`. It is the same in all processes and on all machines with this order
/// of bytes, for equal seeds.
Hash128 hash_bytes(std::string_view text, std::uint64_t seed) noexcept;

}  // namespace weir
