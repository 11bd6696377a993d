// The event loop of one thread.
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
#include "weir/loop/figures.hpp"
#include "weir/loop/homecoming.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/detail/inbox.hpp"
#include "weir/loop/loop_group.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/loop/turn_watch.hpp"

namespace weir {

/// Called once when its loop is asked to drain: to take no new work and finish what it has.
class DrainWatcher : public ListNode {
 public:
  using Function = void (*)(DrainWatcher&);
  explicit DrainWatcher(Function asked) noexcept : asked_(asked) {}

 private:
  friend class Loop;
  Function asked_;
};

/// Called once when its loop admits: from then on its listeners may accept; see Loop::hold().
class AdmissionWatcher : public ListNode {
 public:
  using Function = void (*)(AdmissionWatcher&);
  explicit AdmissionWatcher(Function admitted) noexcept : admitted_(admitted) {}

 private:
  friend class Loop;
  Function admitted_;
};

/// Of one loop; its thread writes them. All but `connections` only grow.
struct LoopCounters {
  Counter turns;
  Counter slow_turns;  ///< that ran for longer than Loop::slow_turn; see SlowTurns
  Counter run_time;    ///< nanoseconds for which runnables ran
  Counter wait_time;   ///< nanoseconds in the backend: submitting, looking and sleeping
  Counter ran;         ///< runnables run
  Counter received;    ///< runnables that came through the inbox
  Counter inbox_most;  ///< as many have waited there at once, when the loop looked
  /// Exceptions of tasks whose outcome nobody wanted any more (the losers of a race).
  Counter exceptions_dropped;
  /// Accepted connections that were closed because the backend could not take them over.
  Counter connections_dropped;
  Counter values_missed;  ///< by subscribers of broadcasts here, who see it when they receive again
  Counter connections;    ///< streams that are open: accepted here or handed over, and connected
  Counter handed_over;    ///< connections accepted here that were given to other cores; see Balance
  Counter taken_over;     ///< connections that other cores have accepted
};

/// One thread's event loop. A turn: run what is ready, take the inbox, submit and wait until the
/// next timer or completion, fire timers. It blocks nowhere but in the backend's wait.
/// Threads: its own, but for post(), post_from_outside(), stop(), counters() and sleeps().
/// Lifetime: outlives every operation, timer and socket on it.
class Loop {
 public:
  static constexpr Duration slow_turn = std::chrono::milliseconds(50);

  struct Options {
    BackendChoice backend = BackendChoice::automatic;
    unsigned core = 0;           ///< its index among the loops of a runtime
    LoopGroup* group = nullptr;  ///< what it shares with them; nullptr: a group of its own
  };
  /// Errors: those of Host::make_backend().
  static Result<std::unique_ptr<Loop>> make(Host& host, const Options& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The loop whose turn this thread is in, or nullptr. For assertions, logs and memory only; and
  /// for a Homecoming::Guest, which a destructor lets go: no context reaches that.
  static Loop* current() noexcept { return current_; }

  /// The time at which this turn started or, inside it, was last looked up.
  Instant now() const noexcept { return now_; }
  Host& host() noexcept { return host_; }
  Backend& backend() noexcept { return *backend_; }
  const std::string& backend_reason() const noexcept { return backend_reason_; }
  TimerWheel& timers() noexcept { return timers_; }
  BlockPool& blocks() noexcept { return blocks_; }
  LoopGroup& group() noexcept { return *group_; }
  /// Where what belongs to this loop comes back to, from any thread.
  Homecoming& homecoming() const noexcept { return homecoming_; }
  unsigned core() const noexcept { return core_; }

  /// Queues it behind everything ready on this loop. Its own thread only.
  void ready(Runnable& runnable) noexcept { ready_.push(runnable); }
  /// Queues it from any thread; wakes the loop if it sleeps.
  void post(Runnable& runnable) noexcept {
    if (inbox_.push(runnable)) backend_->wake();
  }
  /// The same from a thread that is none of this runtime's loops, and so may still be in here when
  /// what it has brought is done and the loop goes: the destructor waits for it.
  void post_from_outside(Runnable& runnable) noexcept {
    // relaxed: the push publishes it, before anybody can want to destroy the loop.
    outsiders_.fetch_add(1, std::memory_order_relaxed);
    post(runnable);
    // release pairs with the destructor's acquire.
    outsiders_.fetch_sub(1, std::memory_order_release);
  }

  /// How many of those have not been taken yet. Any thread.
  std::uint64_t inbox_depth() const noexcept {
    // Each was counted before it came; but the two are read one by one, and in no order.
    const std::uint64_t received = counters_.received.value();
    const std::uint64_t pushed = inbox_.pushed();
    return pushed > received ? pushed - received : 0;
  }

  /// One turn that waits at most until `until`. Returns whether anything ran or fired.
  bool turn(Instant until = never);
  /// Turns until stop().
  void run();
  /// Ends run() after the present turn. Any thread.
  void stop() noexcept;
  /// acquire, with the release in stop(): who sees it sees what came before it was stopped.
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  /// Whether a turn that does not wait would find something to do (for hosts that drive loops).
  bool has_work() const noexcept;

  /// Tells every watcher, once, in the order in which they came. Its own thread only.
  void drain();
  bool draining() const noexcept { return draining_; }
  /// Calls it on drain(), until it is destroyed or unlinked. Not called if already draining.
  void watch_drain(DrainWatcher& watcher) noexcept { drain_watchers_.push_back(watcher); }

  /// Before it runs: its listeners accept nobody before admit(), for another process still does.
  void hold() noexcept { holding_ = true; }
  bool holding() const noexcept { return holding_; }
  /// Tells every watcher, once. Its own thread only.
  void admit();
  /// Calls it on admit(), until it is destroyed or unlinked. Only while holding.
  void watch_admission(AdmissionWatcher& watcher) noexcept {
    admission_watchers_.push_back(watcher);
  }

  const LoopCounters& counters() const noexcept { return counters_; }
  /// What others count on this core.
  Figures& figures() noexcept { return figures_; }
  /// What makes this turn take long.
  TurnWatch& watch() noexcept { return watch_; }
  /// Whether it waits for something to happen. Any thread; a moment later it may be otherwise.
  bool sleeps() const noexcept { return inbox_.sleeping(); }
  /// For what runs tasks: see LoopCounters::exceptions_dropped.
  void count_dropped_exception() noexcept { counters_.exceptions_dropped.add(); }
  /// For listeners: see LoopCounters::connections_dropped.
  void count_dropped_connection() noexcept { counters_.connections_dropped.add(); }
  /// For broadcasts: see LoopCounters::values_missed.
  void count_missed(std::uint64_t values) noexcept { counters_.values_missed.add(values); }
  void count_handed_over() noexcept { counters_.handed_over.add(); }
  void count_taken_over() noexcept { counters_.taken_over.add(); }
  /// For streams: see LoopCounters::connections.
  void count_connection_opened() noexcept { counters_.connections.add(); }
  void count_connection_closed() noexcept { counters_.connections.subtract(); }

 private:
  Loop(Host& host, const Options& options);
  bool run_ready();
  void take_inbox() noexcept;
  void report_slow_turn(Duration took);
  void wait(Instant until);

  static constinit thread_local Loop* current_;
  Host& host_;
  BlockPool blocks_;
  Homecoming& homecoming_;  // until ~Loop() closes it
  RunQueue ready_;
  Inbox inbox_;
  Instant now_;
  TimerWheel timers_;
  std::unique_ptr<LoopGroup> own_group_;
  LoopGroup* group_;
  std::unique_ptr<Backend> backend_;
  std::string backend_reason_;
  List<DrainWatcher> drain_watchers_;
  List<AdmissionWatcher> admission_watchers_;
  bool draining_ = false;
  bool holding_ = false;
  unsigned core_;
  std::atomic<bool> stopping_{false};
  std::atomic<unsigned> outsiders_{0};  // inside post_from_outside()
  TurnWatch watch_;
  LoopCounters counters_;
  Figures figures_;
};

}  // namespace weir
