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
  /// Ends the waits for the next batches.
  void wake() {
    spans_.wait.end_early();
    logs_.wait.end_early();
  }
  /// Exports until the end; see Tracer::export_spans(). A turn of the loop encodes or sorts at most
  /// items_per_turn items. The export drops and counts the items that it has no memory for.
  /// Cancel: ends the request to the collector; the destructor drops the rest.
  Task<> run();

 private:
  /// A wait of one signal, such as for the next batch. It allocates nothing, so that the export
  /// goes on when there is no memory.
  class Wait : loop::Timer {
   public:
    explicit Wait(Loop& loop) noexcept : loop::Timer(&fire), loop_(loop) {}
    ~Wait() { loop::Timer::cancel(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    void begin(Duration length) noexcept {
      loop_.timers().start(*this, after(loop_.platform().now(), length));
    }
    ManualResetEvent& event() noexcept { return event_; }
    void end() noexcept {
      loop::Timer::cancel();
      event_.reset();
    }
    void end_early() { event_.set(); }

   private:
    static void fire(loop::Timer& self) { static_cast<Wait&>(self).end_early(); }
    Loop& loop_;
    ManualResetEvent event_;
  };
  /// The items of one signal on their way to the collector. The signals have tasks of their own, so
  /// that a collector that does not answer delays only its own signal.
  template <class T>
  struct Outgoing {
    ExportQueue<T>& queue;
    std::string_view url;
    const TraceOptions::Headers& headers;
    Tracer::Counters& counters;
    OtlpRequest request;  // encoded items
    Wait wait;
    T* newest = nullptr;  // taken items, the newest first
    T* oldest = nullptr;  // taken items in their order
  };
  /// The body of a request, and the number of its items.
  struct Batch {
    std::string_view url;
    const TraceOptions::Headers& headers;
    Tracer::Counters& counters;
    Wait& wait;
    std::size_t count = 0;
    std::string body = {};
    bool gzip = false;
    bool counted = false;  // the outcome
  };
  enum class Sent : std::uint8_t { done, retry, failed };
  template <class T>
  Task<> export_until_end(Outgoing<T>& out);
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
