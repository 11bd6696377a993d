#include "tools/weir/load_worker.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace weir::bench {
namespace {

// More handshakes at once than this and a listener's queue may overflow, which costs seconds.
constexpr std::size_t connecting_max = 128;
constexpr int timeout_looks = 8;  // in the length of one timeout

}  // namespace

LoadWorker::LoadWorker(Loop& loop, LoadPlan plan)
    : DrainWatcher([](DrainWatcher& self) { static_cast<LoadWorker&>(self).finish(); }),
      loop_(loop),
      plan_(std::move(plan)),
      left_(plan_.requests.value_or(std::numeric_limits<std::uint64_t>::max())) {
  assert(plan_.depth == 1 || plan_.depth * plan_.request.size() <= LoadPlan::batch_bytes_max);
  for (unsigned each = 0; each < plan_.depth; ++each) batch_ += plan_.request;
  reference_.rules = plan_.rules;
  reference_.rules.closing = plan_.new_connections;
  if (plan_.rate > 0) {
    // Zero would mean no rate at all.
    interval_ =
        std::max(Duration(1), std::chrono::duration_cast<Duration>(
                                  std::chrono::duration<double>(plan_.connections / plan_.rate)));
  }
  for (unsigned index = 0; index < plan_.connections; ++index) {
    connections_.emplace_back(*this, index);
  }
  result_.backend = loop.backend().name();
  loop.watch_drain(*this);
}

Task<> LoadWorker::run() {
  look_for_timeouts();
  if (!plan_.new_connections) {
    static_cast<void>(co_await with_scope(OnFailure::supervise, open_all, std::ref(*this)));
  }
  Instant start = now();
  if (plan_.group != nullptr) start = co_await plan_.group->all_connected();
  start_clock(start);
  static_cast<void>(co_await with_scope(OnFailure::supervise, run_all, std::ref(*this)));
  finish();
  timeout_alarm_.cancel();
  result_.body_bytes = reference_.body_bytes;
  if (reference_.known && !plan_.rules.numbering) result_.body = reference_.body;
}

Task<> LoadWorker::open_all(Scope& scope, LoadWorker& worker) {
  for (std::size_t first = 0; first < connecting_max; ++first) {
    scope.spawn(open_every(worker, first, connecting_max));
  }
  co_return;
}

Task<> LoadWorker::open_every(LoadWorker& worker, std::size_t first, std::size_t step) {
  for (std::size_t index = first; index < worker.connections_.size(); index += step) {
    if (worker.over_) co_return;
    co_await worker.connections_[index].open();
  }
}

Task<> LoadWorker::run_all(Scope& scope, LoadWorker& worker) {
  for (LoadConnection& connection : worker.connections_) scope.spawn(connection.run());
  co_return;
}

void LoadWorker::start_clock(Instant start) {
  start_ = start;
  if (over_ || plan_.requests || plan_.warm_up == Duration::zero()) {
    begin();
  } else {
    loop_.timers().start(begin_alarm_, after(start_, plan_.warm_up));
  }
  if (over_ || plan_.requests) return;
  end_ = after(after(start_, plan_.warm_up), plan_.length);
  loop_.timers().start(end_alarm_, end_);
}

void LoadWorker::begin() {
  if (over_) return;
  begin_ = now();
  measuring_ = true;
  server_time_at_begin_ = server_time();
  result_.bytes_received = 0;
  result_.late = 0;
  result_.latency = {};
}

void LoadWorker::finish() {
  over_ = true;
  begin_alarm_.cancel();
  end_alarm_.cancel();
  if (!std::exchange(measuring_, false)) return;
  const Instant now = this->now();
  end_ = std::min(end_, now);
  result_.length = now - begin_;
  const auto seconds = std::chrono::duration<double>(result_.length).count();
  if (seconds > 0) result_.per_second = static_cast<double>(result_.responses) / seconds;
  const auto server_time_now = server_time();
  if (server_time_now && server_time_at_begin_) {
    result_.server_time = *server_time_now - *server_time_at_begin_;
  }
  if (!plan_.abandon) return;
  for (LoadConnection& connection : connections_) connection.abandon();
}

void LoadWorker::look_for_timeouts() {
  const Instant now = loop_.now();
  for (LoadConnection& connection : connections_) connection.give_up_before(now - plan_.timeout);
  loop_.timers().start(timeout_alarm_, after(now, plan_.timeout / timeout_looks));
}

unsigned LoadWorker::take(unsigned wanted) noexcept {
  if (over_) return 0;
  const auto taken = static_cast<unsigned>(std::min<std::uint64_t>(wanted, left_));
  left_ -= taken;
  return taken;
}

Instant LoadWorker::first_due(unsigned index) const noexcept {
  // In floating point: the product of a long interval and many connections does not fit.
  const double share = static_cast<double>(index) / plan_.connections;
  return after(start_, Duration(static_cast<std::int64_t>(
                           std::llround(static_cast<double>(interval_.count()) * share))));
}

LoadResult LoadWorker::take_result() {
  return std::move(result_);
}

Task<LoadResult> put_load(LoadPlan plan) {
  const Context context = co_await this_context();
  LoadWorker worker(*context.loop, std::move(plan));
  co_await worker.run();
  co_return worker.take_result();
}

}  // namespace weir::bench
