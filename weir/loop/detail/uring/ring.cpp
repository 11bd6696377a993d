// The io_uring queues: setup, submission, waiting.
#include "weir/loop/detail/uring/ring.hpp"

#include <poll.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <new>

#include "weir/os/detail/process/signals.hpp"

namespace weir::loop::uring {
namespace {

// One turn rarely starts more requests; if it does, it enters the kernel twice.
constexpr unsigned submission_entries = 1024;
// Armed requests complete often: this has room for a full accept queue and a receive of every busy
// connection. The kernel keeps what does not fit (IORING_FEAT_NODROP) until there is room.
constexpr unsigned completion_entries = 8192;
constexpr std::size_t block_bytes = 64 * 1024;
constexpr std::size_t blocks_max = 256;
constexpr std::size_t blocks_kept = 1;  // when their memory is no longer in use

// All of these are older than deferred task work (6.1), but checking costs nothing.
constexpr unsigned needed_features = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP |
                                     IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_FAST_POLL |
                                     IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;

}  // namespace

Result<> Ring::open() {
  io_uring_params parameters{};
  // Disabled at first: the thread that enables it becomes the single issuer. The kernel processes
  // completions only when that thread requests them, all together, never in the middle of a turn.
  parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
                     IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                     IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  parameters.cq_entries = completion_entries;
  const int made = io_uring_queue_init_params(submission_entries, &ring_, &parameters);
  if (made == -EINVAL) return fail(Errc::unsupported);
  if (made < 0) return fail(system_error(-made));
  open_ = true;
  blocks_.reserve(blocks_max);
  if ((parameters.features & needed_features) != needed_features) return fail(Errc::unsupported);
  // A seccomp filter may allow io_uring_setup() and refuse io_uring_enter(). A disabled ring
  // answers EBADFD.
  const int entered = io_uring_enter(static_cast<unsigned>(ring_.ring_fd), 0, 0, 0, nullptr);
  if (entered < 0 && entered != -EBADFD) return fail(system_error(-entered));
  return {};
}

void Ring::close() noexcept {
  if (!open_) return;
  open_ = false;
  const unsigned mask = *ring_.sq.kring_mask;
  for (unsigned index = *ring_.sq.khead; index != ring_.sq.sqe_tail; ++index) {
    const io_uring_sqe& entry = ring_.sq.sqes[index & mask];
    if (entry.opcode == IORING_OP_CLOSE) ::close(entry.fd);
  }
  io_uring_queue_exit(&ring_);
}

Ring::~Ring() {
  close();
}

void Ring::start() noexcept {
  if (issuer_ != std::thread::id()) {
    assert(issued_by_this_thread());
    return;
  }
  issuer_ = std::this_thread::get_id();
  // The kernel writes to files on this thread while it submits. The signal stays blocked for as
  // long as the thread lives, because it may run other loops later.
  os::block_file_size_signal();
  // liburing 2.3 declares io_uring_enable_rings() but does not export it.
  const auto descriptor = static_cast<unsigned>(ring_.ring_fd);
  [[maybe_unused]] const int enabled =
      io_uring_register(descriptor, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  assert(enabled == 0);
  io_uring_register_ring_fd(&ring_);  // optional: a little faster
}

io_uring_sqe& Ring::next() {
  for (;;) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry != nullptr) return *entry;
    submit();
  }
}

void* Ring::allocate_until_submit(std::size_t bytes) noexcept {
  bytes = (bytes + 15) & ~std::size_t{15};
  assert(bytes <= block_bytes);
  if (block_used_ + bytes > block_bytes) {
    ++blocks_full_;
    block_used_ = 0;
  }
  if (blocks_full_ == blocks_.size()) {
    if (blocks_.size() == blocks_.capacity()) return nullptr;
    std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[block_bytes]);
    if (block == nullptr) return nullptr;
    blocks_.push_back(std::move(block));
  }
  void* memory = blocks_[blocks_full_].get() + block_used_;
  block_used_ += bytes;
  return memory;
}

void Ring::cancel(void* object, Tag tag) {
  io_uring_sqe& entry = next();
  io_uring_prep_cancel64(&entry, user_data(object, tag), 0);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  mark(entry, nullptr, Tag::none);
}

void Ring::close_descriptor(int descriptor) {
  io_uring_sqe& entry = next();
  io_uring_prep_close(&entry, descriptor);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  mark(entry, nullptr, Tag::none);
}

void Ring::submitted(int result) noexcept {
  system_calls_.add();
  if (io_uring_sq_ready(&ring_) == 0) {
    blocks_full_ = block_used_ = 0;
    if (blocks_.size() > blocks_kept) blocks_.resize(blocks_kept);
  }
  if (result >= 0 || result == -ETIME || result == -EINTR) return;
  // The kernel is short of memory: wait a moment before the next attempt.
  assert(result == -EAGAIN || result == -EBUSY || result == -ENOMEM);
  ::poll(nullptr, 0, 1);
}

void Ring::submit() {
  start();
  submitted(io_uring_submit(&ring_));
}

void Ring::poll() {
  start();
  // acquire, for the completions after an overflow; the kernel sets both bits at any time.
  const unsigned flags = io_uring_smp_load_acquire(ring_.sq.kflags);
  const bool work = (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  if (!work && io_uring_sq_ready(&ring_) == 0) return;
  submitted(io_uring_submit_and_get_events(&ring_));
}

void Ring::wait(std::optional<Duration> longest) {
  start();
  constexpr std::int64_t second = 1'000'000'000;
  __kernel_timespec limit{};
  if (longest) limit = {longest->count() / second, longest->count() % second};
  io_uring_cqe* ignored = nullptr;
  submitted(
      io_uring_submit_and_wait_timeout(&ring_, &ignored, 1, longest ? &limit : nullptr, nullptr));
}

}  // namespace weir::loop::uring
