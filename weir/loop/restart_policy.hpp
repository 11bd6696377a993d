// When a worker process that has ended begins again, and when it does not any more.
#pragma once

#include <chrono>
#include <optional>

#include "weir/base/time.hpp"

namespace weir {

/// Of one worker. The pause is doubled with each end in a row; a life that was long enough ends the
/// row.
struct RestartPolicy {
  Duration pause_first = std::chrono::milliseconds(100);
  Duration pause_max = std::chrono::seconds(10);
  Duration stable_after = std::chrono::seconds(30);  ///< so long a life
  unsigned in_a_row_max = 10;                        ///< so many restarts in a row; then no more
};

/// One worker's lives. Threads: one at a time.
class Restarts {
 public:
  explicit Restarts(const RestartPolicy& policy) noexcept : policy_(policy) {}

  void began(Instant now) noexcept { began_ = now; }
  /// It has ended: when it begins again; nullopt: never.
  std::optional<Instant> ended(Instant now) noexcept;
  unsigned in_a_row() const noexcept { return in_a_row_; }

 private:
  RestartPolicy policy_;
  Instant began_{};
  unsigned in_a_row_ = 0;
  Duration pause_{};
};

}  // namespace weir
