// Descriptor of a platform: one of the operating system, or a simulated one.
#pragma once

#include <utility>

namespace weir::loop {

class PlatformNetwork;

/// Move-only owner of a descriptor. Closes it through the platform that opened it.
/// Threads: one at a time.
/// Lifetime: must not outlive its platform.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  Descriptor(PlatformNetwork& network, int value) noexcept : network_(&network), value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : network_(std::exchange(other.network_, nullptr)), value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(network_, other.network_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int value() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }
  /// Returns the descriptor; the caller must close it.
  int release() noexcept {
    network_ = nullptr;
    return std::exchange(value_, -1);
  }
  void reset() noexcept;

 private:
  PlatformNetwork* network_ = nullptr;
  int value_ = -1;
};

}  // namespace weir::loop
