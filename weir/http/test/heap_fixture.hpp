// The heap of the HTTP floor's tests, as they count it and let it run out.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weir {

/// What operator new does in this whole binary; connection_allocations_test.cpp replaces it.
struct TestHeap {
  /// False where a sanitizer's own operators stay in place: nothing below has an effect then.
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

  static inline std::atomic<std::uint64_t> news{0};  ///< calls

  /// While there is one on this thread, it says for each call whether there is no memory.
  class Shortage {
   public:
    virtual bool now() noexcept = 0;

   protected:
    ~Shortage() = default;
  };
  static inline thread_local Shortage* shortage = nullptr;

  /// Lets who is no part of what is tested have memory all the same.
  class Spared {
   public:
    Spared() noexcept : shortage_(std::exchange(shortage, nullptr)) {}
    ~Spared() { shortage = shortage_; }
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;

   private:
    Shortage* shortage_;
  };
};

}  // namespace weir
