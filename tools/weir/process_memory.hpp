// Measures the memory of other processes, such as the server under attack.
#pragma once

#include <cstdint>
#include <span>

#include "weir/base/result.hpp"

namespace weir::bench {

/// Returns the bytes that these processes hold in memory and in swap space.
/// Errors: Errc::not_found if a process does not exist.
Result<std::uint64_t> process_memory(std::span<const int> processes);

}  // namespace weir::bench
