// Reports of the tasks of a runtime: which task waits for what, since when, for which request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// A TaskEntry is one suspended task, or several equal ones: tasks that wait for the same thing
/// below the same task and for the same request.
struct TaskEntry {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  unsigned core = 0;
  std::string function;  ///< the coroutine: "serve_order"; its address if it has no symbol
  /// The thing that it waits for: "sleep", "read", "on_core", "pool", or a type such as
  /// "weir::Mutex::Lock". Empty for a task that waits for the tasks below it.
  std::string awaits = {};
  /// The thing that runs it: "scope" for a spawned task, "request", "WebSocket", "service",
  /// "on_core" for a call from another core, "core". Empty if its parent awaits it with co_await.
  std::string run_by = {};
  /// Time since the task was made, to 17 ms: that of the oldest one of several. Negative if
  /// unknown, since the compiler has put its frame into that of another task. The present wait
  /// began at this time or later.
  Duration age{-1};
  std::string trace_kind = {};  ///< the work that it is for: "request"; see TraceContext
  std::string trace_id = {};    ///< id of that work, as in logs
  std::string trace_name = {};  ///< name of that work: "GET /users/{id}"
  std::size_t parent = none;    ///< index of the task that waits for it; smaller than its own
  std::uint64_t count = 1;      ///< number of equal tasks
  /// True if the entry stands for tasks whose parents are left out, because there were too many.
  bool collected = false;
};

/// The part of a TaskReport about one core.
struct TaskCore {
  unsigned core = 0;
  bool answered = false;       ///< false if it ran something else for the whole time
  bool complete = false;       ///< false if it has not visited all tasks
  std::uint64_t waits = 0;     ///< tasks that wait for something themselves
  std::uint64_t left_out = 0;  ///< those of them without an entry
  /// Function that a core runs which has not answered. Empty for other cores.
  std::string runs = {};
};

/// The options of report_tasks().
struct TaskReportOptions {
  std::size_t entries_max = 10'000;            ///< entries per core
  Duration timeout = std::chrono::seconds(1);  ///< for which a core may not answer
};

/// The suspended tasks of a runtime. A task stands behind the task that waits for it.
///
/// The report finds tasks by their cancellation, and shows all tasks above a task that it finds. It
/// does not find tasks that are ready to run. It does not find tasks whose wait no cancellation
/// ends, such as shielded ones. Tasks begin and end while the cores are read one step at a
/// time, so the parts of a report are of slightly different moments.
struct TaskReport {
  std::vector<TaskEntry> entries;  ///< by core; a parent before its children
  std::vector<TaskCore> cores;

  /// Returns the report as a tree for people, with two spaces for each level. Equal branches are
  /// one, with their number: "9,998 x idle". Each line ends with a newline. The call takes about
  /// one microsecond for each entry.
  std::string to_text() const;
};

/// Reports the tasks on the cores of this runtime. Each core reads its tasks in steps of at most
/// 100 microseconds, between which it does its other work. A thread of the SharedPool looks up the
/// names of functions.
/// Returns: the report. A core that has not answered before the timeout is named in it.
/// Errors: Errc::cancelled; std::bad_alloc is thrown.
/// Cancel: ends the wait for the cores. Returns when a running look-up of names has ended.
Task<Result<TaskReport>> report_tasks(TaskReportOptions options = {});

}  // namespace weir
