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
#include "weir/telemetry/traces/detail/otlp.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// The task of Tracer::export_spans(). It is active if no other one of its tracer exists.
/// Threads: its loop's.
class Exporter : DrainObserver, loop::Timer {
 public:
  static constexpr std::size_t items_per_turn = 32;

  Exporter(Tracer& tracer, const Context& context);
  /// Drops and counts what was not exported.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  bool is_active() const noexcept { return active_; }
  Loop& loop() const noexcept { return loop_; }
  /// Ends a wait for the next batch.
  void wake() { event_.set(); }
  /// Exports until the end; see Tracer::export_spans(). A turn of the loop encodes or sorts at most
  /// items_per_turn items. The export drops and counts the items that it has no memory for.
  /// Cancel: ends the request to the collector; the destructor drops the rest.
  Task<> run();

 private:
  /// The items of one signal on their way to the collector.
  template <class T>
  struct Outgoing {
    ExportQueue<T>& queue;
    std::string_view url;
    const TraceOptions::Headers& headers;
    Tracer::Counters& counters;
    OtlpRequest request;  // encoded items
    T* newest = nullptr;  // taken items, the newest first
    T* oldest = nullptr;  // taken items in their order
  };
  /// The body of a request, and the number of its items.
  struct Batch {
    std::string_view url;
    const TraceOptions::Headers& headers;
    Tracer::Counters& counters;
    std::size_t count = 0;
    std::string body = {};
    bool gzip = false;
    bool counted = false;  // the outcome
  };
  enum class Sent : std::uint8_t { done, retry, failed };
  struct WaitTimer : loop::Timer {
    explicit WaitTimer(Exporter& of) noexcept : loop::Timer(&fire), exporter(of) {}
    static void fire(loop::Timer& self) { static_cast<WaitTimer&>(self).exporter.wake(); }
    Exporter& exporter;
  };

  Task<> export_until_end();
  void begin_wait(Duration length) noexcept;
  void end_wait() noexcept;
  template <class T>
  Task<> export_queue(Outgoing<T>& out);
  template <class T>
  Task<> send_request(Outgoing<T>& out);
  template <class T>
  void encode(Outgoing<T>& out, T* item) noexcept;
  template <class T>
  void drop(Outgoing<T>& out) noexcept;
  bool ends_turn(std::size_t bytes) noexcept;
  Task<> send(Batch& batch);
  Task<> compress(Batch& batch);
  Task<Sent> attempt(const Batch& batch, Duration& retry_after);
  Task<> count_accepted(http::ClientResponse& response, const Batch& batch);
  Duration backoff(unsigned attempt);
  void report(std::string_view url, std::string_view what) noexcept;

  static void on_drain(DrainObserver& self);
  static void on_flush_timeout(loop::Timer& self);

  Tracer& tracer_;
  const TraceOptions& options_;
  Loop& loop_;
  CancelSource cancel_;
  ManualResetEvent event_;
  WaitTimer wait_timer_{*this};
  http::Client client_;
  Outgoing<SpanData> spans_;
  Outgoing<LogData> logs_;
  bool active_ = false;
  std::size_t items_of_turn_ = 0;
  std::size_t bytes_of_turn_ = 0;
  Instant reported_ = Instant::min();
  std::uint64_t unreported_ = 0;  // failures since the last line of the log
};

}  // namespace weir::telemetry
