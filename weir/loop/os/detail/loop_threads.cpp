// Threads that run loops: start, pinning, end; and the signals that arrive meanwhile.
#include "weir/loop/os/detail/os_thread.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/detail/stall_detector.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/loop/os/detail/os_profiler.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/process/scheduling.hpp"
#include "weir/os/detail/process/signals.hpp"

namespace weir::loop {
namespace {

/// Threads that run loops. Joins them when destroyed.
class LoopThreads {
 public:
  LoopThreads(Platform& platform, os::Fd all_ended)
      : platform_(platform), all_ended_(std::move(all_ended)) {}
  LoopThreads(const LoopThreads&) = delete;
  LoopThreads& operator=(const LoopThreads&) = delete;
  ~LoopThreads() { join(); }

  /// Starts one thread for each placement.
  /// Errors: the kernel's if a thread could not be started, or did not get the schedule that it
  /// requires. All threads have been joined then, and no loop has run.
  Result<> start(std::span<const LoopPlacement> placements);
  /// Returns an eventfd that becomes readable when the last loop has returned.
  int all_ended() const noexcept { return all_ended_.get(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run(LoopPlacement placement);
  void run_busy_wait(Loop& loop, Duration longest);
  void configure_this_thread(const LoopPlacement& placement);
  void give_up() {
    set(Gate::aborted);
    join();
  }

  enum class Gate { shut, open, aborted };
  void set(Gate gate) {
    // release: the threads see everything that was done before.
    gate_.store(gate, std::memory_order_release);
    gate_.notify_all();
  }

  Platform& platform_;
  os::Fd all_ended_;
  std::atomic<Gate> gate_{Gate::shut};  // opens when all threads are configured
  std::atomic<std::size_t> unready_{0};
  std::atomic<int> schedule_error_{0};  // error of a required schedule
  std::atomic<bool> schedule_error_logged_{false};
  std::atomic<std::size_t> running_{0};
  std::vector<std::thread> threads_;
};

Result<> LoopThreads::start(std::span<const LoopPlacement> placements) {
  running_ = unready_ = placements.size();
  try {
    threads_.reserve(placements.size());
    for (const LoopPlacement& placement : placements)
      threads_.emplace_back(&LoopThreads::run, this, placement);
  } catch (const std::system_error& error) {
    give_up();
    return fail(system_error(error.code().value()));
  }
  // acquire: pairs with the release of each configured thread, so its schedule_error_ is visible.
  while (const std::size_t left = unready_.load(std::memory_order_acquire)) unready_.wait(left);
  if (const int schedule_error = schedule_error_.load(std::memory_order_relaxed)) {
    give_up();
    return fail(system_error(schedule_error));
  }
  set(Gate::open);
  return {};
}

void LoopThreads::configure_this_thread(const LoopPlacement& placement) {
  os::set_current_thread_name("weir-" + std::to_string(placement.loop->core()));
  if (placement.cpu >= 0) {
    const auto pinned = os::pin_current_thread(placement.cpu);
    if (!pinned) {
      platform_.log("weir: core " + std::to_string(placement.loop->core()) +
                    " is not pinned to CPU " + std::to_string(placement.cpu) + ": " +
                    pinned.error().message() +
                    " (cpuset.cpus of its cgroup must include that CPU)");
    }
  }
  const LoopSchedule& schedule = placement.schedule;
  if (schedule.fifo_priority == 0) return;
  const auto scheduled = os::set_fifo_priority(schedule.fifo_priority);
  if (scheduled) return;
  if (schedule.fifo_required) {
    schedule_error_.store(scheduled.error().value(), std::memory_order_relaxed);
  }
  // The error is the same for all threads, so only the first logs it.
  if (schedule_error_logged_.exchange(true, std::memory_order_relaxed)) return;
  platform_.log("weir: SCHED_FIFO with priority " + std::to_string(schedule.fifo_priority) +
                " refused: " + os::explain_fifo_error(scheduled.error(), schedule.fifo_priority));
}

void LoopThreads::run(LoopPlacement placement) {
  configure_this_thread(placement);
  if (unready_.fetch_sub(1, std::memory_order_release) == 1) unready_.notify_all();
  gate_.wait(Gate::shut, std::memory_order_acquire);
  if (gate_.load(std::memory_order_acquire) == Gate::aborted) return;
  const LoopThreadTable::Running running(*placement.loop);
  placement.loop->metrics().on_thread_start();
  if (placement.schedule.busy_poll) {
    while (!placement.loop->stopping()) placement.loop->turn_and_trim(Instant::min());
  } else if (placement.schedule.busy_wait > Duration::zero()) {
    run_busy_wait(*placement.loop, placement.schedule.busy_wait);
  } else {
    placement.loop->run();
  }
  placement.loop->metrics().on_thread_end();
  // acq_rel: a reader of the event sees everything that the loops have done.
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) os::signal_event(all_ended_.get());
}

/// Runs a loop that spins before it sleeps, less often after spins that found no work.
void LoopThreads::run_busy_wait(Loop& loop, Duration longest) {
  // Each loop has a core of its own, so each may spin.
  SpinPermit own(std::thread::hardware_concurrency());
  AdaptiveSpinner spinner;
  while (!loop.stopping()) {
    if (!spinner.try_begin(own)) {
      loop.turn_and_trim();
      continue;
    }
    const Instant end = after(platform_.now(), longest);
    bool waited = false;
    bool worked = loop.turn_and_trim(Instant::min());
    while (!worked && !loop.stopping() && platform_.now() < end) {
      waited = true;
      worked = loop.turn_and_trim(Instant::min());
    }
    if (!worked) spinner.record_failure();
    if (worked && waited) spinner.record_success();
    own.release();
  }
}

void forward_signals(os::SignalFd& signals, RunControl& control) {
  while (const auto signal = signals.read()) {
    switch (*signal) {
      case os::StopSignal::interrupt:
        control.on_signal(Signal::interrupt);
        break;
      case os::StopSignal::terminate:
        control.on_signal(Signal::terminate);
        break;
      case os::StopSignal::quit:
        control.on_signal(Signal::quit);
        break;
    }
  }
}

/// Detects loops that make no progress.
class Progress {
 public:
  explicit Progress(std::span<const LoopPlacement> placements)
      : placements_(placements), turns_(placements.size()) {}

  /// Records the progress of each loop, and wakes each so that it makes a turn if it can.
  void begin() {
    ran_ = total_ran();
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      turns_[i] = placements_[i].loop->counters().turns.value();
      placements_[i].loop->backend().wake();
    }
  }
  /// Returns true if no loop has run anything since begin(), or if some loop has not finished a
  /// turn.
  bool hangs() const {
    if (total_ran() == ran_) return true;
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      if (placements_[i].loop->counters().turns.value() == turns_[i]) return true;
    }
    return false;
  }

 private:
  std::uint64_t total_ran() const {
    std::uint64_t total = 0;
    for (const LoopPlacement& placement : placements_)
      total += placement.loop->counters().ran.value();
    return total;
  }

  std::span<const LoopPlacement> placements_;
  std::vector<std::uint64_t> turns_;
  std::uint64_t ran_ = 0;
};

/// The work of the thread that called run(): signals, the watchdog, and loops that do not end.
class ThreadMonitor {
 public:
  ThreadMonitor(Platform& platform, std::span<const LoopPlacement> placements, Watchdog watchdog)
      : platform_(platform), progress_(placements), watchdog_(std::move(watchdog)) {
    watchdog_.start();
  }
  ThreadMonitor(const ThreadMonitor&) = delete;
  ThreadMonitor& operator=(const ThreadMonitor&) = delete;
  ~ThreadMonitor() {
    if (control_ != nullptr) control_->on_abandon_change(nullptr);
  }

  /// Handles signals from now on, and loops that do not end.
  void handle_signals(RunControl& control, os::SignalFd signals, os::Fd changed) {
    control_ = &control;
    signals_.emplace(std::move(signals));
    changed_ = std::move(changed);
    control.on_abandon_change([this] { os::signal_event(changed_.get()); });
  }

  /// Passes every signal to the control until the event is signalled.
  void until(int all_ended) {
    // poll(2) ignores negative descriptors.
    std::array<pollfd, 4> watched{{{signals_ ? signals_->get() : -1, POLLIN, 0},
                                   {all_ended, POLLIN, 0},
                                   {changed_.get(), POLLIN, 0},
                                   {watchdog_.wake_descriptor(), POLLIN, 0}}};
    if (control_ != nullptr) check_at_ = control_->abandon_at();
    for (;;) {
      const Instant next = std::min(check_at_, watchdog_.next());
      const int ready =
          ::poll(watched.data(), watched.size(), os::to_poll_timeout(next, platform_.now()));
      if (ready < 0) continue;  // EINTR, or the kernel is short of memory
      if (watched[0].revents != 0) forward_signals(*signals_, *control_);
      if (watched[1].revents != 0) return;
      if (watched[2].revents != 0) on_abandon_change();
      if (watched[3].revents != 0) watchdog_.wake();
      const Instant now = platform_.now();
      if (now >= watchdog_.next()) watchdog_.check();
      if (ready == 0 && now >= check_at_) check();
    }
  }

 private:
  void on_abandon_change() {
    os::drain_event(changed_.get());
    check_at_ = control_->abandon_at();
    checking_ = false;
  }
  void check() {
    constexpr Duration hang_timeout = std::chrono::seconds(1);
    if (checking_ && progress_.hangs()) give_up();
    checking_ = true;
    progress_.begin();
    check_at_ = after(platform_.now(), hang_timeout);
  }
  /// Ends the process: threads that do not return cannot be stopped, and their memory cannot be
  /// freed.
  [[noreturn]] void give_up() {
    platform_.log(
        "weir: an event loop does not return (does a handler block?): exiting with status 1");
    std::_Exit(1);
  }

  Platform& platform_;
  Progress progress_;
  Watchdog watchdog_;
  RunControl* control_ = nullptr;
  std::optional<os::SignalFd> signals_;
  os::Fd changed_;
  Instant check_at_ = never;
  bool checking_ = false;  // true if begin() was called a second before check_at_
};

}  // namespace

Result<> run_on_threads(Platform& platform, std::span<const LoopPlacement> placements,
                        RunControl* control) {
  if (placements.empty()) return {};
  WEIR_TRY(auto all_ended, os::open_event());
  WEIR_TRY(auto watchdog, Watchdog::make(platform, placements));
  ThreadMonitor monitor(platform, placements, std::move(watchdog));
  if (control != nullptr) {
    // Blocked before the threads start, which inherit the mask, and restored only after they are
    // joined.
    WEIR_TRY(auto signals, os::SignalFd::open());
    WEIR_TRY(auto changed, os::open_event());
    monitor.handle_signals(*control, std::move(signals), std::move(changed));
  }
  LoopThreads threads(platform, std::move(all_ended));
  if (auto started = threads.start(placements); !started) return started;
  monitor.until(threads.all_ended());
  threads.join();
  return {};
}

}  // namespace weir::loop
