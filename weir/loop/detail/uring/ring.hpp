// The queues that a loop shares with the kernel: setting them up, submitting, waiting, reaping.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir::uring {

/// What a completion belongs to: the low bits of its user data. The rest is a pointer to an object
/// that lives until its last request has completed.
enum class Tag : std::uint8_t { none, receive, send, connect, accept, hangup, wake, file };

struct Completion {
  void* object;
  Tag tag;
  int result;
  std::uint32_t flags;

  /// The request is still armed and will complete again.
  bool more() const noexcept { return (flags & IORING_CQE_F_MORE) != 0; }
};

/// A ring with one issuing thread, which is the first to submit, wait or poll. Before that,
/// requests are only written down, so they may come from the thread that made the ring. From then
/// on that thread takes no SIGXFSZ; see os::block_file_size_signal().
/// Threads: one at a time until then; afterwards only that thread, but for the destructor.
class Ring {
 public:
  /// `system_calls` counts entries into the kernel; it outlives the ring.
  explicit Ring(Counter& system_calls) noexcept : system_calls_(system_calls) {}
  /// Whatever is still in the kernel is cancelled there, later. Descriptors whose close() was never
  /// submitted are closed.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Errors: what io_uring_setup(2) says; Errc::unsupported for a kernel before 6.1.
  Result<> open();
  /// Gives the queues back to the kernel; see the destructor.
  void close() noexcept;

  /// A submission entry to be filled with an io_uring_prep function first (which sets all fields),
  /// then with mark(). Submits what there is when the queue is full.
  io_uring_sqe& next();
  static void mark(io_uring_sqe& entry, void* object, Tag tag) noexcept {
    io_uring_sqe_set_data64(&entry, user_data(object, tag));
  }
  /// Memory that a filled entry may point to: the kernel reads it before the next submission ends.
  /// Take the entry first, the memory then. Aligned to 16, at most 64 KiB; nullptr: there is none.
  void* until_submitted(std::size_t bytes) noexcept;

  /// Asks the request of that name to end; it then completes, most likely with ECANCELED.
  void cancel(void* object, Tag tag);
  /// Closes a descriptor behind everything that has been asked so far. No completion.
  void close_descriptor(int descriptor);

  /// Submits everything and fetches what is done, without waiting; enters the kernel only if it has
  /// something to do there.
  void poll();
  /// Submits everything and waits for a completion, at most for `longest`, if given.
  void wait(std::optional<Duration> longest);

  /// Calls `handle` with each completion that has arrived. It may ask for new requests.
  template <class Handle>
  void reap(Handle handle) {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* each = nullptr;
    io_uring_for_each_cqe(&ring_, head, each) {
      const std::uint64_t data = each->user_data;
      ++count;
      handle(Completion{reinterpret_cast<void*>(data & ~tag_mask),
                        static_cast<Tag>(data & tag_mask), each->res, each->flags});
    }
    io_uring_cq_advance(&ring_, count);
  }

  /// Whether this thread is the one that issues; nobody is before the first submission.
  bool issued_by_this_thread() const noexcept { return issuer_ == std::this_thread::get_id(); }
  bool is_open() const noexcept { return open_; }
  io_uring& native() noexcept { return ring_; }

 private:
  static constexpr std::uint64_t tag_mask = 0xF;  // objects are aligned to 16

  static std::uint64_t user_data(void* object, Tag tag) noexcept {
    return reinterpret_cast<std::uintptr_t>(object) | static_cast<std::uint64_t>(tag);
  }
  void start() noexcept;
  void submit();
  void submitted(int result) noexcept;

  Counter& system_calls_;
  io_uring ring_{};
  bool open_ = false;
  std::thread::id issuer_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // of until_submitted()
  std::size_t blocks_full_ = 0;
  std::size_t block_used_ = 0;
};

}  // namespace weir::uring
