// The heap of the HTTP tests, which count its allocations and let it run out of memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

// The address sanitizer counts the bytes; other builds have no such function.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace weir {

/// Returns the bytes in use. It is always 0 in a build that cannot count them.
inline std::size_t allocated_bytes() {
  return &__sanitizer_get_current_allocated_bytes == nullptr
             ? 0
             : __sanitizer_get_current_allocated_bytes();
}

/// The operator new of this whole binary; connection_allocations_test.cpp replaces it.
struct TestHeap {
  /// Returns false if a sanitizer's own operators stay in place. The members below then have no
  /// effect.
#if defined(__SANITIZE_THREAD__)
  static constexpr bool replaced = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  static constexpr bool replaced = false;
#else
  static constexpr bool replaced = true;
#endif
#else
  static constexpr bool replaced = true;
#endif

  static inline std::atomic<std::uint64_t> news{0};  ///< number of calls

  /// Decides for each allocation of this thread, while it is installed, if the allocation fails.
  class AllocationFailure {
   public:
    virtual bool now() noexcept = 0;

   protected:
    ~AllocationFailure() = default;
  };
  static inline thread_local AllocationFailure* allocation_failure = nullptr;

  /// Allows code that is not under test to allocate during failures.
  class NoAllocationFailure {
   public:
    NoAllocationFailure() noexcept
        : allocation_failure_(std::exchange(allocation_failure, nullptr)) {}
    ~NoAllocationFailure() { allocation_failure = allocation_failure_; }
    NoAllocationFailure(const NoAllocationFailure&) = delete;
    NoAllocationFailure& operator=(const NoAllocationFailure&) = delete;

   private:
    AllocationFailure* allocation_failure_;
  };
};

}  // namespace weir
