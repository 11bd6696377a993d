// Base of the io_uring sockets, and the state that all sockets of one backend share.
#pragma once

#include <liburing.h>
#include <array>
#include <cassert>
#include <cstdint>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/uring/ring.hpp"

namespace weir::loop::uring {

// Read buffers that a core lends to the kernel, which picks one for each arrival.

/// A ring of empty buffers that all streams of a loop share, so that an idle stream holds none.
/// A buffer that leaves with data is replaced before the kernel is entered again. A handler that
/// keeps its buffer for long therefore takes nothing from other streams. A handler that has
/// finished with it by then has returned the memory that replaces it, so a burst takes no more.
/// Threads: the loop's.
/// Lifetime: outlives the kernel's use of the buffers, so the ring's owner is destroyed or closed
/// first.
class Buffers {
 public:
  static constexpr std::uint16_t group = 0;

  Buffers() noexcept = default;
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Registers the buffer ring, which is still empty.
  /// Errors: the kernel's; Errc::unsupported if it has no buffer rings.
  Result<> open(io_uring& ring);

  /// Adds all buffers that are missing: every buffer at first, later those that could not be
  /// replaced when memory was short. Returns true if the kernel has any buffer.
  bool fill() noexcept;

  /// Takes buffer `id`, into which the kernel has put `size` bytes.
  Buffer take(std::uint16_t id, std::size_t size) noexcept;
  /// Replaces the buffers that were taken, as far as there is memory. The backend calls it before
  /// it enters the kernel.
  void replace_taken() noexcept;
  /// Returns the number of buffers that the kernel has at most when it is entered again.
  std::size_t available() const noexcept { return count - missing_.size(); }
  /// Returns the bytes in buffer `id` without taking it. The caller calls give_back() afterwards.
  Bytes peek(std::uint16_t id, std::size_t size) noexcept;
  void give_back(std::uint16_t id) noexcept { provide(id); }

 private:
  // Enough for most turns. If a turn needs more, receives end with ENOBUFS; see
  // BackendContext::waiting_for_buffer.
  static constexpr unsigned count = 256;
  static constexpr std::size_t ring_bytes = count * sizeof(io_uring_buf);

  bool replace(std::uint16_t id) noexcept;
  void provide(std::uint16_t id) noexcept;

  io_uring_buf_ring* ring_ = nullptr;
  std::array<Buffer, count> buffers_;
  std::vector<std::uint16_t> missing_;  // neither in the ring nor taken: memory was short
  std::vector<std::uint16_t> taken_;    // to be replaced
};

/// The newer abilities of the kernel that are in use; none with UringOptions::linux_6_1.
struct Features {
  /// Limited multishot receives: Linux 6.17 can end a multishot receive after a number of bytes.
  /// An unlimited one continues for as long as there are data and buffers. One fast peer could
  /// then fill megabytes of unread data before a cancellation reaches it. Older kernels therefore
  /// receive once per request, which costs 6 % more CPU in an echo of small messages. No feature
  /// bit reports this ability. The first receive tries it, and the backend clears this flag if the
  /// kernel refuses.
  bool limited_multishot = false;
};

/// The role and the request count of a socket, in the rest of the word that Socket begins.
struct SocketHeader : Socket {
  SocketHeader(int value, SocketRole kind) noexcept : Socket{value}, role(kind) {}

  const SocketRole role;
  bool closing = false;
  std::uint16_t in_flight = 0;  ///< requests in the kernel, or recorded for it
};

/// A socket of this backend. It stays alive after close() until the last request that names it has
/// completed, so no completion reaches another socket. Its alignment is what Ring::mark() needs.
struct alignas(16) SocketState : SocketHeader, detail::ListNode {
  using SocketHeader::SocketHeader;
};

/// The state that every socket of one backend uses.
struct BackendContext {
  BackendContext(Platform& its_platform, RunQueue& its_ready,
                 BackendCounters& its_counters) noexcept
      : platform(its_platform),
        ready(its_ready),
        counters(its_counters),
        ring(its_counters.system_calls) {}

  Platform& platform;
  RunQueue& ready;
  BackendCounters& counters;
  Features features;
  Buffers buffers;  // declared before the ring, which is destroyed first
  Ring ring;
  detail::List<SocketState> sockets;
  detail::List<SocketState> waiting;  ///< sockets that wait for resume()
  /// Streams that found no buffer. They receive again in this order, per turn at most as many as
  /// there are buffers. If all of them tried in each turn, most would fail again.
  detail::List<SocketState> waiting_for_buffer;
  /// Streams that wait for check_hangup(), which is due at `hangup_check_at`.
  detail::List<SocketState> hangup_unconfirmed;
  Instant hangup_check_at = never;
  bool notified = false;  ///< true if the current wait() has called a hang-up observer

  /// Marks an entry of Ring::next() as a request of `socket`, and counts it in `in_flight`.
  void started(io_uring_sqe& entry, SocketState& socket, Tag tag) noexcept {
    Ring::mark(entry, &socket, tag);
    ++socket.in_flight;
  }

  void finish(Operation& operation, std::error_code error = {}) noexcept {
    operation.finish(error);
    ready.push(operation);
  }

  void add_waiting(SocketState& socket) noexcept {
    socket.unlink();
    waiting.push_back(socket);
  }
  void wait_for_buffer(SocketState& stream) noexcept {
    stream.unlink();
    waiting_for_buffer.push_back(stream);
  }
  /// Undoes add_waiting(), wait_for_buffer() or schedule_hangup_check().
  void remove_waiting(SocketState& socket) noexcept {
    socket.unlink();
    sockets.push_back(socket);
  }

  void schedule_hangup_check(SocketState& stream) noexcept {
    // Connections that end earlier cost no check.
    constexpr Duration check_pause = std::chrono::seconds(1);
    if (hangup_check_at == never) hangup_check_at = after(platform.now(), check_pause);
    stream.unlink();
    hangup_unconfirmed.push_back(stream);
  }
};

}  // namespace weir::loop::uring
