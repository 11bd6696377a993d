// One loop's share of a load: connections, timers and counts.
#include "tools/weir/load_worker.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace weir::bench {
namespace {

// Limit of concurrent handshakes. More may overflow a listener's queue, which costs seconds.
constexpr std::size_t connecting_max = 128;
constexpr int timeout_checks = 8;  // per timeout

}  // namespace

LoadWorker::LoadWorker(Loop& loop, LoadPlan plan)
    : DrainObserver([](DrainObserver& self) { static_cast<LoadWorker&>(self).finish(); }),
      loop_(loop),
      plan_(std::move(plan)),
      left_(plan_.requests.value_or(std::numeric_limits<std::uint64_t>::max())) {
  assert(plan_.depth == 1 || plan_.depth * plan_.request.size() <= LoadPlan::batch_bytes_max);
  for (unsigned each = 0; each < plan_.depth; ++each) batch_ += plan_.request;
  reference_.rules = plan_.rules;
  reference_.rules.closing = plan_.new_connections;
  if (plan_.rate > 0) {
    // Zero means no fixed rate.
    interval_ =
        std::max(Duration(1), std::chrono::duration_cast<Duration>(
                                  std::chrono::duration<double>(plan_.connections / plan_.rate)));
  }
  for (unsigned index = 0; index < plan_.connections; ++index) {
    if (plan_.tls != nullptr && (index == 0 || plan_.resume)) {
      connectors_.emplace_back(loop, *plan_.tls);
    }
    connections_.emplace_back(*this, index);
  }
  result_.backend = loop.backend().name();
  loop.observe_drain(*this);
}

Task<> LoadWorker::run() {
  check_timeouts();
  if (!plan_.new_connections) {
    std::ignore = co_await with_scope(OnFailure::isolate, open_all, std::ref(*this));
  }
  Instant start = now();
  if (plan_.group != nullptr) start = co_await plan_.group->wait_until_all_connected();
  start_clock(start);
  std::ignore = co_await with_scope(OnFailure::isolate, run_all, std::ref(*this));
  finish();
  timeout_timer_.cancel();
  result_.body_bytes = reference_.body_bytes;
  if (reference_.known && !plan_.rules.number_placeholder) result_.body = reference_.body;
}

Task<> LoadWorker::open_all(Scope& scope, LoadWorker& worker) {
  for (std::size_t first = 0; first < connecting_max; ++first) {
    scope.spawn(open_every(worker, first, connecting_max));
  }
  co_return;
}

Task<> LoadWorker::open_every(LoadWorker& worker, std::size_t first, std::size_t step) {
  for (std::size_t index = first; index < worker.connections_.size(); index += step) {
    if (worker.done_) co_return;
    co_await worker.connections_[index].open();
  }
}

Task<> LoadWorker::run_all(Scope& scope, LoadWorker& worker) {
  for (LoadConnection& connection : worker.connections_) scope.spawn(connection.run());
  co_return;
}

void LoadWorker::start_clock(Instant start) {
  start_ = start;
  if (done_ || plan_.requests || plan_.warm_up == Duration::zero()) {
    begin();
  } else {
    loop_.timers().start(begin_timer_, after(start_, plan_.warm_up));
  }
  if (done_ || plan_.requests) return;
  end_ = after(after(start_, plan_.warm_up), plan_.length);
  loop_.timers().start(end_timer_, end_);
}

void LoadWorker::begin() {
  if (done_) return;
  begin_ = now();
  measuring_ = true;
  server_cpu_time_at_begin_ = server_cpu_time();
  result_.bytes_received = 0;
  result_.late = 0;
  result_.latency = {};
}

void LoadWorker::finish() {
  done_ = true;
  begin_timer_.cancel();
  end_timer_.cancel();
  if (!std::exchange(measuring_, false)) return;
  const Instant now = this->now();
  end_ = std::min(end_, now);
  result_.length = now - begin_;
  const auto seconds = std::chrono::duration<double>(result_.length).count();
  if (seconds > 0) result_.per_second = static_cast<double>(result_.responses) / seconds;
  const auto server_cpu_time_now = server_cpu_time();
  if (server_cpu_time_now && server_cpu_time_at_begin_) {
    result_.server_cpu_time = *server_cpu_time_now - *server_cpu_time_at_begin_;
  }
  if (!plan_.abandon) return;
  for (LoadConnection& connection : connections_) connection.abandon();
}

void LoadWorker::check_timeouts() {
  const Instant now = loop_.now();
  for (LoadConnection& connection : connections_)
    connection.cancel_if_waiting_since(now - plan_.timeout);
  loop_.timers().start(timeout_timer_, after(now, plan_.timeout / timeout_checks));
}

unsigned LoadWorker::acquire_requests(unsigned wanted) noexcept {
  if (done_) return 0;
  const auto taken = static_cast<unsigned>(std::min<std::uint64_t>(wanted, left_));
  left_ -= taken;
  return taken;
}

Instant LoadWorker::first_send_time(unsigned index) const noexcept {
  // Use floating point: a long interval times many connections overflows an integer.
  const double share = static_cast<double>(index) / plan_.connections;
  return after(start_, Duration(static_cast<std::int64_t>(
                           std::llround(static_cast<double>(interval_.count()) * share))));
}

LoadResult LoadWorker::take_result() {
  return std::move(result_);
}

Task<LoadResult> generate_load(LoadPlan plan) {
  const Context context = co_await this_context();
  LoadWorker worker(*context.loop, std::move(plan));
  co_await worker.run();
  co_return worker.take_result();
}

}  // namespace weir::bench
