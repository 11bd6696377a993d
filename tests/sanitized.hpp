// The constant `sanitized` is true if the tests and the programs that they run use a sanitizer's
// allocator.
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

// Returns the sanitizer's count of allocated bytes. The symbol is null without a sanitizer. It is
// declared here because the sanitizers' header is not installed with every compiler.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();
