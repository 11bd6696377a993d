// What is counted on a core beside its loop, and can be read while the core runs.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/list.hpp"
#include "weir/base/time.hpp"
#include "weir/os/thread_probe.hpp"

namespace weir {

/// One number and what it counts, such as {"http requests", 12}.
struct Figure {
  enum class Kind : std::uint8_t {
    total,  ///< of all there has ever been; it stays when its source goes
    level,  ///< of what there is now
  };
  std::string name;
  std::uint64_t value = 0;
  Kind kind = Kind::total;
};

/// Adds up what has the same name.
class FigureSum {
 public:
  void add(const Figure& figure);
  const std::vector<Figure>& figures() const noexcept { return figures_; }

 private:
  std::vector<Figure> figures_;  // in the order in which they came
};

/// Somebody who counts on a core: a server, a pool, an application. It is in the core's Figures
/// while it is linked, and must be linked and unlinked by those.
class FigureSource : public ListNode {
 public:
  /// Adds what it has to `sum`. On any thread: it reads nothing but Counters and constants, and
  /// takes no lock.
  virtual void tell(FigureSum& sum) const = 0;

 protected:
  ~FigureSource() = default;
};

/// Of one core. Threads: any, where nothing else is said.
class Figures {
 public:
  void add(FigureSource& source);
  /// Its totals are kept.
  void remove(FigureSource& source);
  /// Of all sources, also those that have gone.
  FigureSum read() const;

  /// The thread that runs the loop says so, and when it does no more.
  void thread_begins();
  void thread_ends();
  /// What threads have used for the loop, exact to the moment; 0 where it has none of its own, as
  /// in a simulation.
  Duration cpu_time() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  List<FigureSource> sources_;
  FigureSum kept_;
  std::optional<os::ThreadProbe> thread_;
  Duration cpu_time_before_{};  // of the present thread
  Duration cpu_time_kept_{};    // of those that have ended
};

}  // namespace weir
