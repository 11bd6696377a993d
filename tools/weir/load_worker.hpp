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

/// Threads: one loop's.
class LoadWorker : DrainWatcher {
 public:
  LoadWorker(Loop& loop, LoadPlan plan);

  /// Opens all connections, then measures; returns when every request has been answered or given
  /// up.
  /// Cancel: as put_load().
  Task<> run();
  LoadResult take_result();

  // For its connections.

  const LoadPlan& plan() const noexcept { return plan_; }
  Instant now() noexcept { return loop_.host().now(); }
  /// The same, as of the beginning of this turn.
  Instant loop_time() const noexcept { return loop_.now(); }
  /// Nothing more is to be sent.
  bool over() const noexcept { return over_ || left_ == 0; }
  /// How many of `wanted` requests may be sent now; 0: none, it is over.
  unsigned take(unsigned wanted) noexcept;
  /// One that could not even be sent: of a given number, it is spent all the same.
  void lose_one() noexcept {
    if (plan_.requests) result_.unanswered += plan_.new_connections ? 1 : take(1);
  }
  std::string_view requests(unsigned count) const noexcept {
    return std::string_view(batch_).substr(0, count * plan_.request.size());
  }
  void record(Duration latency, unsigned times) noexcept {
    const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, latency.count()));
    result_.latency.record(nanoseconds, times);
    (measuring_ ? result_.responses : result_.late) += times;
  }
  /// A request that got no answer, at a fixed rate: it has waited for so long at least.
  void record_lost(Duration waited, std::uint64_t times) noexcept {
    result_.latency.record(static_cast<std::uint64_t>(std::max<std::int64_t>(0, waited.count())),
                           times);
  }
  /// When connection `index` sends first, and in which steps, at a fixed rate.
  Instant first_due(unsigned index) const noexcept;
  Duration interval() const noexcept { return interval_; }
  Instant end() const noexcept { return end_; }
  Instant begin_of_measuring() const noexcept { return begin_; }
  LoadResult& result() noexcept { return result_; }
  ResponseReference& reference() noexcept { return reference_; }

 private:
  struct Alarm : Timer {
    Alarm(LoadWorker& worker, void (LoadWorker::*action)()) noexcept
        : Timer(&fired), worker(worker), action(action) {}
    static void fired(Timer& self) {
      auto& alarm = static_cast<Alarm&>(self);
      (alarm.worker.*alarm.action)();
    }
    LoadWorker& worker;
    void (LoadWorker::*action)();
  };

  static Task<> open_all(Scope& scope, LoadWorker& worker);
  static Task<> open_every(LoadWorker& worker, std::size_t first, std::size_t step);
  static Task<> run_all(Scope& scope, LoadWorker& worker);
  void start_clock(Instant start);
  /// The measured time begins: what has been counted before was for warming up.
  void begin();
  /// The measured time is over; what is under way is still waited for.
  void finish();
  void look_for_timeouts();
  std::optional<Duration> server_time() const {
    return plan_.server_time ? plan_.server_time() : std::nullopt;
  }

  Loop& loop_;
  LoadPlan plan_;
  std::string batch_;
  ResponseReference reference_;
  std::deque<LoadConnection> connections_;
  LoadResult result_;
  std::uint64_t left_;  // requests that may still be sent
  Duration interval_{};
  Instant start_{};  // of the load
  Instant begin_{};  // of the measured time
  Instant end_ = never;
  std::optional<Duration> server_time_at_begin_;
  bool measuring_ = false;
  bool over_ = false;
  Alarm begin_alarm_{*this, &LoadWorker::begin};
  Alarm end_alarm_{*this, &LoadWorker::finish};
  Alarm timeout_alarm_{*this, &LoadWorker::look_for_timeouts};
};

}  // namespace weir::bench
