// Metrics that components count on a core. They can be read while the core runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"

namespace weir {

/// The standard description of a metric for exporters. Names and units are those of OpenTelemetry's
/// semantic conventions, where these have one.
/// Lifetime: constant; the views too.
struct MetricInfo {
  std::string_view name;              ///< such as "http.server.active_requests"
  std::string_view unit = {};         ///< in UCUM: "s", "By", "{connection}"
  std::string_view help = {};         ///< one sentence
  std::string_view label = {};        ///< the name of the attribute that differs; empty if none
  std::string_view label_value = {};  ///< its value
  double scale = 1;                   ///< factor of the value in `unit`
};

/// A named number, such as {"look-ups", 12}.
struct Metric {
  enum class Kind : std::uint8_t {
    counter,  ///< a total; it is retained when its source is destroyed
    gauge,    ///< a present value; it disappears with its source
  };
  std::string name;
  std::uint64_t value = 0;
  Kind kind = Kind::counter;
  const MetricInfo* info = nullptr;  ///< for exporters; nullptr: they export the name
};

/// A MetricSnapshot collects metrics and adds up those with the same name.
class MetricSnapshot {
 public:
  void add(const Metric& metric);
  const std::vector<Metric>& metrics() const noexcept { return metrics_; }

 private:
  std::vector<Metric> metrics_;  // in the order of the first add()
};

/// A component with counters for one core.
/// Threads: attach() and detach() on one thread at a time; collect() on any.
/// Lifetime: the source and its Metrics may be destroyed in either order.
class MetricSource : public detail::ListNode {
 public:
  /// Adds the metrics of this source to `sum`. Any thread may call it. It reads only Counters and
  /// constants and takes no lock.
  virtual void collect(MetricSnapshot& sum) const = 0;

  struct Registry;
  /// Moves this source to the registry `sources`. Metrics::add() calls it.
  void attach(const std::shared_ptr<Registry>& sources) noexcept;

 protected:
  ~MetricSource();
  /// Removes this source from its registry, which retains its counters. The destructor of the
  /// derived class calls it, because collect() must still be callable. Does nothing if the source
  /// is in no registry.
  void detach() noexcept;

 private:
  std::shared_ptr<Registry> registry_;  // registry of the Metrics that it was added to
};

/// The metrics of one core.
/// Threads: any, except where a function documents other threads.
class Metrics {
 public:
  Metrics();
  /// Adds `source` here and removes it from any other Metrics, which retains its counters. Does
  /// nothing if `source` is here already.
  void add(MetricSource& source) noexcept { source.attach(registry_); }
  /// Returns the sums over all sources, including the counters of destroyed sources.
  MetricSnapshot read() const;

  /// The thread that runs the loop calls these when it starts to run the loop and when it ends.
  void on_thread_start();
  void on_thread_end();
  /// Returns the CPU time that threads have used to run the loop, up to this moment. It is 0 if
  /// the loop has no thread of its own, as in a simulation.
  Duration cpu_time() const;

 private:
  const std::shared_ptr<MetricSource::Registry> registry_;
  mutable std::mutex mutex_;  // guards the members below
  std::optional<os::ThreadProbe> thread_;
  Duration thread_start_cpu_time_{};   // CPU time of `thread_` at on_thread_start()
  Duration ended_threads_cpu_time_{};  // total of the threads that have ended
};

}  // namespace weir
