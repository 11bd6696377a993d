// Threads for loops: started, pinned, waited for; and the signals that meanwhile arrive.
#include "weir/loop/loop_threads.hpp"

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

#include "weir/loop/loop.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/loop/watchdog.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/real_time.hpp"
#include "weir/os/detail/process/signals.hpp"

namespace weir {
namespace {

/// Threads that run loops. Joins them when destroyed.
class LoopThreads {
 public:
  LoopThreads(Host& host, os::Fd all_ended) : host_(host), all_ended_(std::move(all_ended)) {}
  LoopThreads(const LoopThreads&) = delete;
  LoopThreads& operator=(const LoopThreads&) = delete;
  ~LoopThreads() { join(); }

  /// Errors: a thread could not be started, or not be scheduled as is required. The others have
  /// been joined then, and no loop has run.
  Result<> start(std::span<const LoopPlace> places);
  /// An eventfd that becomes readable when the last loop has returned.
  int all_ended() const noexcept { return all_ended_.get(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run(LoopPlace place);
  void run_awake(Loop& loop, Duration longest);
  void place_this_thread(const LoopPlace& place);
  void give_up() {
    set(Gate::given_up);
    join();
  }

  enum class Gate { shut, open, given_up };
  void set(Gate gate) {
    // release: the threads see everything that was done before.
    gate_.store(gate, std::memory_order_release);
    gate_.notify_all();
  }

  Host& host_;
  os::Fd all_ended_;
  std::atomic<Gate> gate_{Gate::shut};  // no loop runs before all threads are in their places
  std::atomic<std::size_t> unplaced_{0};
  std::atomic<int> refusal_{0};  // the kernel's, of what is required
  std::atomic<bool> refusal_told_{false};
  std::atomic<std::size_t> running_{0};
  std::vector<std::thread> threads_;
};

Result<> LoopThreads::start(std::span<const LoopPlace> places) {
  running_ = unplaced_ = places.size();
  try {
    threads_.reserve(places.size());
    for (const LoopPlace& place : places) threads_.emplace_back(&LoopThreads::run, this, place);
  } catch (const std::system_error& error) {
    give_up();
    return fail(system_error(error.code().value()));
  }
  // acquire: with the release of each thread that is in its place, its refusal is seen.
  while (const std::size_t left = unplaced_.load(std::memory_order_acquire)) unplaced_.wait(left);
  if (const int refusal = refusal_.load(std::memory_order_relaxed)) {
    give_up();
    return fail(system_error(refusal));
  }
  set(Gate::open);
  return {};
}

void LoopThreads::place_this_thread(const LoopPlace& place) {
  os::name_this_thread("weir-" + std::to_string(place.loop->core()));
  if (place.cpu >= 0) {
    const auto pinned = os::pin_this_thread(place.cpu);
    if (!pinned) {
      host_.log("weir: core " + std::to_string(place.loop->core()) + " is not pinned to CPU " +
                std::to_string(place.cpu) + ": " + pinned.error().message() +
                " (cpuset.cpus of its cgroup would have to name that CPU)");
    }
  }
  const LoopSchedule& schedule = place.schedule;
  if (schedule.fifo_priority == 0) return;
  const auto scheduled = os::run_fifo(schedule.fifo_priority);
  if (scheduled) return;
  if (schedule.fifo_required) {
    refusal_.store(scheduled.error().value(), std::memory_order_relaxed);
  }
  // It is the same for all of them, so one tells.
  if (refusal_told_.exchange(true, std::memory_order_relaxed)) return;
  host_.log("weir: SCHED_FIFO with priority " + std::to_string(schedule.fifo_priority) +
            " refused: " + os::explain_fifo_refusal(scheduled.error(), schedule.fifo_priority));
}

void LoopThreads::run(LoopPlace place) {
  place_this_thread(place);
  if (unplaced_.fetch_sub(1, std::memory_order_release) == 1) unplaced_.notify_all();
  gate_.wait(Gate::shut, std::memory_order_acquire);
  if (gate_.load(std::memory_order_acquire) == Gate::given_up) return;
  place.loop->figures().thread_begins();
  if (place.schedule.busy_poll) {
    while (!place.loop->stopping()) place.loop->turn(Instant::min());
  } else if (place.schedule.busy_wait > Duration::zero()) {
    run_awake(*place.loop, place.schedule.busy_wait);
  } else {
    place.loop->run();
  }
  place.loop->figures().thread_ends();
  // acq_rel: whoever reads the event sees what every loop has done.
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) os::signal_event(all_ended_.get());
}

/// Waits awake before it sleeps, ever more seldom where that was in vain.
void LoopThreads::run_awake(Loop& loop, Duration longest) {
  SpinPlace own(std::thread::hardware_concurrency());  // each loop has a core, so each may
  Spinning spinning;
  while (!loop.stopping()) {
    if (!spinning.begin(own)) {
      loop.turn();
      continue;
    }
    const Instant end = after(host_.now(), longest);
    bool waited = false;
    bool worked = loop.turn(Instant::min());
    while (!worked && !loop.stopping() && host_.now() < end) {
      waited = true;
      worked = loop.turn(Instant::min());
    }
    if (!worked) spinning.failed();
    if (worked && waited) spinning.succeeded();
    own.give_back();
  }
}

void pass_on(os::SignalFd& signals, RunControl& control) {
  while (const auto signal = signals.read()) {
    control.signalled(*signal == os::StopSignal::interrupt ? Signal::interrupt : Signal::terminate);
  }
}

/// Tells loops that still get somewhere from those that hang.
class Progress {
 public:
  explicit Progress(std::span<const LoopPlace> places) : places_(places), turns_(places.size()) {}

  /// Remembers how far each loop is, and has each make a turn if it can.
  void begin() {
    ran_ = total_ran();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      turns_[i] = places_[i].loop->counters().turns.value();
      places_[i].loop->backend().wake();
    }
  }
  /// Whether none ran anything since, or one has not even come to the end of a turn.
  bool hangs() const {
    if (total_ran() == ran_) return true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].loop->counters().turns.value() == turns_[i]) return true;
    }
    return false;
  }

 private:
  std::uint64_t total_ran() const {
    std::uint64_t total = 0;
    for (const LoopPlace& place : places_) total += place.loop->counters().ran.value();
    return total;
  }

  std::span<const LoopPlace> places_;
  std::vector<std::uint64_t> turns_;
  std::uint64_t ran_ = 0;
};

/// What the thread that called run() does meanwhile.
class Watch {
 public:
  Watch(Host& host, std::span<const LoopPlace> places, Watchdog watchdog)
      : host_(host), progress_(places), watchdog_(std::move(watchdog)) {
    watchdog_.start();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    if (control_ != nullptr) control_->on_abandon_change(nullptr);
  }

  /// Looks after signals from now on, and after loops that do not end.
  void obey(RunControl& control, os::SignalFd signals, os::Fd changed) {
    control_ = &control;
    signals_.emplace(std::move(signals));
    changed_ = std::move(changed);
    control.on_abandon_change([this] { os::signal_event(changed_.get()); });
  }

  /// Tells the control of every signal until the event is signalled.
  void until(int all_ended) {
    // poll(2) passes over what is no descriptor.
    std::array<pollfd, 4> watched{{{signals_ ? signals_->get() : -1, POLLIN, 0},
                                   {all_ended, POLLIN, 0},
                                   {changed_.get(), POLLIN, 0},
                                   {watchdog_.woken(), POLLIN, 0}}};
    if (control_ != nullptr) check_at_ = control_->abandon_at();
    for (;;) {
      const Instant next = std::min(check_at_, watchdog_.next());
      const int ready =
          ::poll(watched.data(), watched.size(), os::to_poll_timeout(next, host_.now()));
      if (ready < 0) continue;  // EINTR, or no memory just now
      if (watched[0].revents != 0) pass_on(*signals_, *control_);
      if (watched[1].revents != 0) return;
      if (watched[2].revents != 0) expect_the_end();
      if (watched[3].revents != 0) watchdog_.wake();
      const Instant now = host_.now();
      if (now >= watchdog_.next()) watchdog_.look();
      if (ready == 0 && now >= check_at_) check();
    }
  }

 private:
  void expect_the_end() {
    os::drain_event(changed_.get());
    check_at_ = control_->abandon_at();
    checking_ = false;
  }
  void check() {
    constexpr Duration patience = std::chrono::seconds(1);
    if (checking_ && progress_.hangs()) give_up();
    checking_ = true;
    progress_.begin();
    check_at_ = after(host_.now(), patience);
  }
  /// Threads that do not return cannot be stopped; nothing that they use may be taken from them.
  [[noreturn]] void give_up() {
    host_.log("weir: an event loop does not return (a handler that never waits?): giving up");
    std::_Exit(1);
  }

  Host& host_;
  Progress progress_;
  Watchdog watchdog_;
  RunControl* control_ = nullptr;
  std::optional<os::SignalFd> signals_;
  os::Fd changed_;
  Instant check_at_ = never;
  bool checking_ = false;  // since a second before check_at_
};

}  // namespace

Result<> run_on_threads(Host& host, std::span<const LoopPlace> places, RunControl* control) {
  if (places.empty()) return {};
  auto all_ended = os::open_event();
  if (!all_ended) return fail(all_ended.error());
  auto watchdog = Watchdog::make(host, places);
  if (!watchdog) return fail(watchdog.error());
  Watch watch(host, places, std::move(*watchdog));
  if (control != nullptr) {
    // Before the threads, which inherit the mask; and it is restored only after they are joined.
    auto signals = os::SignalFd::open();
    if (!signals) return fail(signals.error());
    auto changed = os::open_event();
    if (!changed) return fail(changed.error());
    watch.obey(*control, std::move(*signals), std::move(*changed));
  }
  LoopThreads threads(host, std::move(*all_ended));
  if (auto started = threads.start(places); !started) return started;
  watch.until(threads.all_ended());
  threads.join();
  return {};
}

}  // namespace weir
