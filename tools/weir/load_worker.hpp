// One loop's share of a load: its connections, its measured time and its counts.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "tools/weir/load.hpp"
#include "tools/weir/load_connection.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"

namespace weir::bench {

/// A LoadWorker runs the connections of one loop and counts their results.
/// Threads: its loop.
class LoadWorker : DrainObserver {
 public:
  LoadWorker(Loop& loop, LoadPlan plan);

  /// Opens all connections, then measures. Returns when every request has been answered or given
  /// up.
  /// Cancel: like generate_load().
  Task<> run();
  LoadResult take_result();

  // Interface for its connections.

  const LoadPlan& plan() const noexcept { return plan_; }
  /// Returns the connector of connection `index`; nullptr: the load has no TLS.
  tls::Connector* connector(unsigned index) noexcept {
    return connectors_.empty() ? nullptr : &connectors_[index % connectors_.size()];
  }
  Instant now() noexcept { return loop_.platform().now(); }
  /// Returns the time at which this turn of the loop began.
  Instant loop_time() const noexcept { return loop_.now(); }
  /// Returns true if no more requests are to be sent.
  bool is_done() const noexcept { return done_ || left_ == 0; }
  /// Takes at most `wanted` requests from those that are left.
  /// Returns: the number of requests that may be sent now; 0 if the load is over.
  unsigned acquire_requests(unsigned wanted) noexcept;
  /// Ends the load after its caller has cancelled it. Requests in progress count as unanswered.
  void on_cancelled() {
    plan_.abandon = false;
    finish();
  }
  /// Counts a request that could not be sent, if the plan has a number of requests.
  void count_lost_request() noexcept {
    // A connection per request without a fixed rate has taken the request already.
    const bool taken = plan_.new_connections && interval_ == Duration::zero();
    if (plan_.requests) result_.unanswered += taken ? 1 : acquire_requests(1);
  }
  std::string_view requests(unsigned count) const noexcept {
    return std::string_view(batch_).substr(0, count * plan_.request.size());
  }
  void record(Duration latency, unsigned times) noexcept {
    const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, latency.count()));
    result_.latency.record(nanoseconds, times);
    (measuring_ ? result_.responses : result_.late) += times;
  }
  /// Records requests that got no response at a fixed rate. Each has waited for at least
  /// `waited`.
  void record_lost(Duration waited, std::uint64_t times) noexcept {
    result_.latency.record(static_cast<std::uint64_t>(std::max<std::int64_t>(0, waited.count())),
                           times);
  }
  /// Returns when connection `index` sends its first request at a fixed rate. It sends the next
  /// ones at steps of interval().
  Instant first_send_time(unsigned index) const noexcept;
  Duration interval() const noexcept { return interval_; }
  Instant end() const noexcept { return end_; }
  Instant measurement_begin() const noexcept { return begin_; }
  LoadResult& result() noexcept { return result_; }
  ResponseReference& reference() noexcept { return reference_; }

 private:
  struct CallbackTimer : loop::Timer {
    CallbackTimer(LoadWorker& worker, void (LoadWorker::*action)()) noexcept
        : loop::Timer(&fired), worker(worker), action(action) {}
    static void fired(loop::Timer& self) {
      auto& timer = static_cast<CallbackTimer&>(self);
      (timer.worker.*timer.action)();
    }
    LoadWorker& worker;
    void (LoadWorker::*action)();
  };

  static Task<> open_all(Scope& scope, LoadWorker& worker);
  static Task<> open_every(LoadWorker& worker, std::size_t first, std::size_t step);
  static Task<> run_all(Scope& scope, LoadWorker& worker);
  void start_clock(Instant start);
  /// Begins the measured time, and resets the counts of the warm-up.
  void begin();
  /// Ends the measured time. Requests in progress are still awaited, unless the plan abandons
  /// them.
  void finish();
  void check_timeouts();
  std::optional<Duration> server_cpu_time() const {
    return plan_.server_cpu_time ? plan_.server_cpu_time() : std::nullopt;
  }

  Loop& loop_;
  LoadPlan plan_;
  std::string batch_;
  ResponseReference reference_;
  // One for each connection if sessions are resumed: a connector keeps one ticket of a server.
  std::deque<tls::Connector> connectors_;
  std::deque<LoadConnection> connections_;
  LoadResult result_;
  std::uint64_t left_;  // requests that may still be sent
  Duration interval_{};
  Instant start_{};  // start of the load
  Instant begin_{};  // start of the measured time
  Instant end_ = never;
  std::optional<Duration> server_cpu_time_at_begin_;
  bool measuring_ = false;
  bool done_ = false;
  CallbackTimer begin_timer_{*this, &LoadWorker::begin};
  CallbackTimer end_timer_{*this, &LoadWorker::finish};
  CallbackTimer timeout_timer_{*this, &LoadWorker::check_timeouts};
};

}  // namespace weir::bench
