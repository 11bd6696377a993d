#include "weir/http/server/detail/server_state.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/server/detail/request_trace.hpp"

namespace weir::http {
namespace {

// Descriptors that a server leaves for files, listeners and the backend.
constexpr std::size_t descriptors_reserved = 64;

std::size_t default_connections_max(Loop& loop) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  return all > descriptors_reserved ? all - descriptors_reserved : 1;
}

}  // namespace

ServerState::ServerState(Loop& loop, const Router& router, const Limits& limits)
    : DrainObserver(&on_drain),
      loop_(loop),
      router_(router),
      routes_(loop, router.updater()),
      limits_(limits),
      id_prefix_(request_id_prefix(loop.platform().wall_time(), loop.core())),
      connections_max_(limits.connections_max != 0 ? limits.connections_max
                                                   : default_connections_max(loop)),
      draining_(loop.draining()),
      lingering_streams_(loop),
      date_(loop.platform().wall_time()),
      date_until_(loop.now()) {
  if (!draining_) loop.observe_drain(*this);
  loop.metrics().add(*this);
}

ServerState::~ServerState() {
  assert(connections_.empty());
  detach();
}

/// Runs on any thread, see MetricSource. Parse errors with a count of 0 are left out.
void ServerState::collect(MetricSnapshot& sum) const {
  const auto total = [&sum](std::string name, const Counter& counter) {
    sum.add({std::move(name), counter.value()});
  };
  total("http connections", counters_.connections_accepted);
  sum.add({"http connections open", counters_.connections_open.value(), Metric::Kind::gauge});
  total("http connections rejected", counters_.connections_rejected);
  total("http connections without a request", counters_.silent_connections);
  total("http slow readers", counters_.slow_readers);
  total("http requests", counters_.requests);
  total("http responses", counters_.responses);
  total("http handler failures", counters_.handler_failures);
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    if (counters_.parse_errors[index].value() == 0) continue;
    total("http requests rejected: " + std::string(name_of(static_cast<ParseError>(index))),
          counters_.parse_errors[index]);
  }
}

void ServerState::refresh_date() noexcept {
  const WallTime now = loop_.platform().wall_time();
  date_ = Date(now);
  response_head_cache_ = ResponseHeadCache();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

/// Uses relaxed order, because only the number itself passes between cores.
std::optional<ServerState::ConnectionPermit> ServerState::try_acquire_permit() noexcept {
  std::size_t in_use = permits_in_use().load(std::memory_order_relaxed);
  do {
    if (in_use >= connections_max_) return std::nullopt;
  } while (!permits_in_use().compare_exchange_weak(in_use, in_use + 1, std::memory_order_relaxed));
  return ConnectionPermit(*this);
}

void ServerState::add(DrainableConnection& connection) noexcept {
  connections_.push_back(connection);
  counters_.connections_accepted.add();
  counters_.connections_open.add();
}

void ServerState::remove(DrainableConnection& connection) noexcept {
  connection.unlink();
  counters_.connections_open.subtract();
}

std::string ServerState::summary() const {
  std::string text = std::to_string(counters_.connections_accepted.value()) + " connections, " +
                     std::to_string(counters_.requests.value()) + " requests";
  const auto mention = [&text](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    text.append(", ").append(std::to_string(count)).append(" ").append(what);
  };
  mention(counters_.connections_rejected.value(), "connections rejected");
  mention(counters_.silent_connections.value(), "without a request");
  mention(counters_.slow_readers.value(), "slow readers");
  mention(counters_.handler_failures.value(), "handler failures");
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    mention(counters_.parse_errors[index].value(), name_of(static_cast<ParseError>(index)));
  }
  return text;
}

void ServerState::on_drain(DrainObserver& self) {
  static_cast<ServerState&>(self).drain();
}

void ServerState::drain() {
  if (std::exchange(draining_, true)) return;
  for (DrainableConnection* each = connections_.front(); each != nullptr;
       each = connections_.next(*each)) {
    each->drain();
  }
}

}  // namespace weir::http
