// Hot restart: a newer process of a service takes over the listening sockets of an older one, and
// no connection is refused in the meantime.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir {

struct HandoverOptions {
  /// Path of the Unix socket on which the processes of the service meet. The socket accepts
  /// connections of this user alone. Use a folder that only this user may write to, such as
  /// /run/NAME or $XDG_RUNTIME_DIR. Another user may own the name in other folders, such as /tmp,
  /// or the name with ".lock" appended; the start then fails.
  std::string path;
  /// Name of the service, at most 255 bytes; the same in both processes.
  std::string service = {};
  /// Time limit for a newer process, from its start until it listens on every socket that it was
  /// given. A newer process also waits at most this long for an older one that has just started.
  Duration ready_timeout = std::chrono::seconds(10);
};

}  // namespace weir

namespace weir::loop {

class SharedListener;

/// The callbacks of a process during a handover; a runtime implements them. The thread of the
/// handover calls them.
class HandoverDelegate {
 public:
  using Sockets = std::vector<std::shared_ptr<SharedListener>>;
  virtual ~HandoverDelegate() = default;

  /// A newer process has connected. on_handover_failed() or on_handed_over() follows.
  /// Returns: the sockets to pass to it.
  virtual Sockets sockets_to_offer() = 0;
  /// Returns the bytes of HandoverState to pass with them, which may be secret.
  virtual std::string state_to_offer() { return {}; }
  /// The newer process listens on all of `sockets`. If the answer is true, the sockets stay open
  /// in the newer process when this process closes them.
  /// Returns: true if the newer process may have them; false if this process drains already,
  /// because its sockets are then of no use to another process.
  virtual bool confirm_handover(const Sockets& sockets) = 0;
  /// The newer process left before it got the sockets. This process continues as before.
  virtual void on_handover_failed(const Sockets& sockets) = 0;
  /// The newer process has the sockets and waits until this process stops accepting from them.
  /// This process must stop accepting without delay; it drains afterwards.
  virtual void on_handed_over() = 0;

  /// Returns the addresses of taken sockets that no loop listens on yet, as text for log lines.
  virtual std::string unaccepted_addresses() = 0;
  /// The handover is about to report to the older process that this one is ready. The owner of the
  /// sockets is undecided from then on until on_owned() or on_takeover_failed(), and a drain
  /// waits.
  /// Returns: false if this process drains and is therefore not ready.
  virtual bool prepare_ownership() = 0;
  /// This process owns the sockets: the older one stops accepting, or has ended. A drain serves
  /// the connections that wait in them. on_taken_over() follows, unless this process drains.
  virtual void on_owned() = 0;
  /// The older process no longer accepts, or has ended. This process accepts from now on.
  virtual void on_taken_over() = 0;
  /// The older process continues. This process must end without having accepted a connection.
  virtual void on_takeover_failed(std::string why) = 0;
};

/// A Handover is one process' part in the hot restarts of its service, from its start to its end.
/// A hot restart has these steps (HandoverMessage):
/// 1. The newer process sends a request.
/// 2. The older one offers all its listening sockets and the socket on which the processes meet.
/// 3. The newer one confirms the offer immediately. It listens on the sockets without accepting,
///    and sends that it is ready.
/// 4. The older one sends that the sockets are transferred. It stops accepting, and reports that.
/// 5. The newer one accepts.
///
/// The listening sockets stay open all the time, and connections wait in their queues meanwhile.
///
/// Connections at the path that send nothing do not delay a newer process. The older process keeps
/// at most 16 of them, for at most 5 s each.
///
/// The older process also passes small texts of its higher floors, such as the secret of its
/// session tickets (HandoverState).
///
/// Datagram sockets are not passed on. If cores share a port (udp::Options::reuse_port), both
/// processes share it too, from the bind() of the newer one until the older one has drained. Each
/// process answers the datagrams that it gets.
///
/// A failure of the newer process has no effect on connections until the older one has sent that
/// the sockets are transferred. If the older process dies, the newer one gets everything. If
/// several newer processes start at the same time, each takes over from the one before. If a newer
/// process dies after the transfer, its sockets and the connections in their queues are lost. The
/// older process still drains, and the next process opens new sockets. The next process waits at
/// the path until the older one has stopped, for at most one second. It then retries the port for
/// at most one more second. If a core of the older process is stuck in a handler for longer, the
/// next process finds the port taken (EADDRINUSE).
/// Threads: any, except the destructor, take_sockets() and start().
class Handover {
 public:
  /// Ends the handover, waits for its thread, and then removes the path if the path still belongs
  /// to this process.
  virtual ~Handover() = default;

  /// Returns the sockets that an older process has passed on; empty if there is no older process.
  /// Call it at most once, before start().
  virtual HandoverDelegate::Sockets take_sockets() = 0;
  /// Returns the bytes that state_to_offer() of the older process has returned; empty if there is
  /// no older process. Call it at most once, after take_sockets().
  virtual std::string take_state() { return {}; }
  /// Runs the remaining steps on a thread of its own.
  /// Errors: that of the kernel if it cannot create a thread (EAGAIN).
  /// Lifetime: `delegate` outlives the handover.
  virtual Result<> start(HandoverDelegate& delegate) = 0;
  /// Reports that this process is about to accept from every taken socket. A process that took
  /// none reports that it listens. The handover passes sockets to newer processes from then on.
  virtual void on_accepting() noexcept = 0;
  /// Reports that this process has stopped accepting from a socket.
  virtual void on_socket_stopped() noexcept = 0;
  /// Reports that this process drains. The handover passes no more sockets on and stops listening
  /// at the path.
  virtual void stop() noexcept = 0;
};

/// The result of begin_handover(). If there is no handover, `failure` holds the reason as text.
struct HandoverStart {
  std::unique_ptr<Handover> handover;
  std::string failure;
};

}  // namespace weir::loop
