// Listeners on io_uring: an accept that stays armed, and what it has accepted ahead.
#pragma once

#include <cstddef>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/uring_socket.hpp"

namespace weir::uring {

/// A listener. The kernel accepts by itself from the first accept() on; connections that nobody
/// waits for are queued. It is told to stop when there are `accepted_max` of them, so that a
/// program which has enough leaves the rest to the kernel's own queue.
class Listener : public SocketState {
 public:
  Listener(int value, bool shared) noexcept
      : SocketState(value, SocketRole::listener), shared_(shared) {}

  /// See SocketOptions::shared.
  bool shared() const noexcept { return shared_; }

  bool accept(Core& core, AcceptOperation& operation);
  void cancel(Core& core, Operation& operation);
  /// See Backend::stop_accepting().
  void take_no_more(Core& core);
  /// Ends the armed request and drops the connections that nobody took. No operation is pending.
  void stop(Core& core);

  void completed(Core& core, const Completion& completion);
  /// When to call resume(), while it waits for descriptors or memory to become free.
  Instant resume_at() const noexcept { return resume_at_; }
  void resume(Core& core);
  /// Closes the connections that nobody took.
  void drop_accepted(Core& core) noexcept;

 private:
  static constexpr std::size_t accepted_max = 64;

  void arm(Core& core);
  void keep(Core& core, int connection) noexcept;
  void failed(Core& core, int error);
  void pause(Core& core);

  AcceptOperation* accepting_ = nullptr;
  std::vector<int> accepted_;  // the oldest is at `taken_`
  std::size_t taken_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
  bool paused_ = false;
  bool takes_no_more_ = false;
  bool shared_;
  Duration pause_{};
  Instant resume_at_{};
};

}  // namespace weir::uring
