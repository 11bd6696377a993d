// UDP sockets that send and receive one datagram or many in one system call.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/os/address.hpp"
#include "weir/task/context.hpp"
#include "weir/task/task.hpp"

namespace weir::udp {

using Datagram = weir::loop::Datagram;
using Outgoing = weir::loop::OutgoingDatagram;

class Receive;
class ReceiveMany;
class Send;

/// Options of a UDP socket.
struct Options {
  /// True if each core has its own socket on one port, also if the platform chooses the port. The
  /// kernel sends all datagrams of one peer to one of these sockets. Several processes
  /// (RuntimeOptions::processes) share a port in the same way, unless the platform chooses it.
  ///
  /// The sockets of both processes exist during a hot restart, from the bind() of the newer one
  /// until the older one has drained. Some peers move to the newer process immediately. Their
  /// unread datagrams are lost if it fails to start. If this option is false, the newer process
  /// cannot bind to the port and does not start.
  bool reuse_port = false;
  /// Maximum size of a received datagram in bytes, at most 65535. A longer one is cut off;
  /// Datagram::truncated_bytes says by how much.
  std::uint32_t bytes_max = Buffer::default_capacity;
  /// True if the kernel may join several datagrams of one peer and one size in one buffer
  /// (UDP_GRO). Datagram::for_each() separates them. It pays if peers send many datagrams of equal
  /// size. Buffers then hold 64 KiB, regardless of `bytes_max`.
  bool gro = false;
  /// True if receive() returns the datagrams that have arrived and then Errc::closed once the loop
  /// drains. Use true for a server and false for sockets that the drain still needs, such as those
  /// of a client or a resolver.
  bool close_on_drain = true;
  /// Index of the interface for sending to multicast groups; 0: according to the routes.
  unsigned multicast_interface = 0;
};

/// A socket that belongs to one loop, made by bind() or connect(). Datagrams may be lost,
/// duplicated and reordered, but never cut or joined on their way. One receive and one send may be
/// pending at the same time, but not two of the same kind (asserted). A task whose operations
/// always finish immediately waits for the next turn of the loop at times, so that other tasks run
/// during a flood. It does so after at most 256 operations or 1024 datagrams.
///
/// A connected socket reports an ICMP error for an earlier datagram: the peer's port is closed
/// (ECONNREFUSED), or the host is unreachable (EHOSTUNREACH …). The next receive or send returns
/// the error once. The socket stays usable, and the caller may send again.
///
/// Move-only.
/// Threads: its loop's.
/// Lifetime: no operation is pending when it is destroyed (asserted). Destroying it closes it.
class Socket {
 public:
  class State;
  explicit Socket(BlockPtr<State> state) noexcept;
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  /// Receives one datagram into a buffer of the core. A waiting receive holds no buffer.
  /// Returns: a Result<Datagram> from `co_await socket.receive()`.
  /// Errors: Errc::closed after a drain, see Options::close_on_drain; the kernel's;
  /// Errc::cancelled. Cancel: loses no data; the next receive returns a datagram that arrives
  /// later.
  Receive receive() noexcept;
  /// Receives the waiting datagrams in one system call: at least one, and at most 32. `slots` is
  /// not empty (asserted). Buffers in the slots are reused, or returned to the core while the task
  /// waits.
  /// Returns: the number of filled slots as a Result<std::size_t>, from `co_await`.
  /// Errors: Errc::closed after a drain, see Options::close_on_drain; the kernel's;
  /// Errc::cancelled. Cancel: loses no data; the next receive returns datagrams that arrive later.
  /// Lifetime: the slots stay valid until the return.
  ReceiveMany receive(std::span<Datagram> slots) noexcept;

  /// Sends one datagram. Success means only that the datagram has left this program. The task waits
  /// only while the kernel has no buffer space.
  /// Returns: a Result<> from `co_await socket.send(bytes, peer)`.
  /// Errors: EMSGSIZE for more than 65507 bytes, the kernel's (EACCES, ENETUNREACH …);
  /// Errc::cancelled.
  /// Cancel: the datagram has been sent completely or not at all.
  /// Lifetime: the bytes stay valid until the return.
  Send send(Bytes bytes, const Endpoint& peer) noexcept;
  Send send(std::string_view text, const Endpoint& peer) noexcept;
  /// Sends one datagram to the connected peer.
  /// Returns: a Result<> from `co_await`.
  /// Errors: EDESTADDRREQ if the socket is not connected; otherwise those of send() to a
  /// peer.
  /// Cancel: the datagram has been sent completely or not at all.
  /// Lifetime: the bytes stay valid until the return.
  Send send(Bytes bytes) noexcept;
  Send send(std::string_view text) noexcept;
  /// Sends all datagrams in order, in as few system calls as possible. It is fastest if consecutive
  /// datagrams have the same peer and size. It stops at the first datagram that cannot be sent.
  /// Returns: a Result<> from `co_await`.
  /// Errors: those of send() to a peer; sent() returns the number of datagrams sent before.
  /// Cancel: some datagrams may have been sent; sent() returns their number.
  /// Lifetime: the span and the bytes stay valid until the return.
  Send send(std::span<const Outgoing> datagrams) noexcept;
  /// Returns the number of datagrams that the last send has sent.
  std::size_t sent() const noexcept;

  /// Joins or leaves a multicast group. A member receives datagrams to `group` and its own port on
  /// one interface, and must be bound to every interface or to the group. `interface` is the index
  /// of that interface; 0 means the one that an IPv6 address names, or the one of the routes.
  /// Errors: EINVAL if `group` is no multicast address, EADDRINUSE if the socket is a member
  /// already, EADDRNOTAVAIL if it is not a member.
  Result<> join(const Endpoint& group, unsigned interface = 0);
  Result<> leave(const Endpoint& group, unsigned interface = 0);

  /// Returns the local address, with the port that the platform chose for port 0.
  os::Address local_address() const;
  /// Returns the address of the connected peer; none if the socket is not connected.
  os::Address peer_address() const;

 private:
  BlockPtr<State> state_;
};

/// Base of the awaiters of a socket. The operation lives in the frame of the awaiting coroutine.
template <class Op>
class DatagramAwaiter : protected Op, CancelNode, loop::Timer {
 public:
  explicit DatagramAwaiter(Socket::State& state) noexcept;
  ~DatagramAwaiter();
  bool await_ready();
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    suspend(handle, handle.promise().context().cancel);
  }

 protected:
  /// Returns the error for the caller; no error after success.
  std::error_code outcome() const noexcept;

 private:
  void suspend(std::coroutine_handle<> handle, CancelSource* cancel);
  static void resume(loop::Runnable& runnable);
  static void on_cancel(CancelNode& node);
  static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
    return static_cast<const DatagramAwaiter&>(node).handle_;
  }
  static constexpr CancelNode::Kind datagram_kind{
      &on_cancel,
      std::same_as<Op, loop::ReceiveDatagramsOperation> ? "receive datagrams" : "send datagrams",
      &coroutine_of};
  static void on_next_turn(loop::Timer& timer);

  Socket::State& state_;
  std::coroutine_handle<> handle_;
  bool yielding_ = false;  // the operation has finished; other tasks run before the resumption
};
extern template class DatagramAwaiter<loop::ReceiveDatagramsOperation>;
extern template class DatagramAwaiter<loop::SendDatagramsOperation>;

/// The awaitable of Socket::receive().
class [[nodiscard]] Receive {
 public:
  explicit Receive(Socket::State& state) noexcept : state_(&state) {}
  class Awaiter : public DatagramAwaiter<loop::ReceiveDatagramsOperation> {
   public:
    explicit Awaiter(Socket::State& state) noexcept : DatagramAwaiter(state) {
      target = {&datagram_, 1};
    }
    Result<Datagram> await_resume() noexcept {
      if (outcome()) return fail(outcome());
      return std::move(datagram_);
    }

   private:
    Datagram datagram_;
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*state_); }

 private:
  Socket::State* state_;
};

/// The awaitable of Socket::receive().
class [[nodiscard]] ReceiveMany {
 public:
  ReceiveMany(Socket::State& state, std::span<Datagram> slots) noexcept
      : state_(&state), slots_(slots) {}
  class Awaiter : public DatagramAwaiter<loop::ReceiveDatagramsOperation> {
   public:
    Awaiter(Socket::State& state, std::span<Datagram> slots) noexcept : DatagramAwaiter(state) {
      target = slots;
    }
    Result<std::size_t> await_resume() const noexcept {
      if (outcome()) return fail(outcome());
      return count;
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*state_, slots_); }

 private:
  Socket::State* state_;
  std::span<Datagram> slots_;
};

/// The awaitable of Socket::send().
class [[nodiscard]] Send {
 public:
  Send(Socket::State& state, Bytes bytes, const Endpoint& peer) noexcept
      : state_(&state), single_{bytes, peer} {}
  Send(Socket::State& state, std::span<const Outgoing> several) noexcept
      : state_(&state), several_(several), is_several_(true) {}
  class Awaiter : public DatagramAwaiter<loop::SendDatagramsOperation> {
   public:
    /// Lifetime: `send` outlives the awaiter, because both live until the end of the await.
    explicit Awaiter(const Send& send) noexcept : DatagramAwaiter(*send.state_) {
      datagrams = send.is_several_ ? send.several_ : std::span<const Outgoing>(&send.single_, 1);
    }
    Result<> await_resume() const noexcept {
      if (outcome()) return fail(outcome());
      return {};
    }
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*this); }

 private:
  Socket::State* state_;
  Outgoing single_;
  std::span<const Outgoing> several_;
  bool is_several_ = false;
};

/// Opens a socket of the awaiting task's loop that exchanges datagrams with any peer. The platform
/// chooses a port for port 0. An address in use is retried as by tcp::listen().
/// Errors: EAFNOSUPPORT if `endpoint` is no IP address, the kernel's (EADDRINUSE, EACCES …),
/// Errc::cancelled.
/// Cancel: stops retrying.
Task<Result<Socket>> bind(Endpoint endpoint, Options options = {});

/// Opens a socket that exchanges datagrams only with `peer`, from a port that the platform chooses.
/// It does not check that the peer exists. It ignores `reuse_port`.
/// Errors: those of bind(), and others of the kernel such as ENETUNREACH.
/// Cancel: has no effect, because the task does not wait.
Task<Result<Socket>> connect(Endpoint peer, Options options = {.close_on_drain = false});

}  // namespace weir::udp
