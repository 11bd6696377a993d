// An open descriptor of a host: the operating system's, or a simulated one.
#pragma once

#include <utility>

namespace weir {

class Host;

/// Move-only owner of a descriptor; closes it through the host that opened it.
/// Threads: one at a time. Lifetime: must not outlive its host.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  Descriptor(Host& host, int value) noexcept : host_(&host), value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : host_(std::exchange(other.host_, nullptr)), value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(host_, other.host_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int value() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }
  /// The caller closes it from now on.
  int release() noexcept {
    host_ = nullptr;
    return std::exchange(value_, -1);
  }
  void reset() noexcept;

 private:
  Host* host_ = nullptr;
  int value_ = -1;
};

}  // namespace weir
