// Contract of a backend: the I/O of one loop, as operations that complete.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir::loop {

/// A descriptor in its backend, which owns it. The stream or listener holds a pointer to it from
/// adopt() to close().
struct Socket {
  int descriptor = -1;
};

enum class SocketRole : std::uint8_t { stream, listener, datagrams };

struct SocketOptions {
  SocketRole role = SocketRole::stream;
  /// True if the listening socket stays open elsewhere, in another loop or process, when it is
  /// closed here. The backend then only closes the descriptor.
  bool shared = false;
  /// Limit of unread bytes of a stream. A backend that reads ahead pauses when it is reached.
  std::size_t unread_max = 64 * 1024;
};

struct BackendCounters {
  detail::Counter system_calls;
  detail::Counter bytes_received;
  detail::Counter bytes_sent;
  detail::Counter accepts;        ///< connections accepted from the kernel
  detail::Counter accept_pauses;  ///< pauses of accepting because descriptors or memory ran out
};

/// The I/O of one loop. The implementations are io_uring, epoll, poll, and the in-memory one of
/// weir/testing. One contract test (weir/testing/backend_contract) runs on all of them.
///
/// Starting: receive(), send(), accept() and connect() return true if the operation finished
/// immediately. Its result is then in it, and it is not queued. The operation is pending
/// otherwise. A later wait() or cancel() pushes its Runnable to the ready queue of the loop when
/// it has finished. A stream or datagram socket has at most one pending receive and one pending
/// send (asserted). A listener has at most one pending accept (asserted). A partial send is never
/// pending.
///
/// Errors: errors that a peer can cause are values (ECONNRESET, EPIPE …); no signal is raised.
/// accept() retries after transient errors (ECONNABORTED, EINTR, EPROTO …). It pauses when
/// descriptors or memory run out, counts the pause, and resumes automatically.
///
/// Cancel: cancel() requests the end of an operation. The operation finishes as soon as its
/// buffers are no longer used. It finishes with its result if it succeeded first, else with
/// Errc::cancelled. A cancelled send may have sent a part, which `sent` counts. Cancelling an
/// operation that is not pending does nothing. No data is lost: the next operation gets bytes and
/// connections that arrive late. The backend does not read ahead on a datagram socket. Datagrams
/// that are not received wait in the kernel, which drops those that do not fit.
///
/// Threads: only the loop's, except wake().
class Backend {
 public:
  virtual ~Backend() = default;

  /// Returns "uring", "uring:6.1", "epoll", "poll" or "memory".
  virtual std::string_view name() const noexcept = 0;

  /// Takes ownership of a non-blocking descriptor.
  /// Errors: that of the kernel if it refuses to register the descriptor, which is closed then.
  virtual Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) = 0;

  /// Closes the descriptor and destroys the socket. No operation may be pending (asserted). Unread
  /// bytes are dropped, and no observer is called any more. Sent bytes still arrive, unless
  /// received bytes are unread in the kernel; TCP then resets the connection.
  virtual void close(Socket& socket) = 0;

  virtual bool receive(Socket& socket, ReceiveOperation& operation) = 0;
  virtual bool send(Socket& socket, SendOperation& operation) = 0;
  virtual bool accept(Socket& socket, AcceptOperation& operation) = 0;
  virtual bool connect(Socket& socket, ConnectOperation& operation) = 0;
  /// Stops taking connections from the queue of this listener, which other listeners still use.
  /// accept() returns the connections taken before, and then finishes with Errc::closed. The
  /// kernel then no longer accepts for this backend either. This cannot be undone.
  virtual void stop_accepting(Socket& socket) = 0;
  /// Receives on a datagram socket. `truncated_bytes` reports a datagram that did not fit.
  virtual bool receive_datagrams([[maybe_unused]] Socket& socket,
                                 ReceiveDatagramsOperation& operation) {
    return lacks_datagrams(operation);
  }
  /// Sends on a datagram socket. The next receive or send on a connected socket reports the error
  /// of a datagram sent before (ECONNREFUSED, EHOSTUNREACH …). A send that reports such an error
  /// has sent `sent` datagrams, and the caller may retry from there.
  virtual bool send_datagrams([[maybe_unused]] Socket& socket, SendDatagramsOperation& operation) {
    return lacks_datagrams(operation);
  }
  /// Returns true if start_file() may be called. A thread does file operations otherwise: see
  /// FileSystem.
  virtual bool does_files() const noexcept { return false; }
  /// Starts a file operation, which is always pending afterwards. Any number may be pending, also
  /// on one file. The file stays open in the meantime.
  virtual void start_file([[maybe_unused]] FileOperation& operation) {
    assert(false && "this backend has no file operations");
  }
  virtual void cancel(Operation& operation) = 0;

  /// Sends the end of the stream after everything sent before. No send may be pending.
  virtual Result<> shut_down_sending(Socket& socket) = 0;

  /// Sets the observer that is called when the stream is dead, even while no operation is pending;
  /// nullptr removes it. It is called immediately, inside this function, if the stream is known to
  /// be dead already, or to have input for an observer of input.
  virtual void observe_hangup(Socket& socket, HangupObserver* observer) = 0;

  /// Submits all started operations. Waits until an operation finished, wake() was called, or the
  /// clock of the platform reaches `until`. It does not wait if `until` has passed. Queues
  /// finished operations on the loop.
  virtual void wait(Instant until) = 0;

  /// Makes the current wait() return early, or the next one if none is running.
  /// Threads: any.
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

}  // namespace weir::loop
