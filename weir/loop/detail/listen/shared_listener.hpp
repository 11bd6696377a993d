// A listening socket that several loops or processes have open.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/network.hpp"

namespace weir::loop {

/// A SharedListener is a listening socket that several loops share, or that comes from or goes to
/// another process. The loops of a group share one socket of a Unix path, because a path can be
/// bound only once. Loops that use a socket of several processes find out here how to stop. Each
/// such loop holds a pointer. Releasing the last pointer closes the socket, and removes its file
/// if the file still belongs to this socket.
/// Threads: any.
/// Lifetime: the platform outlives it.
class SharedListener {
 public:
  /// `own` is a descriptor of the socket that no loop uses.
  SharedListener(PlatformNetwork& network, Descriptor own, const os::Address& bound) noexcept
      : network_(network), own_(std::move(own)), bound_(bound) {}
  ~SharedListener() {
    if (!stays_open_elsewhere()) network_.remove_local_path(bound_);
  }
  SharedListener(const SharedListener&) = delete;
  SharedListener& operator=(const SharedListener&) = delete;

  /// Returns a listening descriptor for one more loop.
  /// Errors: those of PlatformNetwork::share().
  Result<Descriptor> share() { return network_.share(own_.value()); }
  int descriptor() const noexcept { return own_.value(); }
  const os::Address& bound() const noexcept { return bound_; }

  /// Returns true if another process keeps the socket. A loop that stops listening then
  /// leaves the socket as it is. The other process serves the connections in its queue and later
  /// ones.
  bool stays_open_elsewhere() const noexcept {
    return stays_open_elsewhere_.load(std::memory_order_acquire);
  }
  void set_stays_open_elsewhere(bool value) noexcept {
    // release: a reader of the value sees what was done before, such as passing the socket on.
    stays_open_elsewhere_.store(value, std::memory_order_release);
  }
  /// Returns true if a process outside this service, such as a service manager, keeps the socket
  /// open.
  bool externally_owned() const noexcept { return externally_owned_; }
  void set_externally_owned() noexcept {
    externally_owned_ = true;
    set_stays_open_elsewhere(true);
  }

  /// Returns true if an older process waits until this one is about to accept from the socket. It
  /// is set before the loops run.
  bool peer_waits_for_accept() const noexcept { return peer_waits_for_accept_; }
  void set_peer_waits_for_accept() noexcept {
    peer_waits_for_accept_ = true;
    set_stays_open_elsewhere(true);
  }

  /// Called when the last accepting loop has stopped. Set it before the first loop begins.
  std::function<void()> on_stopped;
  void begin_accepting() noexcept { accepting_loops_.fetch_add(1, std::memory_order_relaxed); }
  void end_accepting() {
    // acq_rel: the thread that counts down to zero sees that each loop has stopped.
    if (accepting_loops_.fetch_sub(1, std::memory_order_acq_rel) == 1 && on_stopped) on_stopped();
  }
  bool accepting() const noexcept { return accepting_loops_.load(std::memory_order_acquire) != 0; }

 private:
  PlatformNetwork& network_;
  Descriptor own_;  // open while any loop listens, whichever loop closes first
  os::Address bound_;
  bool externally_owned_ = false;
  bool peer_waits_for_accept_ = false;
  std::atomic<bool> stays_open_elsewhere_{false};
  std::atomic<std::size_t> accepting_loops_{0};
};

}  // namespace weir::loop
