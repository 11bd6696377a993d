// A ring: the submission and completion queues that a loop shares with the kernel.
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

namespace weir::loop::uring {

/// The kind of request that a completion belongs to, in the low bits of its user data. The other
/// bits are a pointer to an object that lives until its last request has completed.
enum class Tag : std::uint8_t {
  none,
  receive,
  send,
  sendable,
  connect,
  accept,
  hangup,
  wake,
  file
};

struct Completion {
  void* object;
  Tag tag;
  int result;
  std::uint32_t flags;

  /// Returns true if the request is still armed and will complete again.
  bool more() const noexcept { return (flags & IORING_CQE_F_MORE) != 0; }
};

/// A ring with one issuing thread: the first thread that submits, waits or polls. Requests made
/// before that are only recorded, so they may come from the thread that made the ring. The issuing
/// thread blocks SIGXFSZ from then on; see os::block_file_size_signal().
/// Threads: one at a time until the first submission; then only the issuing thread, except for the
/// destructor.
class Ring {
 public:
  /// `system_calls` counts entries into the kernel, and outlives the ring.
  explicit Ring(detail::Counter& system_calls) noexcept : system_calls_(system_calls) {}
  /// Leaves requests that are still in the kernel to be cancelled there later. Closes descriptors
  /// whose close() was never submitted.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Sets the queues up.
  /// Errors: those of io_uring_setup(2) and io_uring_enter(2); Errc::unsupported for a kernel
  /// before 6.1.
  Result<> open();
  /// Releases the queues to the kernel; see the destructor.
  void close() noexcept;

  /// Returns a submission entry. The caller fills it first with an io_uring_prep function, which
  /// sets all fields, and then with mark(). Submits the recorded entries if the queue is full.
  io_uring_sqe& next();
  static void mark(io_uring_sqe& entry, void* object, Tag tag) noexcept {
    io_uring_sqe_set_data64(&entry, user_data(object, tag));
  }
  /// Returns memory that a filled entry may point to; the kernel reads it before the next
  /// submission ends. The caller takes the entry first and the memory second. The memory is
  /// aligned to 16; `bytes` is at most 64 KiB. Returns nullptr if there is none.
  void* allocate_until_submit(std::size_t bytes) noexcept;

  /// Cancels the request that was marked with `object` and `tag`. That request then completes,
  /// most likely with ECANCELED.
  void cancel(void* object, Tag tag);
  /// Closes a descriptor after all requests that were made before. It has no completion.
  void close_descriptor(int descriptor);

  /// Submits all recorded requests and fetches completions, without waiting. Enters the kernel
  /// only if there is something to do.
  void poll();
  /// Submits all recorded requests and waits for a completion; at most for `longest`, if given.
  void wait(std::optional<Duration> longest);

  /// Calls `handle` with each completion that has arrived. `handle` may make new requests.
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

  /// Returns true if this thread is the issuing thread. No thread is before the first submission.
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

  detail::Counter& system_calls_;
  io_uring ring_{};
  bool open_ = false;
  std::thread::id issuer_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // memory of allocate_until_submit()
  std::size_t blocks_full_ = 0;
  std::size_t block_used_ = 0;
};

}  // namespace weir::loop::uring
