#include "weir/os/detail/process/cpu_sampler.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

namespace weir::os {

SampledThread SampledThread::of_this_thread() noexcept {
  SampledThread thread;
  thread.handle = ::pthread_self();
  thread.id = ::gettid();
  // The calls cannot fail for the running thread.
  ::pthread_getcpuclockid(thread.handle, &thread.cpu_clock);
  thread.stack = stack_of_this_thread();
  sigset_t blocked;
  sigemptyset(&blocked);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  thread.blocks_signal = sigismember(&blocked, SIGPROF) == 1;
  return thread;
}

bool copy_own_memory(const void* from, void* to, std::size_t size) noexcept {
  const iovec local{to, size};
  const iovec remote{const_cast<void*>(from), size};
  // Not the function of the C library, which the address sanitizer replaces.
  const long copied = ::syscall(SYS_process_vm_readv, ::getpid(), &local, 1UL, &remote, 1UL, 0UL);
  return copied == static_cast<long>(size);
}

/// The signal handler, and the data that it finds. They are static, because a signal may
/// arrive after its sampler has been destroyed.
struct SamplerSignal {
  using Entry = std::atomic<CpuSampler::Thread*>;

  static constinit inline std::atomic<bool> in_use{false};
  static constinit inline std::array<Entry, CpuSampler::threads_max> entries{};
  static constinit inline std::atomic<unsigned> handlers_running{0};
  static inline struct sigaction former{};

  static Result<> install() noexcept;
  static void restore() noexcept;
  static void handle(int number, siginfo_t* info, void* context) noexcept;
  static void forward(int number, siginfo_t* info, void* context) noexcept;
};

Result<> SamplerSignal::install() noexcept {
  if (::sigaction(SIGPROF, nullptr, &former) != 0) return fail(system_error(errno));
  struct sigaction action{};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (::sigaction(SIGPROF, &action, nullptr) != 0) return fail(system_error(errno));
  return {};
}

/// Restores the former action. No timer of the sampler runs any more.
void SamplerSignal::restore() noexcept {
  // An ignored signal is discarded on all threads, also if it is pending. The former action may be
  // the default, by which a late signal would end the process.
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPROF, &ignore, nullptr);
  for (Entry& each : entries) each.store(nullptr);
  // Sequentially consistent, as in handle(): a handler that is not counted here finds no entry.
  while (handlers_running.load() != 0) ::sched_yield();
  ::sigaction(SIGPROF, &former, nullptr);
}

void SamplerSignal::handle(int number, siginfo_t* info, void* context) noexcept {
  const int saved_errno = errno;
  handlers_running.fetch_add(1);
  const auto* const entry = static_cast<Entry*>(info->si_value.sival_ptr);
  const bool own = info->si_code == SI_TIMER && entry >= entries.data() &&
                   entry < entries.data() + entries.size();
  if (own) {
    CpuSampler::Thread* const thread = entry->load();
    // A late signal of an earlier sampler may find the entry of another thread.
    if (thread != nullptr && ::pthread_equal(thread->thread.handle, ::pthread_self()) != 0) {
      const int missed = info->si_overrun > 0 ? info->si_overrun : 0;
      thread->take(static_cast<std::uint64_t>(missed) + 1, context);
    }
  } else {
    forward(number, info, context);
  }
  handlers_running.fetch_sub(1);
  errno = saved_errno;
}

/// Calls the handler that was installed before. The default action is not taken: it would end the
/// process.
void SamplerSignal::forward(int number, siginfo_t* info, void* context) noexcept {
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    if (former.sa_sigaction != nullptr) former.sa_sigaction(number, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(number);
  }
}

void CpuSampler::Thread::take(std::uint64_t weight, const void* signal_context) noexcept {
  std::array<std::uintptr_t, frames_max> frames;
  const std::size_t count =
      walk_frames(interrupted_registers(signal_context), thread.stack, frames);
  Facts facts;
  if (options.hook != nullptr) facts = options.hook(options.hook_context, index);
  const std::array<std::uintptr_t, head_words> head{static_cast<std::uintptr_t>(weight),
                                                    facts.activity, facts.label};
  ring.push(head.data(), head.size(), frames.data(), count);
}

Result<std::unique_ptr<CpuSampler>> CpuSampler::start(std::span<const SampledThread> threads,
                                                      const Options& options) {
  if (threads.size() > threads_max) return fail(Errc::limit_reached);
  for (const SampledThread& each : threads)
    if (each.blocks_signal) return fail(Errc::unsupported);
  std::unique_ptr<CpuSampler> sampler(new CpuSampler);
  sampler->options_ = options;
  for (const SampledThread& each : threads) {
    sampler->threads_.push_back(std::make_unique<Thread>(each, sampler->threads_.size(), options));
  }
  if (SamplerSignal::in_use.exchange(true)) return fail(Errc::conflict);
  if (auto installed = SamplerSignal::install(); !installed) {
    SamplerSignal::in_use.store(false);
    return fail(installed.error());
  }
  sampler->running_ = true;
  for (const auto& each : sampler->threads_) WEIR_TRY(sampler->start_timer(*each));
  return sampler;
}

Result<> CpuSampler::add(const SampledThread& thread) {
  if (threads_.size() == threads_max) return fail(Errc::limit_reached);
  if (thread.blocks_signal) return fail(Errc::unsupported);
  if (!running_) return fail(Errc::closed);
  threads_.push_back(std::make_unique<Thread>(thread, threads_.size(), options_));
  auto started = start_timer(*threads_.back());
  if (!started) remove_last();
  return started;
}

/// Removes a thread whose timer did not start, and which has no signal therefore.
void CpuSampler::remove_last() noexcept {
  Thread& last = *threads_.back();
  if (last.has_timer) ::timer_delete(last.timer);
  SamplerSignal::entries[last.index].store(nullptr);
  threads_.pop_back();
}

Result<> CpuSampler::start_timer(Thread& thread) {
  auto& entry = SamplerSignal::entries[thread.index];
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_ptr = &entry;
  event._sigev_un._tid = thread.thread.id;
  if (::timer_create(thread.thread.cpu_clock, &event, &thread.timer) != 0)
    return fail(system_error(errno));
  thread.has_timer = true;
  entry.store(&thread);
  constexpr long nanoseconds = 1'000'000'000;
  const long period = nanoseconds / static_cast<long>(thread.options.hertz);
  const timespec interval{period / nanoseconds, period % nanoseconds};
  const itimerspec timing{interval, interval};
  if (::timer_settime(thread.timer, 0, &timing, nullptr) != 0) return fail(system_error(errno));
  return {};
}

void CpuSampler::stop() noexcept {
  if (!std::exchange(running_, false)) return;
  for (const auto& each : threads_)
    if (std::exchange(each->has_timer, false)) ::timer_delete(each->timer);
  SamplerSignal::restore();
  SamplerSignal::in_use.store(false);
}

CpuSampler::~CpuSampler() {
  stop();
}

std::uint64_t CpuSampler::dropped() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& each : threads_) sum += each->ring.dropped();
  return sum;
}

}  // namespace weir::os
