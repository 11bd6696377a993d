// UDP: datagrams to and from anybody, one at a time or many in one system call.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/datagram.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/os/address.hpp"
#include "weir/task/context.hpp"
#include "weir/task/task.hpp"

namespace weir::udp {

using Datagram = weir::Datagram;
using Outgoing = weir::OutgoingDatagram;

class Receive;
class ReceiveMany;
class Send;

struct Options {
  /// Each core has a socket of its own on one port, also where the host chooses that; each peer's
  /// datagrams go to one of them. So do those of several processes (RuntimeOptions::processes), of
  /// a port that is not chosen by the host. In a hot restart the newer process has such sockets
  /// beside the older one's from its bind() on, until the older one has drained: some peers change
  /// to it at once, and what it has not read is lost if it does not start. Without this, it cannot
  /// bind to the port and does not start.
  bool reuse_port = false;
  /// Of a datagram that is received: what is longer is cut off there, and tells so. At most 65535.
  std::uint32_t bytes_max = Buffer::default_capacity;
  /// The kernel may hand over several datagrams of one peer in one buffer, where they came together
  /// and are of one size (UDP_GRO); Datagram::for_each() tells them apart. For who gets many of a
  /// kind. Buffers hold 64 KiB then, whatever `bytes_max` says.
  bool joined = false;
  /// receive() gives what has arrived and then Errc::closed once the loop drains. For a server;
  /// what a drain itself still needs (a client, a resolver) says false.
  bool ends_with_drain = true;
  /// The index of the interface by which it sends to groups; 0: as the routes say.
  unsigned multicast_interface = 0;
};

/// A socket of its loop, made by bind() or connect(). Datagrams may be lost, doubled and reordered
/// on their way, never cut or joined. One receive and one send at a time (asserted); both at once
/// are fine. Whoever always finds something at once is made to wait for the loop's next turn now
/// and then, so that a flood leaves room for others.
///
/// A connected socket is told when nobody is there (ECONNREFUSED) or the way is closed
/// (EHOSTUNREACH …) by what came back of an earlier datagram: once, by whichever receive or send
/// asks next. It goes on: who ignores it may send again.
///
/// Move-only. Threads: its loop's. Lifetime: no operation is pending when it is destroyed
/// (asserted); that closes it.
class Socket {
 public:
  class State;
  explicit Socket(BlockPtr<State> state) noexcept;
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  /// `co_await socket.receive()`: a Result<Datagram>, in a buffer that the core lends; while
  /// nothing arrives, none is held. Cancel: nothing is lost; what arrives later is given to the
  /// next receive.
  Receive receive() noexcept;
  /// `co_await socket.receive(slots)`: as many as wait and as one system call takes (32), at least
  /// one; a Result<std::size_t> says how many of `slots`, which is not empty. Buffers that are in
  /// the slots are used again, or given back while nothing arrives.
  /// Cancel: as receive().
  ReceiveMany receive(std::span<Datagram> slots) noexcept;

  /// `co_await socket.send(bytes, peer)`: a Result<>; it has left this program, which is all there
  /// is to know. The bytes stay valid meanwhile. It waits only while the kernel has no room.
  /// Errors: EMSGSIZE for more than 65507 bytes, the kernel's (EACCES, ENETUNREACH …). Cancel: it
  /// has been sent or not at all.
  Send send(Bytes bytes, const Endpoint& peer) noexcept;
  Send send(std::string_view text, const Endpoint& peer) noexcept;
  /// To whom it is connected. Errors: EDESTADDRREQ if it is not.
  /// Cancel: as send() to a peer.
  Send send(Bytes bytes) noexcept;
  Send send(std::string_view text) noexcept;
  /// All of them, in order, in as few system calls as possible: best when neighbours go to the same
  /// peer and are of one size. The span stays valid too. At the first that cannot be sent it fails;
  /// sent() tells how many were sent before.
  /// Cancel: some may have been sent; sent() tells.
  Send send(std::span<const Outgoing> datagrams) noexcept;
  /// How many the last send has sent.
  std::size_t sent() const noexcept;

  /// From now on it hears what is sent to `group` and to its own port, on the interface of that
  /// index (0: the one that an IPv6 address names, or as the routes say); or does so no more. A
  /// socket that is to hear groups is bound to every interface or to the group. Errors: EINVAL for
  /// what is no group, EADDRINUSE when it is in it already, EADDRNOTAVAIL when it is not.
  Result<> join(const Endpoint& group, unsigned interface = 0);
  Result<> leave(const Endpoint& group, unsigned interface = 0);

  /// With the port that the host chose, where it was asked to.
  os::Address local_address() const;
  /// To whom it is connected, or none.
  os::Address peer_address() const;

 private:
  BlockPtr<State> state_;
};

/// What the awaiters of a socket have in common: the operation lives here, in the awaiting frame.
template <class Op>
class Awaiting : protected Op, CancelNode, Timer {
 public:
  explicit Awaiting(Socket::State& state) noexcept;
  ~Awaiting();
  bool await_ready();
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    suspend(handle, handle.promise().context().cancel);
  }

 protected:
  /// No error, or what the caller is told.
  std::error_code outcome() const noexcept;

 private:
  void suspend(std::coroutine_handle<> handle, CancelSource* cancel);
  static void resume(Runnable& runnable);
  static void ask(CancelNode& node);
  static void turn_came(Timer& timer);

  Socket::State& state_;
  std::coroutine_handle<> handle_;
  bool gives_way_ = false;  // it has finished, but others shall have their turn first
};
extern template class Awaiting<ReceiveDatagramsOperation>;
extern template class Awaiting<SendDatagramsOperation>;

/// See Socket::receive().
class [[nodiscard]] Receive {
 public:
  explicit Receive(Socket::State& state) noexcept : state_(&state) {}
  class Awaiter : public Awaiting<ReceiveDatagramsOperation> {
   public:
    explicit Awaiter(Socket::State& state) noexcept : Awaiting(state) { target = {&datagram_, 1}; }
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

/// See Socket::receive().
class [[nodiscard]] ReceiveMany {
 public:
  ReceiveMany(Socket::State& state, std::span<Datagram> slots) noexcept
      : state_(&state), slots_(slots) {}
  class Awaiter : public Awaiting<ReceiveDatagramsOperation> {
   public:
    Awaiter(Socket::State& state, std::span<Datagram> slots) noexcept : Awaiting(state) {
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

/// See Socket::send().
class [[nodiscard]] Send {
 public:
  Send(Socket::State& state, const Outgoing& single) noexcept : state_(&state), single_(single) {}
  Send(Socket::State& state, std::span<const Outgoing> several) noexcept
      : state_(&state), several_(several), is_several_(true) {}
  class Awaiter : public Awaiting<SendDatagramsOperation> {
   public:
    Awaiter(Socket::State& state, const Outgoing& single) noexcept
        : Awaiting(state), single_(single) {
      datagrams = {&single_, 1};
    }
    Awaiter(Socket::State& state, std::span<const Outgoing> several) noexcept : Awaiting(state) {
      datagrams = several;
    }
    Result<> await_resume() const noexcept {
      if (outcome()) return fail(outcome());
      return {};
    }

   private:
    Outgoing single_;
  };
  Awaiter operator co_await() const noexcept {
    if (is_several_) return Awaiter(*state_, several_);
    return Awaiter(*state_, single_);
  }

 private:
  Socket::State* state_;
  Outgoing single_;
  std::span<const Outgoing> several_;
  bool is_several_ = false;
};

/// A socket of the awaiting task's loop that talks with everybody. Port 0: the host chooses one. An
/// address that is taken is tried for a second, as by tcp::listen().
/// Errors: EAFNOSUPPORT for what is no IP address, the kernel's (EADDRINUSE, EACCES …),
/// Errc::cancelled. Cancel: gives up.
Task<Result<Socket>> bind(Endpoint endpoint, Options options = {});

/// A socket that talks with `peer` alone, from a port that the host chooses. Nobody is asked
/// whether he is there. `reuse_port` means nothing here. Errors: as bind(); ENETUNREACH …
/// Cancel: does not wait.
Task<Result<Socket>> connect(Endpoint peer, Options options = {.ends_with_drain = false});

}  // namespace weir::udp
