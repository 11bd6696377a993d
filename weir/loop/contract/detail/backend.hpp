// The contract of a backend: one loop's input and output, completion-shaped and small.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir {

/// A descriptor as its backend knows it. Owned by the backend; its stream or listener holds a
/// pointer from adopt() to close().
struct Socket {
  int descriptor = -1;
};

enum class SocketRole : std::uint8_t { stream, listener, datagrams };

struct SocketOptions {
  SocketRole role = SocketRole::stream;
  /// Of a listener: the socket goes on elsewhere (in another loop, in another process) when it is
  /// closed here, so nothing is done to it but closing the descriptor.
  bool shared = false;
  /// A backend that reads ahead pauses reading a stream while this many unread bytes wait.
  std::size_t unread_max = 64 * 1024;
};

struct BackendCounters {
  Counter system_calls;
  Counter bytes_received;
  Counter bytes_sent;
  Counter accepts;        ///< connections that the kernel has given
  Counter accept_pauses;  ///< times accepting paused because descriptors or memory ran out
};

/// One loop's input and output. Implementations: io_uring, epoll, poll, and the in-memory one of
/// weir/testing; one contract test (weir/testing/backend_contract) runs on all.
///
/// Starting: receive(), send(), accept() and connect() return true when the operation finished at
/// once (its result is in it, it is not queued); else it is pending and, when it has finished, its
/// Runnable is pushed to the loop's ready queue by a later wait() or cancel(). A stream has at most
/// one pending receive and one pending send, so has a datagram socket, a listener one accept
/// (asserted).
/// Cancelling: cancel() asks; the operation finishes as soon as nothing uses its buffers any more,
/// with its result when it succeeded first, else with Errc::cancelled. Nothing is lost: bytes and
/// connections that arrive late are handed to the next operation. A cancelled send may have sent a
/// part (`sent` tells). Cancelling what is not pending does nothing. Nothing is read ahead of a
/// datagram socket: what nobody receives waits in the kernel, which drops what it has no room for.
/// Errors a peer can cause are values (ECONNRESET, EPIPE …); no signal is raised. accept() retries
/// what is transient (ECONNABORTED, EINTR, EPROTO …); when descriptors or memory run out it backs
/// off, counts, and goes on by itself.
///
/// Threads: only the loop's, but for wake().
class Backend {
 public:
  virtual ~Backend() = default;

  /// "uring", "uring:6.1", "epoll", "poll" or "memory".
  virtual std::string_view name() const noexcept = 0;

  /// Takes a non-blocking descriptor over. Errors: what the kernel says on registering it; the
  /// descriptor is closed then.
  virtual Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) = 0;

  /// Closes it and forgets the socket. No operation is pending (asserted), unread bytes are
  /// dropped, no watcher is called any more. What was sent still arrives, unless received bytes
  /// were left unread in the kernel (then the peer sees a reset, as TCP has it).
  virtual void close(Socket& socket) = 0;

  virtual bool receive(Socket& socket, ReceiveOperation& operation) = 0;
  virtual bool send(Socket& socket, SendOperation& operation) = 0;
  virtual bool accept(Socket& socket, AcceptOperation& operation) = 0;
  virtual bool connect(Socket& socket, ConnectOperation& operation) = 0;
  /// From now on nothing more is taken from this listener's queue, with which others go on:
  /// accept() gives out what had been taken by then, and finishes with Errc::closed when that is
  /// all. When it has, not even the kernel accepts any more on this backend's behalf. Cannot be
  /// taken back.
  virtual void stop_accepting(Socket& socket) = 0;
  /// Of a datagram socket. A datagram that was longer than there was room tells so (`cut_off`).
  virtual bool receive_datagrams([[maybe_unused]] Socket& socket,
                                 ReceiveDatagramsOperation& operation) {
    return lacks_datagrams(operation);
  }
  /// The other half. On a connected socket either of them may be told what came of a datagram sent
  /// before (ECONNREFUSED, EHOSTUNREACH …): whichever asks next; a send that is told so has sent
  /// `sent` and may be tried again from there.
  virtual bool send_datagrams([[maybe_unused]] Socket& socket, SendDatagramsOperation& operation) {
    return lacks_datagrams(operation);
  }
  /// Whether start_file() may be called; where not, a thread does it: see FileSystem.
  virtual bool does_files() const noexcept { return false; }
  /// It is always pending then. Any number may be, on one file too; the file stays open meanwhile.
  virtual void start_file([[maybe_unused]] FileOperation& operation) {
    assert(false && "it does no files");
  }
  virtual void cancel(Operation& operation) = 0;

  /// Sends the end of the stream once everything sent before is out; no send may be pending.
  virtual Result<> shut_down_sending(Socket& socket) = 0;

  /// From now on `watcher` (or nobody, for nullptr) is told when the stream is dead, also while
  /// nothing is received or sent. Called at once (inside) when it is known to be dead already.
  virtual void watch(Socket& socket, HangupWatcher* watcher) = 0;

  /// Submits everything started and waits until something finished, wake() was called or the host's
  /// clock says `until` (a moment in the past: does not wait); queues what finished on the loop.
  virtual void wait(Instant until) = 0;

  /// Makes the current or else the next wait() return early. Any thread.
  virtual void wake() noexcept = 0;

  const BackendCounters& counters() const noexcept { return counters_; }

 protected:
  BackendCounters counters_;

 private:
  static bool lacks_datagrams(Operation& operation) noexcept {
    operation.finish(Errc::unsupported);
    return true;
  }
};

}  // namespace weir
