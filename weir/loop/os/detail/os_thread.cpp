// OsThread: start, steps, spinning and the end of a thread.
#include "weir/loop/os/detail/os_thread.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <utility>

#include "weir/loop/os/detail/os_profiler.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/process/scheduling.hpp"

namespace weir::loop {
namespace {

/// Blocks signals on this thread, and on threads that it starts, for as long as the object lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    // A profile uses SIGPROF.
    ::sigdelset(&blocked, SIGPROF);
    // Faults of the thread itself must still end the process.
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      ::sigdelset(&blocked, own);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Gives the core to the other hyper-thread for a moment.
#if defined(__x86_64__)
void pause() {
  __builtin_ia32_pause();
}
#elif defined(__aarch64__)
void pause() {
  asm volatile("yield");
}
#else
void pause() {}
#endif

}  // namespace

OsThread::OsThread(PlatformThreadOptions options, ThreadWork& work, std::vector<int> cpus,
                   SpinPermit& spin_permit)
    : options_(std::move(options)),
      work_(work),
      cpus_(std::move(cpus)),
      spin_permit_(spin_permit) {}

OsThread::~OsThread() {
  if (!joinable_) return;
  // relaxed: the parker orders this store before the next load.
  stopping_.store(true, std::memory_order_relaxed);
  parker_.unpark();
  ::pthread_join(thread_, nullptr);
}

Result<> OsThread::start() {
  const SignalsBlocked inherited;
  pthread_attr_t attributes;
  if (const int error = ::pthread_attr_init(&attributes); error != 0) {
    return fail(system_error(error));
  }
  // pthread_create(3) instead of std::thread, whose stacks are as large as the main thread's
  // limit.
  const auto least = static_cast<std::size_t>(PTHREAD_STACK_MIN);
  ::pthread_attr_setstacksize(&attributes, std::max(options_.stack_bytes, least));
  const int error = ::pthread_create(&thread_, &attributes, &enter, this);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return fail(system_error(error));
  joinable_ = true;
  return {};
}

void* OsThread::enter(void* self) noexcept {
  static_cast<OsThread*>(self)->run();
  return nullptr;
}

void OsThread::run() {
  os::set_current_thread_name(options_.name);
  // Some sandboxes refuse this; the thread then has the normal priority.
  if (options_.priority == ThreadPriority::background)
    static_cast<void>(os::set_background_priority());
  // The kernel refuses this if the CPUs were taken from the process; it has chosen others then.
  if (!cpus_.empty()) static_cast<void>(os::set_allowed_cpus(cpus_));
  probe_ = os::ThreadProbe::of_this_thread();
  // release: a thread that reads true also sees the probe.
  probed_.store(true, std::memory_order_release);
  const OtherThreads::Running running(options_.name);
  // relaxed: the destructor calls the parker after its store; see is_notified() and park().
  while (!stopping_.load(std::memory_order_relaxed)) {
    const auto until = work_.step();
    if (!until) return;
    if (*until != Instant::min()) wait_until(*until);
  }
}

void OsThread::wait_until(Instant until) {
  if (spinner_.try_begin(spin_permit_)) {
    const Instant end = std::min(until, after(os::monotonic_now(), AdaptiveSpinner::spin_max));
    while (!parker_.is_notified() && os::monotonic_now() < end) pause();
    parker_.is_notified() ? spinner_.record_success() : spinner_.record_failure();
    spin_permit_.release();
  }
  parker_.park(until);
}

Duration OsThread::cpu_time() noexcept {
  // acquire, here and below, pairs with the release in run().
  return probed_.load(std::memory_order_acquire) ? probe_->cpu_time() : Duration(0);
}

os::ThreadState OsThread::state() noexcept {
  // A thread that has not reached its first line waits for a CPU.
  if (!probed_.load(std::memory_order_acquire)) return os::ThreadState::running;
  return probe_->state();
}

}  // namespace weir::loop
