// A Tracer makes the ids of spans, decides which traces are sampled, and exports the spans.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/loop/contract/detail/work_observer.hpp"
#include "weir/task/task.hpp"
#include "weir/telemetry/traces/attributes.hpp"
#include "weir/telemetry/traces/detail/export_queue.hpp"
#include "weir/telemetry/traces/span_data.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"
#include "weir/telemetry/traces/trace_options.hpp"

namespace weir {
class Scope;
}

namespace weir::telemetry {

class Exporter;

/// Counts of the spans, or of the log records, of a Tracer.
struct ExportCounts {
  std::uint64_t exported = 0;  ///< accepted by the collector
  std::uint64_t dropped = 0;   ///< not sent, because a queue or the memory was full, or at the end
  std::uint64_t failed = 0;    ///< sent without success
  std::uint64_t rejected = 0;  ///< not accepted by the collector, which has accepted others
  std::uint64_t queued = 0;    ///< not exported yet
};

/// Counts of a Tracer.
struct TraceReport {
  ExportCounts spans;
  ExportCounts logs;
  std::uint64_t requests = 0;  ///< requests to the collector
  std::uint64_t retries = 0;   ///< requests that were repetitions
};

/// A Tracer has the traces of a program. Spans that have ended wait in a bounded queue of their
/// core. A task on one core sends them in batches to a collector, by OTLP over HTTP. A collector
/// that is slow or not there has no effect but dropped spans, which are counted.
///
///     telemetry::Tracer tracer(platform, telemetry::TraceOptions::from_variables(variables));
///     routes.use(telemetry::trace_requests(tracer));
///     runtime.run_on_each_core([&](Scope& scope) -> Task<Result<>> {
///       tracer.start(scope);
///       co_return co_await http::serve(scope, routes, options);
///     });
///
/// Threads: any, except where a function documents other threads. The loops that use it belong to
/// one Runtime, because the number of a core selects the source of the ids.
/// Lifetime: outlives its spans and the loops that work on them; `clock` outlives the Tracer.
class Tracer final : WorkObserver {
 public:
  explicit Tracer(loop::PlatformClock& clock, TraceOptions options = {});
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  bool enabled() const noexcept { return options_.enabled; }
  const TraceOptions& options() const noexcept { return options_; }
  TraceReport report() const noexcept;

  /// Starts export_spans() in `scope` if no other core has done so.
  /// Threads: a loop's.
  void start(Scope& scope);
  /// Exports spans and log records until the loop drains, and then those that are left: until no
  /// span is open and all queues are empty, for at most TraceOptions::flush_timeout. It logs what
  /// it cannot export, at most once in a minute. If there is no memory, it drops and counts
  /// spans, and goes on. A turn of the loop encodes at most 32 spans. One task of a Tracer runs at
  /// a time; another one returns immediately.
  /// Cancel: drops and counts the spans that are left.
  Task<> export_spans();

  // Used by spans.

  /// Returns the span of a trace that begins here.
  ActiveSpan begin_trace() noexcept;
  /// Returns the span of a request with the span `parent` of another program. If it is not sampled,
  /// it has the ids of `parent`.
  ActiveSpan continue_trace(const TraceParent& parent) noexcept;
  /// Returns a span below `parent`, with its decision.
  ActiveSpan begin_child(const ActiveSpan& parent) noexcept;
  /// Counts a span that is open, so that a drain waits for it. record() or drop() follows.
  void open_span() noexcept;
  /// Queues a span that has ended.
  void record(std::unique_ptr<SpanData> span) noexcept;
  /// Counts a span that was lost, because there was no memory.
  void drop() noexcept;
  /// Queues a log record.
  void record(std::unique_ptr<LogData> log) noexcept;
  loop::PlatformClock& clock() noexcept { return clock_; }
  /// Returns the tracer that created a span; nullptr if the span is not sampled.
  static Tracer* of(const ActiveSpan& span) noexcept {
    return static_cast<Tracer*>(observer_of(span));
  }

 private:
  friend class Exporter;
  /// Makes ids from a sequence with a random start (splitmix64). One for each core, which alone
  /// uses it, and one for all other threads.
  struct alignas(64) IdSource {
    std::atomic<std::uint64_t> state{0};
    std::uint64_t key = 0;  // makes the trace ids of two sources with equal states differ
    std::atomic<std::int64_t> open{0};  // spans that were opened on this core less those that ended
  };
  /// Wakes the exporter.
  struct Wake : loop::Runnable {
    explicit Wake(Tracer& of) noexcept : loop::Runnable(&run), tracer(of) {}
    static void run(loop::Runnable& self);
    Tracer& tracer;
    std::atomic<bool> posted{false};
  };

  std::unique_ptr<Running> begin_work(const TraceContext* outer, const ActiveSpan& parent,
                                      const QueuedWork& work) noexcept override;
  static std::size_t lane() noexcept;
  std::pair<IdSource&, std::uint64_t> take_ids(std::uint64_t count) noexcept;
  void wake_exporter() noexcept;
  bool has_open_spans() const noexcept;

  loop::PlatformClock& clock_;
  const TraceOptions options_;
  Attributes resource_;
  using IdSources = std::array<IdSource, ExportQueue<SpanData>::lanes + 1>;
  const std::unique_ptr<IdSources> ids_;  // not a member: the frame of a coroutine is not aligned
  ExportQueue<SpanData> spans_;
  ExportQueue<LogData> logs_;
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<bool> started_{false};
  std::atomic<bool> ended_{false};  // the exporter has ended, and what the queues have is dropped
  // The exporter writes these.
  struct Counters {
    weir::detail::Counter exported;
    weir::detail::Counter dropped;
    weir::detail::Counter failed;
    weir::detail::Counter rejected;
  };
  Counters span_counters_;
  Counters log_counters_;
  weir::detail::Counter requests_;
  weir::detail::Counter retries_;

  std::mutex exporter_mutex_;  // guards exporter_, so that its loop lives while it is woken
  Exporter* exporter_ = nullptr;
  Wake wake_{*this};
};

}  // namespace weir::telemetry
