#include "weir/loop/os/detail/os_thread.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <utility>

#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/background.hpp"
#include "weir/os/detail/io/clock.hpp"

namespace weir {
namespace {

/// While it lives, this thread takes no signals, nor will those that it starts.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    // What a thread does wrong itself must still end the process there.
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

// Lets the other hyper-thread have the core for a moment.
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

OsThread::OsThread(HostThreadOptions options, ThreadWork& work, std::vector<int> cpus,
                   SpinPlace& spin_place)
    : options_(std::move(options)), work_(work), cpus_(std::move(cpus)), spin_place_(spin_place) {}

OsThread::~OsThread() {
  if (!joinable_) return;
  // relaxed: the parker orders it before the next look at it.
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
  // Not std::thread, whose stacks are as large as the main thread's may become.
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
  os::name_this_thread(options_.name);
  // Refused in some sandbox: then it competes as all do.
  if (options_.rank == ThreadRank::behind) static_cast<void>(os::stand_back());
  // Refused where the CPUs were taken from this process meanwhile; the kernel has chosen others.
  if (!cpus_.empty()) static_cast<void>(os::allow_cpus(cpus_));
  probe_ = os::ThreadProbe::of_this_thread();
  // release: whoever sees it sees the probe.
  probed_.store(true, std::memory_order_release);
  // relaxed: what asks for it calls the parker afterwards; see has_call() and park().
  while (!stopping_.load(std::memory_order_relaxed)) {
    const auto until = work_.step();
    if (!until) return;
    if (*until != Instant::min()) rest(*until);
  }
}

void OsThread::rest(Instant until) {
  if (spinning_.begin(spin_place_)) {
    const Instant end = std::min(until, after(os::monotonic_now(), Spinning::longest));
    while (!parker_.has_call() && os::monotonic_now() < end) pause();
    parker_.has_call() ? spinning_.succeeded() : spinning_.failed();
    spin_place_.give_back();
  }
  parker_.park(until);
}

Duration OsThread::cpu_time() noexcept {
  // acquire, here and below, pairs with the release in run().
  return probed_.load(std::memory_order_acquire) ? probe_->cpu_time() : Duration(0);
}

os::ThreadState OsThread::state() noexcept {
  // One that has not come to its first line waits for a CPU.
  if (!probed_.load(std::memory_order_acquire)) return os::ThreadState::running;
  return probe_->state();
}

}  // namespace weir
