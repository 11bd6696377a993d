// What the readiness backends share: try at once, wait for the kernel's word, try again.
#pragma once

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/readiness_socket.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

/// What the kernel said about a descriptor.
struct Readiness {
  bool readable = false;
  bool writable = false;
  bool peer_finished = false;
  bool urgent = false;
  bool dead = false;  ///< reset, failed, or closed in both directions
};

/// A backend that emulates completions on a kernel which only tells readiness. The derived class
/// asks the kernel and passes on what it says; everything about operations is here.
///
/// A read or write that did less than it was asked to has emptied or filled the kernel's buffer, so
/// nothing is tried again before the kernel has reported the socket anew. That holds for reports on
/// edges (epoll) and on levels (poll) alike.
///
/// The kernel is asked for reports of a socket when something has to wait for the first time: a
/// connection that is served in one go needs none. Should it refuse then, that operation fails.
///
/// A Unix socket's connect fails with EAGAIN when the listener's queue is full: a limit that was
/// hit is an answer here, not a wait.
class ReadinessBackend : public Backend {
 public:
  Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) final;
  void close(Socket& socket) final;
  bool receive(Socket& socket, ReceiveOperation& operation) final;
  bool send(Socket& socket, SendOperation& operation) final;
  bool accept(Socket& socket, AcceptOperation& operation) final;
  bool connect(Socket& socket, ConnectOperation& operation) final;
  void stop_accepting(Socket& socket) final;
  bool receive_datagrams(Socket& socket, ReceiveDatagramsOperation& operation) final;
  bool send_datagrams(Socket& socket, SendDatagramsOperation& operation) final;
  void cancel(Operation& operation) final;
  Result<> shut_down_sending(Socket& socket) final;
  void watch(Socket& socket, HangupWatcher* watcher) final;

 protected:
  ReadinessBackend(Host& host, RunQueue& ready) noexcept : host_(host), ready_(ready) {}
  /// Closes what is still open.
  ~ReadinessBackend() override;

  /// Registers a socket with the kernel, which then reports at once what it has missed, and forgets
  /// it before its descriptor is closed.
  virtual Result<> start_watching(ReadinessSocket& socket) = 0;
  virtual void stop_watching(ReadinessSocket& socket) = 0;
  /// What a registered socket waits for has changed; for those who tell the kernel each time.
  virtual void interest_changed(ReadinessSocket& socket) = 0;

  Host& host() noexcept { return host_; }
  /// To be called in wait() for each report of the kernel.
  void became(ReadinessSocket& socket, Readiness what);
  /// When wait() has to return for retry_paused() although the kernel reports nothing.
  Instant retry_at() const noexcept { return paused_.empty() ? never : retry_at_; }
  /// Lets paused listeners try again, if it is time.
  void retry_paused();
  /// Lets a listener try again only after a while: when descriptors or memory ran out, because no
  /// edge tells that they are to be had again.
  void pause(ReadinessSocket& listener);

 private:
  Result<> start_reports(ReadinessSocket& socket);
  bool reports(ReadinessSocket& socket, Operation& operation);
  void changed(ReadinessSocket& socket) {
    if (socket.reported) interest_changed(socket);
  }
  bool try_incoming(ReadinessSocket& socket);
  bool try_outgoing(ReadinessSocket& socket);
  bool try_receive(ReadinessSocket& socket, ReceiveOperation& operation);
  bool try_send(ReadinessSocket& socket, SendOperation& operation);
  bool try_accept(ReadinessSocket& socket, AcceptOperation& operation);
  bool try_connect(ReadinessSocket& socket, ConnectOperation& operation);
  bool try_receive_datagrams(ReadinessSocket& socket, ReceiveDatagramsOperation& operation);
  bool try_send_datagrams(ReadinessSocket& socket, SendDatagramsOperation& operation);
  void serve_incoming(ReadinessSocket& socket);
  void serve_outgoing(ReadinessSocket& socket);

  Host& host_;
  RunQueue& ready_;
  SocketSlab sockets_;
  List<ReadinessSocket> paused_;
  Instant retry_at_ = never;
  Duration pause_{};  // how long the last pause was, if nothing was accepted since
};

}  // namespace weir
