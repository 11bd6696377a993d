// Descriptor of a platform: one of the operating system, or a simulated one.
#pragma once

#include <utility>

namespace weir {

class Platform;

/// Move-only owner of a descriptor. Closes it through the platform that opened it.
/// Threads: one at a time.
/// Lifetime: must not outlive its platform.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  Descriptor(Platform& platform, int value) noexcept : platform_(&platform), value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : platform_(std::exchange(other.platform_, nullptr)),
        value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(platform_, other.platform_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int value() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }
  /// Returns the descriptor; the caller must close it.
  int release() noexcept {
    platform_ = nullptr;
    return std::exchange(value_, -1);
  }
  void reset() noexcept;

 private:
  Platform* platform_ = nullptr;
  int value_ = -1;
};

}  // namespace weir
