// StartChecks: the log lines at the start of a runtime about what its machine takes from it.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/checks/machine_checks.hpp"

namespace weir {
class Loop;
}

namespace weir::checks {

/// StartChecks logs what the machine takes from a runtime and its servers: one line for each check,
/// whatever the number of servers. It exists in the group of a runtime that announces itself on the
/// operating system, and nowhere else: a simulated machine is always well.
/// Threads: any.
/// Lifetime: `platform` outlives it.
class StartChecks {
 public:
  StartChecks(loop::PlatformLog& platform, MachineFacts facts);

  /// Returns the object of the runtime of `loop`, or nullptr.
  static StartChecks* find(Loop& loop) noexcept;

  /// Logs the findings for these demands, except for notes and for checks that have a line.
  void log(const Demands& demands);
  /// Logs the number of connections that servers without a limit of their own have together. Only
  /// the first call logs it: the number follows from the descriptors.
  void log_default_connections(std::size_t connections);
  /// Logs a line if no descriptor is left for a connection. It is called when the first of `loops`
  /// loops listens on an address.
  void log_lack_of_descriptors(std::size_t loops);

  /// Returns the findings that have a line, in the order of the lines.
  /// Errors: throws std::bad_alloc.
  std::vector<Finding> logged() const;

  const MachineFacts& facts() const noexcept { return facts_; }

 private:
  loop::PlatformLog& platform_;
  const MachineFacts facts_;
  mutable std::mutex mutex_;        // guards the next members
  std::vector<Finding> logged_;     // at most one of each check
  bool names_connections_ = false;  // true after log_default_connections()
};

}  // namespace weir::checks
