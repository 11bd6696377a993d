// Base of the readiness backends: tries an operation, waits for the kernel's report, tries again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir::loop {

// A socket of a readiness backend, and the slab that holds such sockets.

/// The state of one descriptor in a readiness backend: one cache line.
struct alignas(64) ReadinessSocket : Socket, detail::ListNode {
  Operation* incoming = nullptr;       ///< the pending receive or accept
  Operation* outgoing = nullptr;       ///< the pending send or connect
  HangupObserver* observer = nullptr;  ///< called once, then reset to nullptr
  int error = 0;                ///< errno that ended the connection, once a call has reported it
  std::uint32_t index = 0;      ///< position in the array of a backend that has one
  std::uint8_t generation = 0;  ///< count of the sockets that this memory has held
  SocketRole role = SocketRole::stream;
  bool may_receive : 1 = true;  ///< true if the next recv or accept may succeed
  bool may_send : 1 = true;     ///< true if the kernel may have room
  /// True after the peer has finished: no more edges, so read to the end.
  bool peer_finished : 1 = false;
  bool urgent : 1 = false;    ///< true if out-of-band data was seen: a short read proves nothing
  bool ended : 1 = false;     ///< true if recv has reported the end of the stream
  bool dead : 1 = false;      ///< true if both directions are closed or the connection was reset
  bool paused : 1 = false;    ///< true if the listener waits for descriptors or memory
  bool reported : 1 = false;  ///< true if the socket is registered for reports of the kernel
  bool stopped : 1 = false;   ///< true if the listener accepts no more
  bool reports_room : 1 = false;  ///< true if epoll was asked to report room for datagrams
};
static_assert(sizeof(ReadinessSocket) == 64);

/// The memory of one backend's sockets. It is reused, but not freed before the slab is destroyed.
/// Each use of the memory has another tag, so that the backend drops late reports of the kernel
/// about a closed descriptor.
/// Threads: the backend's.
class SocketSlab {
 public:
  /// Returns an unused socket.
  /// Errors: throws std::bad_alloc.
  ReadinessSocket& allocate();
  void release(ReadinessSocket& socket) noexcept;

  /// Returns a word that identifies this use of the socket's memory; never 0.
  static std::uint64_t tag(const ReadinessSocket& socket) noexcept {
    return reinterpret_cast<std::uintptr_t>(&socket) | (socket.generation & generation_mask);
  }
  /// Returns the socket of a tag, or nullptr if that socket was released since.
  static ReadinessSocket* find(std::uint64_t tag) noexcept {
    auto* socket = reinterpret_cast<ReadinessSocket*>(
        static_cast<std::uintptr_t>(tag & ~std::uint64_t{generation_mask}));
    const bool same = (socket->generation & generation_mask) == (tag & generation_mask);
    return same && socket->descriptor >= 0 ? socket : nullptr;
  }

  template <class Function>
  void for_each_open(Function function) {
    for (auto& chunk : chunks_) {
      for (std::size_t index = 0; index < chunk_sockets; ++index) {
        if (chunk[index].descriptor >= 0) function(chunk[index]);
      }
    }
  }

 private:
  static constexpr std::size_t chunk_sockets = 256;
  static constexpr unsigned generation_mask = alignof(ReadinessSocket) - 1;

  // Declared before the list, whose destructor unlinks the sockets in the chunks.
  std::vector<std::unique_ptr<ReadinessSocket[]>> chunks_;
  detail::List<ReadinessSocket> free_;
};

/// One report of the kernel about a descriptor.
struct Readiness {
  bool readable = false;
  bool writable = false;
  bool peer_finished = false;
  bool urgent = false;
  bool dead = false;  ///< true if reset, failed, or closed in both directions
};

/// A backend that emulates completions on a kernel that reports only readiness. The derived class
/// asks the kernel and passes its reports on. This class contains everything about operations.
///
/// A read or write that moved fewer bytes than it was given has emptied or filled the kernel's
/// buffer. The backend tries nothing again before the kernel has reported the socket again. This
/// rule holds for edge-triggered reports (epoll) and for level-triggered reports (poll).
///
/// The backend registers a socket when an operation has to wait for the first time, or when the
/// socket gets a hang-up observer. A connection that never waits needs no registration. If the
/// kernel refuses the registration, that operation fails, or the observer is called immediately.
///
/// A Unix socket's connect fails with EAGAIN if the listener's queue is full. A limit that is
/// reached is an answer here, not a wait.
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
  void observe_hangup(Socket& socket, HangupObserver* observer) final;

 protected:
  ReadinessBackend(Platform& platform, RunQueue& ready) noexcept
      : platform_(platform), ready_(ready) {}
  /// Closes the sockets that are still open.
  ~ReadinessBackend() override;

  /// Registers a socket with the kernel. The kernel then reports the readiness that the socket has
  /// already.
  /// Errors: the kernel's, or ENOMEM.
  virtual Result<> start_watching(ReadinessSocket& socket) = 0;
  /// Ends the registration, before the descriptor is closed or when a listener stops accepting.
  virtual void stop_watching(ReadinessSocket& socket) = 0;
  /// Called when a registered socket may wait for other events than before.
  virtual void on_interest_change(ReadinessSocket& socket) = 0;

  Platform& platform() noexcept { return platform_; }
  /// Handles one report of the kernel. The derived class calls this in wait().
  void on_ready(ReadinessSocket& socket, Readiness what);
  /// Returns the time at which wait() has to return for retry_paused(), even if the kernel reports
  /// nothing; `never` if no listener is paused.
  Instant retry_at() const noexcept { return paused_.empty() ? never : retry_at_; }
  /// Lets paused listeners try again if their pause has passed.
  void retry_paused();
  /// Pauses a listener for a while, mainly after descriptors or memory ran out: no edge reports
  /// that they are available again.
  void pause(ReadinessSocket& listener);

 private:
  Result<> start_reports(ReadinessSocket& socket);
  bool ensure_reports(ReadinessSocket& socket, Operation& operation);
  void update_interest(ReadinessSocket& socket) {
    if (socket.reported) on_interest_change(socket);
  }
  bool try_incoming(ReadinessSocket& socket);
  bool try_outgoing(ReadinessSocket& socket);
  bool try_receive(ReadinessSocket& socket, ReceiveOperation& operation);
  bool try_send(ReadinessSocket& socket, SendOperation& operation);
  bool try_accept(ReadinessSocket& socket, AcceptOperation& operation);
  bool try_connect(ReadinessSocket& socket, ConnectOperation& operation);
  bool try_receive_datagrams(ReadinessSocket& socket, ReceiveDatagramsOperation& operation);
  bool try_send_datagrams(ReadinessSocket& socket, SendDatagramsOperation& operation);
  bool has_input(ReadinessSocket& socket);
  void report_hangup(ReadinessSocket& socket);
  void serve_incoming(ReadinessSocket& socket);
  void serve_outgoing(ReadinessSocket& socket);

  Platform& platform_;
  RunQueue& ready_;
  SocketSlab sockets_;
  detail::List<ReadinessSocket> paused_;
  Instant retry_at_ = never;
  Duration pause_{};  // length of the last pause; 0 after a successful accept
};

}  // namespace weir::loop
