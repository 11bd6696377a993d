// Listeners, files and datagram sockets of the io_uring backend.
#pragma once

#include <cstddef>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/uring/ring.hpp"
#include "weir/loop/detail/uring/socket.hpp"

namespace weir::loop::uring {

// Listeners on io_uring: an accept request that stays armed, and connections accepted in advance.

/// A listener. The kernel accepts on its own from the first accept() on. Connections that no
/// operation waits for are queued. The listener cancels its request when the queue has
/// `accepted_max` connections, so that the rest stays in the kernel's own queue.
class Listener : public SocketState {
 public:
  Listener(int value, bool shared) noexcept
      : SocketState(value, SocketRole::listener), shared_(shared) {}

  /// See SocketOptions::shared.
  bool shared() const noexcept { return shared_; }

  bool accept(BackendContext& context, AcceptOperation& operation);
  void cancel(BackendContext& context, Operation& operation);
  /// See Backend::stop_accepting().
  void stop_accepting(BackendContext& context);
  /// Cancels the armed request and closes the connections that no operation took. No operation is
  /// pending.
  void stop(BackendContext& context);

  void completed(BackendContext& context, const Completion& completion);
  /// Returns the time of the next resume(), while the listener waits for descriptors or memory.
  Instant resume_at() const noexcept { return resume_at_; }
  void resume(BackendContext& context);
  /// Closes the connections that no operation took.
  void drop_accepted(BackendContext& context) noexcept;

 private:
  static constexpr std::size_t accepted_max = 64;

  void arm(BackendContext& context);
  void keep(BackendContext& context, int connection) noexcept;
  void failed(BackendContext& context, int error);
  void pause(BackendContext& context);

  AcceptOperation* accepting_ = nullptr;
  std::vector<int> accepted_;  // oldest at index `taken_`
  std::size_t taken_ = 0;
  bool armed_ = false;
  bool stopping_ = false;
  bool paused_ = false;
  bool accepting_stopped_ = false;
  bool shared_;
  Duration pause_{};
  Instant resume_at_{};
};

// Files on io_uring: reads, writes and syncs of open files.
//
// The kernel copies data in the page cache while the loop submits, without a thread. It fetches
// other data asynchronously. The kernel would hand opening, renaming and similar calls to threads
// of its own. These calls stay with the blocking pool, whose threads are bounded and measured.

void start_file(BackendContext& context, FileOperation& operation);
/// Cancels the operation. It finishes when the kernel no longer uses its memory. An operation that
/// the kernel completes despite the cancellation finishes with its result.
void cancel_file(BackendContext& context, FileOperation& operation);
void file_completed(BackendContext& context, const Completion& completion);

/// A datagram socket. It tries each operation immediately, with the system calls that all backends
/// on the kernel share (datagram_calls). The ring polls the socket once for an operation that has
/// to wait.
///
/// The socket uses no receive or send requests of the ring. Each of them moves one datagram, but a
/// system call moves dozens. An armed receive also has no limit: a flood would take the buffers
/// that all streams of the core share.
class Datagrams : public SocketState {
 public:
  explicit Datagrams(int value) noexcept : SocketState(value, SocketRole::datagrams) {}

  bool receive(BackendContext& context, ReceiveDatagramsOperation& operation);
  bool send(BackendContext& context, SendDatagramsOperation& operation);
  void cancel(BackendContext& context, Operation& operation);
  /// Cancels the armed requests. No operation is pending.
  void stop(BackendContext& context);

  void completed(BackendContext& context, const Completion& completion);

 private:
  void arm_receive(BackendContext& context);
  void arm_send(BackendContext& context);
  void receivable(BackendContext& context);
  void sendable(BackendContext& context);

  bool receive_armed_ = false;
  bool send_armed_ = false;
  bool may_receive_ = true;
  bool may_send_ = true;
  ReceiveDatagramsOperation* receiving_ = nullptr;
  SendDatagramsOperation* sending_ = nullptr;
};

}  // namespace weir::loop::uring
