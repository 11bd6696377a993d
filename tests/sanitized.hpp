// Whether these tests, and the programs that they run, are built with a sanitizer's allocator.
#pragma once

#include <cstddef>

namespace weir::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace weir::tests

// The sanitizers' own count of bytes that are allocated; defined only where they are. (Their header
// is not installed with every compiler.)
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();
