// How much of the heap is in use.
#pragma once

#include <cstddef>

namespace weir::simulate {

/// Of the whole process, in bytes; under a sanitizer what it counts itself.
std::size_t heap_bytes();

}  // namespace weir::simulate
