// State that the loops of one runtime share.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/listener_registry.hpp"
#include "weir/loop/detail/slots.hpp"
#include "weir/loop/detail/stall_detector.hpp"

namespace weir {
class Loop;
}  // namespace weir

namespace weir::loop {

/// A LoopGroup lets the loops of one runtime find each other and the objects that they share. A
/// loop without a runtime is alone in its group.
/// Threads: any, except where a function documents other threads.
class LoopGroup {
 public:
  /// Returns all loops, by core.
  std::span<Loop* const> loops() const noexcept { return loops_; }
  /// Call it before the loops run.
  void set_loops(std::vector<Loop*> loops) {
    loops_ = std::move(loops);
    listener_registry_.set_loop_count(loops_.size());
  }

  /// Returns the sockets that these loops listen on.
  ListenerRegistry& listener_registry() noexcept { return listener_registry_; }

  /// Returns the log of slow turns of these loops.
  StallLog& stall_log() noexcept { return stall_log_; }

  /// Returns the objects that higher floors share between these loops.
  Slots& slots() noexcept { return slots_; }

 private:
  std::vector<Loop*> loops_;
  ListenerRegistry listener_registry_;
  StallLog stall_log_;
  Slots slots_;
};

}  // namespace weir::loop
