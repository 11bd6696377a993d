// Measures how much of the heap is in use.
#pragma once

#include <cstddef>

namespace weir::simulate {

/// Returns the bytes that the whole process has allocated. A sanitizer provides its own count.
std::size_t heap_bytes();

}  // namespace weir::simulate
