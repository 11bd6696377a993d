// The objects that simulated descriptors refer to.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/os/address.hpp"

namespace weir {

/// A MemoryObserver is called when a socket may have become ready. One call may stand for many
/// changes.
class MemoryObserver {
 public:
  virtual void on_change() = 0;

 protected:
  ~MemoryObserver() = default;
};

/// The object that a simulated descriptor refers to.
/// Threads: one.
class MemoryEndpoint {
 public:
  enum class Kind : std::uint8_t { stream, listener, file, datagrams, rendezvous };

  MemoryEndpoint(const MemoryEndpoint&) = delete;
  MemoryEndpoint& operator=(const MemoryEndpoint&) = delete;
  virtual ~MemoryEndpoint() = default;

  Kind kind() const noexcept { return kind_; }
  const os::Address& local() const noexcept { return local_; }
  /// Calls `observer` on each change, in addition to earlier observers, until unobserve().
  void observe(MemoryObserver& observer) { observers_.push_back(&observer); }
  void unobserve(MemoryObserver& observer) noexcept { std::erase(observers_, &observer); }

 protected:
  explicit MemoryEndpoint(Kind kind) noexcept : kind_(kind) {}
  void notify_observers() {
    for (MemoryObserver* const observer : observers_) observer->on_change();
  }

  os::Address local_;

 private:
  Kind kind_;
  std::vector<MemoryObserver*> observers_;  // several if descriptors share the endpoint
};

}  // namespace weir
