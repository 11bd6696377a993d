// Collects the tasks of all cores for a report, and logs them on SIGQUIT.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/task_report.hpp"
#include "weir/task/detail/task_walk.hpp"

namespace weir {

/// The names of functions, by address. A look-up in the symbols of the program takes tens of
/// milliseconds.
/// Threads: any that may block.
class FunctionNames {
 public:
  /// Returns the names of this process, which are the same for all of its runtimes.
  static FunctionNames& of_process();
  using Map = std::unordered_map<const void*, std::string>;
  /// Returns the names of the functions that contain the `addresses`.
  /// Errors: throws std::bad_alloc.
  Map find(std::span<const void* const> addresses);

 private:
  static constexpr std::size_t names_max = 4096;  // more are looked up each time
  std::mutex mutex_;                              // guards the names
  Map names_;
};

/// A TaskCollection walks through the tasks of each loop on its own thread, in steps.
/// Threads: see the functions.
/// Lifetime: the group of the loops keeps it until all loops have finished with it, or have ended.
class TaskCollection {
 public:
  /// Starts the walks of all loops in the group of `loop`.
  /// Errors: throws std::bad_alloc.
  /// Threads: any, while the loops exist.
  static std::shared_ptr<TaskCollection> start(Loop& loop, std::size_t entries_max);
  TaskCollection(const TaskCollection&) = delete;
  TaskCollection& operator=(const TaskCollection&) = delete;
  explicit TaskCollection(std::span<Loop* const> loops, std::size_t entries_max);

  /// Returns true if all loops have finished.
  /// Threads: any. acquire pairs with the end of each walk.
  bool finished() const noexcept { return unfinished_.load(std::memory_order_acquire) == 0; }
  /// Makes the walks that have not begun end without effect.
  /// Threads: any.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }

  /// Notes which function the loops run that have not finished. The caller keeps the threads of
  /// the loops from ending meanwhile.
  /// Threads: any, not at the same time as report().
  void note_running();
  /// Makes the report of the loops that have finished. It looks up names, which may block.
  /// Threads: any, one at a time.
  TaskReport report(FunctionNames& names) const;

 private:
  /// The walk of one loop.
  class Part : public loop::Runnable, TurnObserver {
   public:
    Part(TaskCollection& of, Loop& loop) noexcept
        : loop::Runnable(&run), TurnObserver(&on_turn_end), collection_(of), loop_(loop) {}
    void post() { loop_.post_from_foreign_thread(*this); }
    Loop& loop() const noexcept { return loop_; }
    bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    const TaskSnapshot& snapshot() const noexcept { return snapshot_; }
    void note_running() noexcept {
      if (!finished()) running_ = loop_.stall_detector().activity();
    }
    const void* running() const noexcept { return running_; }

   private:
    static void run(loop::Runnable& self);
    static void on_turn_end(TurnObserver& self);
    bool step();

    TaskCollection& collection_;
    Loop& loop_;
    std::optional<TaskWalk> walk_;
    TaskSnapshot snapshot_;
    const void* running_ = nullptr;
    std::atomic<bool> finished_{false};
  };
  /// The collections of a group that have not finished.
  struct Unfinished {
    std::mutex mutex;  // guards the list
    std::vector<std::shared_ptr<TaskCollection>> all;
  };
  void on_part_finished();

  const std::size_t entries_max_;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::size_t> unfinished_;
  Unfinished* list_ = nullptr;
  std::vector<std::unique_ptr<Part>> parts_;
};

/// A TaskDump logs the tasks of all cores when request() is called. It works while some cores are
/// stuck and while the SharedPool is full. The destructor ends a dump after its present line.
/// Threads: request() and the destructor: that of Runtime::run().
/// Lifetime: ends before the cores of the runtime.
class Runtime::TaskDump final : loop::ThreadWork {
 public:
  explicit TaskDump(Runtime& runtime) noexcept : runtime_(runtime) {}
  TaskDump(const TaskDump&) = delete;
  TaskDump& operator=(const TaskDump&) = delete;
  ~TaskDump();

  /// Logs the tasks soon. Does nothing more if a dump is being made.
  void request();

 private:
  static constexpr Duration timeout = std::chrono::seconds(1);
  static constexpr std::size_t lines_max = 2000;
  static constexpr std::size_t entries_max = 100'000;  // of all cores together

  std::optional<Instant> step() noexcept override;
  void begin();
  void end();
  void log(std::string_view text) const;

  Runtime& runtime_;
  std::atomic<bool> requested_{false};
  std::atomic<bool> ending_{false};  // the thread logs no further line
  // Used by the thread only.
  std::shared_ptr<TaskCollection> collection_;
  Instant deadline_ = never;
  std::unique_ptr<loop::PlatformThread> thread_;  // ends first
};

}  // namespace weir
