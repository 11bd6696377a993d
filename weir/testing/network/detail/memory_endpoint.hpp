// What simulated descriptors refer to, of whatever kind.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/os/address.hpp"

namespace weir {

/// Told when a socket may have become able to do something: once for many changes is enough.
class MemoryObserver {
 public:
  virtual void changed() = 0;

 protected:
  ~MemoryObserver() = default;
};

/// What a simulated descriptor refers to. Threads: one.
class MemoryEndpoint {
 public:
  enum class Kind : std::uint8_t { stream, listener, file, datagrams, meeting };

  MemoryEndpoint(const MemoryEndpoint&) = delete;
  MemoryEndpoint& operator=(const MemoryEndpoint&) = delete;
  virtual ~MemoryEndpoint() = default;

  Kind kind() const noexcept { return kind_; }
  const os::Address& local() const noexcept { return local_; }
  /// From now on `observer` is told too, until forget().
  void observe(MemoryObserver& observer) { observers_.push_back(&observer); }
  void forget(MemoryObserver& observer) noexcept { std::erase(observers_, &observer); }

 protected:
  explicit MemoryEndpoint(Kind kind) noexcept : kind_(kind) {}
  void changed() {
    for (MemoryObserver* const observer : observers_) observer->changed();
  }

  os::Address local_;

 private:
  Kind kind_;
  std::vector<MemoryObserver*> observers_;  // several when descriptors share it
};

}  // namespace weir
