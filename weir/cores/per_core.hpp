// One value for each core.
#pragma once

#include <cassert>
#include <cstddef>
#include <deque>

#include "weir/loop/loop.hpp"

namespace weir {

/// A T for each core, made when this is: what handlers count or cache without sharing. Each is on
/// cache lines of its own, so that cores do not slow each other down.
/// Threads: local() on the loop that it is given; a T belongs to its core, so reach for another's
/// by on_core(), or while no loop runs. Lifetime: outlives the run of the loops.
template <class T>
class PerCore {
 public:
  /// `make(core)` gives the T of a core, for `cores` of them; Runtime::core_count() tells how many.
  template <class Make>
  PerCore(std::size_t cores, Make make) {
    for (std::size_t core = 0; core < cores; ++core) {
      slots_.emplace_back(make, static_cast<unsigned>(core));
    }
  }
  /// Each a T().
  explicit PerCore(std::size_t cores) : PerCore(cores, [](unsigned) { return T(); }) {}
  PerCore(const PerCore&) = delete;
  PerCore& operator=(const PerCore&) = delete;

  /// The T of the loop that the caller is on.
  T& local(const Loop& loop) noexcept { return on(loop.core()); }
  T& on(std::size_t core) noexcept {
    assert(core < slots_.size());
    return slots_[core].value;
  }
  std::size_t size() const noexcept { return slots_.size(); }

 private:
  // Twice a cache line of 64 bytes: processors fetch them in pairs.
  struct alignas(128) Slot {
    template <class Make>
    Slot(Make& make, unsigned core) : value(make(core)) {}
    T value;
  };
  std::deque<Slot> slots_;
};

}  // namespace weir
