#include "tools/simulate/heap.hpp"

#include <malloc.h>

// The sanitizers' own count, defined only where they are.
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
