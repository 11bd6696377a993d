// Looks at a runtime's report at any time, between turns of its cores.
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

struct RuntimeWatchOptions {
  std::size_t connections_max = 0;  ///< 0: any number
  unsigned turns = 16;              ///< after so many it looks again
  /// What else must hold of a report; gives what does not.
  std::function<std::string(const RuntimeReport&)> look = {};
};

/// What must hold: the limit of connections, also while connections are handed over; what is
/// counted only grows; what is on its way between cores arrives.
/// Threads: those of one World. Lifetime: outlives the runtime.
class RuntimeWatch {
 public:
  explicit RuntimeWatch(const RuntimeWatchOptions& options) : options_(options) {}

  /// While it is there, `watch`, if any, sees `runtime`; at the end it keeps the last report.
  class Watching {
   public:
    Watching(RuntimeWatch* watch, const Runtime& runtime);
    ~Watching();
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

   private:
    RuntimeWatch* watch_;
  };

  /// For World::always(); empty if all is well.
  std::string find_fault();
  std::uint64_t handed_over() const { return last_ ? last_->total().handed_over : 0; }

 private:
  std::string look();

  RuntimeWatchOptions options_;
  const Runtime* runtime_ = nullptr;
  std::optional<RuntimeReport> last_;
  unsigned turns_ = 0;
};

}  // namespace weir::simulate
