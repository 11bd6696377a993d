// Checks the report of a runtime between turns of its cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "weir/runtime/report.hpp"

namespace weir {
class Runtime;
}

namespace weir::simulate {

struct RuntimeMonitorOptions {
  std::size_t connections_max = 0;  ///< largest number of connections; 0: any number
  unsigned turns = 16;              ///< turns between two checks
  /// Another rule for a report; returns the violation, or an empty text.
  std::function<std::string(const RuntimeReport&)> look = {};
};

/// The test requires that the limit of connections holds, also while connections are handed over.
/// Counters only grow, and what is in flight between cores arrives.
/// Threads: those of one World.
/// Lifetime: outlives the runtime.
class RuntimeMonitor {
 public:
  explicit RuntimeMonitor(const RuntimeMonitorOptions& options) : options_(options) {}

  /// Lets `watch` watch `runtime` during its lifetime, unless `watch` is nullptr. The monitor
  /// keeps the last report.
  class Attachment {
   public:
    Attachment(RuntimeMonitor* watch, const Runtime& runtime);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    RuntimeMonitor* watch_;
  };

  /// Returns the violation for sim::World::always(); empty if all rules held.
  std::string find_violation();
  std::uint64_t handed_over() const { return last_ ? last_->total().handed_over : 0; }

 private:
  std::string look();

  RuntimeMonitorOptions options_;
  const Runtime* runtime_ = nullptr;
  std::optional<RuntimeReport> last_;
  unsigned turns_ = 0;
};

}  // namespace weir::simulate
