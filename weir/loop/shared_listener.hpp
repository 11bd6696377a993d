// One listening socket that several loops, or several processes, have open.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// A path can be bound but once, so the loops of a group share one listening socket instead of
/// having one each; and a socket that comes from another process or may go to one is known here, so
/// that whoever listens through it sees how to end. Whoever does holds a pointer; the last one to
/// let go closes the socket, and removes its file if that is still there and ours.
/// Threads: any. Lifetime: not longer than the host.
class SharedListener {
 public:
  /// `own` is a descriptor of the socket that no loop uses.
  SharedListener(Host& host, Descriptor own, const os::Address& bound) noexcept
      : host_(host), own_(std::move(own)), bound_(bound) {}
  ~SharedListener() {
    if (!goes_on()) host_.remove_local_path(bound_);
  }
  SharedListener(const SharedListener&) = delete;
  SharedListener& operator=(const SharedListener&) = delete;

  /// A listening descriptor for one more loop. Errors: those of Host::share().
  Result<Descriptor> share() { return host_.share(own_.value()); }
  int descriptor() const noexcept { return own_.value(); }
  const os::Address& bound() const noexcept { return bound_; }

  /// Whether another process goes on with the socket. Then whoever stops listening here leaves it
  /// as it is: who waits in its queue, or comes later, is served there.
  bool goes_on() const noexcept { return goes_on_.load(std::memory_order_acquire); }
  void set_goes_on(bool whether) noexcept {
    // release: who sees it sees what was done before, such as giving the socket away.
    goes_on_.store(whether, std::memory_order_release);
  }
  /// Whether somebody keeps it open for longer than any process of this service.
  bool held() const noexcept { return held_; }
  void set_held() noexcept {
    held_ = true;
    set_goes_on(true);
  }

  /// Whether an older process waits until this one is about to accept from it. Set before the loops
  /// run.
  bool awaited() const noexcept { return awaited_; }
  void set_awaited() noexcept {
    awaited_ = true;
    set_goes_on(true);
  }

  /// Loops that accept from it. What is called when the last has stopped is set before the first
  /// begins.
  std::function<void()> on_stopped;
  void begin_accepting() noexcept { accepting_.fetch_add(1, std::memory_order_relaxed); }
  void end_accepting() {
    // acq_rel: who finds none left sees that each of them has stopped.
    if (accepting_.fetch_sub(1, std::memory_order_acq_rel) == 1 && on_stopped) on_stopped();
  }
  bool accepting() const noexcept { return accepting_.load(std::memory_order_acquire) != 0; }

 private:
  Host& host_;
  Descriptor own_;  // open while any loop listens, whichever closes first
  os::Address bound_;
  bool held_ = false;
  bool awaited_ = false;
  std::atomic<bool> goes_on_{false};
  std::atomic<std::size_t> accepting_{0};
};

}  // namespace weir
