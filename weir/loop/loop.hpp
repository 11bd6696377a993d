// Event loop of one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/destroy_queue.hpp"
#include "weir/loop/detail/inbox.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/loop/detail/slots.hpp"
#include "weir/loop/detail/stall_detector.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/loop/metrics.hpp"

namespace weir {

/// A callback that the loop calls once when it starts to drain. A draining loop takes no new work
/// and finishes the work that it has.
class DrainObserver : public detail::ListNode {
 public:
  using Function = void (*)(DrainObserver&);
  explicit DrainObserver(Function function) noexcept : function_(function) {}

 private:
  friend class Loop;
  Function function_;
};

/// A callback that the loop calls once in resume_accepting(). The listeners of the loop may accept
/// from then on; see Loop::pause_accepting().
class AcceptObserver : public detail::ListNode {
 public:
  using Function = void (*)(AcceptObserver&);
  explicit AcceptObserver(Function function) noexcept : function_(function) {}

 private:
  friend class Loop;
  Function function_;
};

/// A callback that the loop calls once at the end of a turn, after the clock read that follows the
/// turn's runnables. Loop::now() is the time of that read. An observer that must run in a later
/// turn too adds itself again.
class TurnObserver : public detail::ListNode {
 public:
  using Function = void (*)(TurnObserver&);
  explicit TurnObserver(Function function) noexcept : function_(function) {}

 private:
  friend class Loop;
  Function function_;
};

/// Counters of one loop. The thread of the loop writes them, and they only grow.
struct LoopCounters {
  detail::Counter turns;
  detail::Counter
      slow_turns;  ///< turns whose runnables ran longer than Loop::slow_turn; see StallLog
  detail::Counter run_time;  ///< nanoseconds spent in runnables
  detail::Counter
      wait_time;        ///< nanoseconds spent in Backend::wait(): submitting, polling and sleeping
  detail::Counter ran;  ///< runnables run
  detail::Counter received;  ///< runnables received through the inbox
  detail::Counter
      inbox_depth_max;  ///< largest number of runnables taken from the inbox in one look
};

/// The event loop of one thread. A turn runs at most 4096 runnables, and takes the inbox before
/// every 16th. It then submits I/O, waits for a timer or completion, and fires the due timers.
/// The loop blocks only in Backend::wait().
/// Threads: the loop's own, except post(), post_from_foreign_thread(), stop(), counters(),
/// is_sleeping() and the functions marked "any thread".
/// Lifetime: outlives every operation, timer and socket on it.
class Loop {
 public:
  static constexpr Duration slow_turn = std::chrono::milliseconds(50);

  struct Options {
    BackendChoice backend = BackendChoice::automatic;
    unsigned core = 0;  ///< index among the loops of a runtime
    loop::LoopGroup* group =
        nullptr;  ///< state shared with the other loops; nullptr: a group of its own
  };
  /// Creates a loop and its backend.
  /// Errors: those of Platform::make_backend().
  static Result<std::unique_ptr<Loop>> make(loop::Platform& platform, const Options& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Returns the loop that runs a turn on this thread, or nullptr. Use it only for assertions,
  /// logs and memory. A DestroyQueue::Destroyable uses it too, because a destructor has no
  /// context.
  static Loop* current() noexcept { return current_; }

  /// Returns the time that the loop read last: at the start of this turn or later in it.
  Instant now() const noexcept { return now_; }
  loop::Platform& platform() noexcept { return platform_; }
  loop::Backend& backend() noexcept { return *backend_; }
  const std::string& backend_reason() const noexcept { return backend_reason_; }
  loop::TimerWheel& timers() noexcept { return timers_; }
  BlockPool& blocks() noexcept { return blocks_; }
  loop::LoopGroup& group() noexcept { return *group_; }
  /// Returns the queue through which other threads return objects of this loop for destruction.
  /// Threads: any.
  loop::DestroyQueue& destroy_queue() const noexcept { return destroy_queue_; }
  unsigned core() const noexcept { return core_; }

  /// Appends `runnable` to the ready queue.
  /// Threads: the loop's.
  void ready(loop::Runnable& runnable) noexcept { ready_.push(runnable); }
  /// Appends `runnable` to the ready queue at the end of this turn. The loop submits operations and
  /// takes input before it runs. Work that continues itself by ready() could fill a whole turn.
  /// Threads: the loop's.
  void ready_next_turn(loop::Runnable& runnable) noexcept { next_turn_.push(runnable); }
  /// Queues `runnable` and wakes the loop if it sleeps.
  /// Threads: any.
  void post(loop::Runnable& runnable) noexcept {
    if (inbox_.push(runnable)) backend_->wake();
  }
  /// Does what post() does, for a thread that is not a loop of this runtime. That thread may still
  /// be in this function when the runnable has run and the loop is destroyed. The destructor of
  /// the loop waits for it.
  void post_from_foreign_thread(loop::Runnable& runnable) noexcept {
    // relaxed: the push publishes it before any thread can destroy the loop.
    producers_in_flight_.fetch_add(1, std::memory_order_relaxed);
    post(runnable);
    // release pairs with the destructor's acquire.
    producers_in_flight_.fetch_sub(1, std::memory_order_release);
  }

  /// Returns the number of posted runnables that the loop has not taken yet.
  /// Threads: any.
  std::uint64_t inbox_depth() const noexcept {
    // A runnable is counted before it is pushed. The two counters are read one after the other, in
    // no defined order, so the difference may be negative.
    const std::uint64_t received = counters_.received.value();
    const std::uint64_t pushed = inbox_.pushed();
    return pushed > received ? pushed - received : 0;
  }

  /// Runs one turn, which waits until `until` at the latest.
  /// Returns: true if a runnable ran, a timer fired, or a runnable is ready now.
  bool turn(Instant until = never);
  /// Does the same, and frees the free blocks of blocks() that no turn of a quarter of a second has
  /// needed; see BlockPool::idle_bytes.
  bool turn_and_trim(Instant until = never);
  /// Runs such turns until stop().
  void run();
  /// Ends run() after the present turn.
  /// Threads: any.
  void stop() noexcept;
  /// Returns true after stop().
  /// Threads: any. acquire pairs with the release in stop(): a caller that reads true sees every
  /// write made before stop().
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  /// Returns true if a turn that does not wait would find work, or if the loop is stopping.
  /// Platforms that drive loops use it.
  bool has_work() const noexcept;

  /// Calls every DrainObserver once, in the order in which they were added. Later calls do
  /// nothing. Call it only on the thread of the loop.
  void drain();
  bool draining() const noexcept { return draining_; }
  /// Calls `observer` once in drain(), unless it is destroyed or unlinked first. A loop that
  /// already drains does not call it.
  void observe_drain(DrainObserver& observer) noexcept { drain_observers_.push_back(observer); }

  /// Keeps the listeners of this loop from accepting until resume_accepting(), because another
  /// process still accepts. Call it before the loop runs.
  void pause_accepting() noexcept { accepting_paused_ = true; }
  bool accepting_paused() const noexcept { return accepting_paused_; }
  /// Calls every AcceptObserver once, in the order in which they were added. Does nothing if
  /// accepting is not paused. Call it only on the thread of the loop.
  void resume_accepting();
  /// Calls `observer` once in resume_accepting(), unless it is destroyed or unlinked first. Call
  /// it only while accepting_paused().
  void observe_resume_accepting(AcceptObserver& observer) noexcept {
    accept_observers_.push_back(observer);
  }

  /// Calls `observer` once at the end of this turn, or of the next turn if no runnable runs now,
  /// unless it is destroyed or unlinked first. An observer that is added by an observer is called
  /// in the next turn.
  void observe_turn_end(TurnObserver& observer) noexcept { turn_observers_.push_back(observer); }

  const LoopCounters& counters() const noexcept { return counters_; }
  /// Returns the metrics of components on this core.
  Metrics& metrics() noexcept { return metrics_; }
  /// Returns the objects that higher floors keep on this core, such as their counters.
  /// Threads: any.
  loop::Slots& slots() noexcept { return slots_; }
  /// Returns the list in which a higher floor links the roots of its trees of tasks, for reports.
  /// Threads: the loop's.
  detail::List<detail::ListNode>& roots() noexcept { return roots_; }
  /// Returns the detector that finds the cause of a slow turn.
  loop::StallDetector& stall_detector() noexcept { return stall_detector_; }
  /// Returns true if the loop waits for an event. The answer may be outdated immediately.
  /// Threads: any.
  bool is_sleeping() const noexcept { return inbox_.sleeping(); }

 private:
  Loop(loop::Platform& platform, const Options& options);
  bool run_ready();
  void take_inbox() noexcept;
  void report_slow_turn(Duration took);
  void notify_turn_observers();
  void wait(Instant until);

  static constinit thread_local Loop* current_;
  loop::Platform& platform_;
  BlockPool blocks_;
  loop::DestroyQueue& destroy_queue_;  // valid until ~Loop() closes it
  loop::RunQueue ready_;
  loop::RunQueue next_turn_;  // joins the ready queue at the end of the turn
  loop::Inbox inbox_;
  Instant now_;
  static constexpr Duration trim_interval = std::chrono::milliseconds(250);
  Instant trim_at_ = never;   // when turn_and_trim() looks for free blocks; never: it has not run
  std::size_t unneeded_ = 0;  // bytes of free blocks that no turn has needed since the last time
  loop::TimerWheel timers_;
  std::unique_ptr<loop::LoopGroup> own_group_;
  loop::LoopGroup* group_;
  std::unique_ptr<loop::Backend> backend_;
  std::string backend_reason_;
  detail::List<DrainObserver> drain_observers_;
  detail::List<AcceptObserver> accept_observers_;
  detail::List<TurnObserver> turn_observers_;
  bool draining_ = false;
  bool accepting_paused_ = false;
  unsigned core_;
  std::atomic<bool> stopping_{false};
  std::atomic<unsigned> producers_in_flight_{0};  // threads in post_from_foreign_thread()
  loop::StallDetector stall_detector_;
  LoopCounters counters_;
  Metrics metrics_;
  loop::Slots slots_;
  detail::List<detail::ListNode> roots_;
};

}  // namespace weir
