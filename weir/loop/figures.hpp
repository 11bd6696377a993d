// What is counted on a core beside its loop, and can be read while the core runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"

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

/// Somebody who counts on a core: a server, a pool, an application. Threads: added and leaving on
/// one at a time. Lifetime: it and the Figures may go in any order.
class FigureSource : public ListNode {
 public:
  /// Adds what it has to `sum`. On any thread: it reads nothing but Counters and constants, and
  /// takes no lock.
  virtual void tell(FigureSum& sum) const = 0;

  struct Sources;
  /// For Figures::add(): from now on it is among those.
  void join(const std::shared_ptr<Sources>& sources) noexcept;

 protected:
  ~FigureSource();
  /// Its totals are kept. For a destructor, where tell() may still be called; and may be asked
  /// for although it is nowhere.
  void leave() noexcept;

 private:
  std::shared_ptr<Sources> among_;  // those of the Figures that it is in
};

/// Of one core. Threads: any, where nothing else is said.
class Figures {
 public:
  Figures();
  /// From now on it is told of here, and nowhere else; it may be here already.
  void add(FigureSource& source) noexcept { source.join(sources_); }
  /// Of all sources, also those that have gone.
  FigureSum read() const;

  /// The thread that runs the loop says so, and when it does no more.
  void thread_begins();
  void thread_ends();
  /// What threads have used for the loop, exact to the moment; 0 where it has none of its own, as
  /// in a simulation.
  Duration cpu_time() const;

 private:
  const std::shared_ptr<FigureSource::Sources> sources_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<os::ThreadProbe> thread_;
  Duration cpu_time_before_{};  // of the present thread
  Duration cpu_time_kept_{};    // of those that have ended
};

}  // namespace weir
