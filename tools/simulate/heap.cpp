// Reads the size of the heap from the allocator or the sanitizer.
#include "tools/simulate/heap.hpp"

#include <malloc.h>

// Returns the sanitizer's own count. It is defined only in builds with a sanitizer.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace weir::simulate {

std::size_t heap_bytes() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace weir::simulate
