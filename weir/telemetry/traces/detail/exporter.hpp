// Sends the spans and log records of a Tracer to its collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/http/client/client.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// The task of Tracer::export_spans(). It is active if no other one of its tracer exists.
/// Threads: its loop's.
class Exporter : DrainObserver, loop::Timer {
 public:
  Exporter(Tracer& tracer, const Context& context);
  /// Drops and counts what was not exported.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  bool is_active() const noexcept { return active_; }
  Loop& loop() const noexcept { return loop_; }
  /// Ends a wait for the next batch.
  void wake() { event_.set(); }
  /// Exports until the end; see Tracer::export_spans().
  /// Cancel: ends the request to the collector; the destructor drops the rest.
  Task<> run();

 private:
  /// The items of a queue that were taken and not exported.
  template <class T>
  struct Pending {
    T* first = nullptr;
    T* last = nullptr;
  };
  /// A batch as the body of a request, and the number of its items.
  struct Batch {
    std::string_view url;
    std::string body;
    std::size_t count = 0;
    Tracer::Counters* counters = nullptr;
  };
  enum class Sent : std::uint8_t { done, retry, failed };

  Task<> export_until_end();
  Task<> wait(Duration length);
  Task<> export_pending();
  Task<> send(Batch batch);
  Task<Sent> attempt(const Batch& batch, Duration& retry_after);
  Task<> read_response(http::ClientResponse& response, const Batch& batch);
  Duration backoff(unsigned attempt);
  template <class T>
  void collect(ExportQueue<T>& queue, Pending<T>& pending) noexcept;
  template <class T, class Encode>
  Batch next_batch(ExportQueue<T>& queue, Pending<T>& pending, std::string_view url,
                   Tracer::Counters& counters, Encode encode);
  template <class T>
  void drop(ExportQueue<T>& queue, Pending<T>& pending, Tracer::Counters& counters) noexcept;
  void report(std::string_view url, std::string_view what);

  static void on_drain(DrainObserver& self);
  static void on_flush_timeout(loop::Timer& self);

  Tracer& tracer_;
  const TraceOptions& options_;
  Loop& loop_;
  CancelSource cancel_;
  ManualResetEvent event_;
  http::Client client_;
  Pending<SpanData> spans_;
  Pending<LogData> logs_;
  bool active_ = false;
  Instant reported_ = Instant::min();
  std::uint64_t unreported_ = 0;  // failures since the last line of the log
};

}  // namespace weir::telemetry
