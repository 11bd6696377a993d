// What the sockets of one io_uring backend have in common, and what they share.
#pragma once

#include <cassert>
#include <cstdint>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/uring_buffers.hpp"
#include "weir/loop/detail/uring/ring.hpp"

namespace weir::uring {

/// Which of the kernel's newer abilities are used; all off with UringOptions::linux_6_1.
struct Features {
  /// Linux 6.17: a multishot receive can be told to end by itself after so many bytes. Without that
  /// it goes on for as long as there are data and buffers, and one fast peer could fill megabytes
  /// that nobody reads before a cancellation reaches it. So older kernels receive once per request,
  /// which costs 6 % more CPU in an echo of small messages. No feature bit tells: it is tried at
  /// the first receive, and forgotten when the kernel refuses.
  bool limited_multishot = false;
};

/// What a socket is to the kernel; it fills the word that Socket begins.
struct SocketUse : Socket {
  SocketUse(int value, SocketRole kind) noexcept : Socket{value}, role(kind) {}

  const SocketRole role;
  bool closing = false;
  std::uint16_t in_flight = 0;  ///< requests in the kernel, or written down for it
};

/// A socket as this backend knows it. It stays, closed, until the last request that names it has
/// completed: so no completion ever meets a stranger. Aligned as Ring::mark() needs it.
struct alignas(16) SocketState : SocketUse, ListNode {
  using SocketUse::SocketUse;
};

/// What every socket of one backend needs.
struct Core {
  Core(Host& its_host, RunQueue& its_ready, BackendCounters& its_counters) noexcept
      : host(its_host), ready(its_ready), counters(its_counters), ring(its_counters.system_calls) {}

  Host& host;
  RunQueue& ready;
  BackendCounters& counters;
  Features features;
  Buffers buffers;  // before the ring: the kernel stops using them first
  Ring ring;
  List<SocketState> sockets;
  List<SocketState> waiting;  ///< those of them that want to be called by resume(), later
  /// Streams for which no buffer was left. They receive again in that order, as many in a turn as
  /// there are buffers: if all did at once, all but so many would fail again, each turn.
  List<SocketState> starved;
  List<SocketState> doubted;  ///< streams to be called by check(), from `check_at` on
  Instant check_at = never;
  bool told = false;  ///< a hang-up watcher has been called

  /// An entry for a request on behalf of `socket`; see Ring::next(). Count it by started().
  void started(io_uring_sqe& entry, SocketState& socket, Tag tag) noexcept {
    Ring::mark(entry, &socket, tag);
    ++socket.in_flight;
  }

  void finish(Operation& operation, std::error_code error = {}) noexcept {
    operation.finish(error);
    ready.push(operation);
  }

  void wait_with(SocketState& socket) noexcept {
    socket.unlink();
    waiting.push_back(socket);
  }
  void starve(SocketState& stream) noexcept {
    stream.unlink();
    starved.push_back(stream);
  }
  /// Ends wait_with(), starve() or doubt().
  void wait_no_more(SocketState& socket) noexcept {
    socket.unlink();
    sockets.push_back(socket);
  }

  void doubt(SocketState& stream) noexcept {
    // Connections that live for less never pay for a check.
    constexpr Duration check_pause = std::chrono::seconds(1);
    if (check_at == never) check_at = after(host.now(), check_pause);
    stream.unlink();
    doubted.push_back(stream);
  }
};

}  // namespace weir::uring
