#include "weir/http/server_core.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/server/detail/request_trace.hpp"

namespace weir::http {
namespace {

// Descriptors that a server leaves for files, listeners and the backend.
constexpr std::size_t descriptors_reserved = 64;

std::size_t default_connections_max(Loop& loop) {
  const std::size_t all = loop.host().descriptor_limit().descriptors_max;
  return all > descriptors_reserved ? all - descriptors_reserved : 1;
}

}  // namespace

ServerCore::ServerCore(Loop& loop, const Router& router, const Limits& limits)
    : DrainWatcher(&asked_to_drain),
      loop_(loop),
      router_(router),
      routes_(loop, router.publisher()),
      limits_(limits),
      id_prefix_(request_id_prefix(loop.host().wall_time(), loop.core())),
      connections_max_(limits.connections_max != 0 ? limits.connections_max
                                                   : default_connections_max(loop)),
      draining_(loop.draining()),
      last_answers_(loop),
      date_(loop.host().wall_time()),
      date_until_(loop.now()) {
  if (!draining_) loop.watch_drain(*this);
  loop.figures().add(*this);
}

ServerCore::~ServerCore() {
  assert(connections_.empty());
  leave();
}

/// Any thread: see FigureSource. What there was none of is left out where there are many kinds.
void ServerCore::tell(FigureSum& sum) const {
  const auto total = [&sum](std::string name, const Counter& counter) {
    sum.add({std::move(name), counter.value()});
  };
  total("http connections", counters_.connections_accepted);
  sum.add({"http connections open", counters_.connections_open.value(), Figure::Kind::level});
  total("http connections turned away", counters_.connections_refused);
  total("http connections silent", counters_.silent_connections);
  total("http slow readers", counters_.slow_readers);
  total("http requests", counters_.requests);
  total("http responses", counters_.responses);
  total("http handler failures", counters_.handler_failures);
  for (std::size_t index = 1; index < refusal_count; ++index) {
    if (counters_.refusals[index].value() == 0) continue;
    total("http refused: " + std::string(name_of(static_cast<Refusal>(index))),
          counters_.refusals[index]);
  }
}

void ServerCore::refresh_date() noexcept {
  const WallTime now = loop_.host().wall_time();
  date_ = Date(now);
  usual_head_ = UsualHead();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

/// Relaxed: nothing but the number passes between cores.
std::optional<ServerCore::Place> ServerCore::admit() noexcept {
  std::size_t taken = places_taken().load(std::memory_order_relaxed);
  do {
    if (taken >= connections_max_) return std::nullopt;
  } while (!places_taken().compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));
  return Place(*this);
}

void ServerCore::add(DrainingConnection& connection) noexcept {
  connections_.push_back(connection);
  counters_.connections_accepted.add();
  counters_.connections_open.add();
}

void ServerCore::remove(DrainingConnection& connection) noexcept {
  connection.unlink();
  counters_.connections_open.subtract();
}

std::string ServerCore::summary() const {
  std::string text = std::to_string(counters_.connections_accepted.value()) + " connections, " +
                     std::to_string(counters_.requests.value()) + " requests";
  const auto mention = [&text](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    text.append(", ").append(std::to_string(count)).append(" ").append(what);
  };
  mention(counters_.connections_refused.value(), "turned away");
  mention(counters_.silent_connections.value(), "silent");
  mention(counters_.slow_readers.value(), "slow readers");
  mention(counters_.handler_failures.value(), "handler failures");
  for (std::size_t index = 0; index < refusal_count; ++index) {
    mention(counters_.refusals[index].value(), name_of(static_cast<Refusal>(index)));
  }
  return text;
}

void ServerCore::asked_to_drain(DrainWatcher& self) {
  static_cast<ServerCore&>(self).drain();
}

void ServerCore::drain() {
  if (std::exchange(draining_, true)) return;
  for (DrainingConnection* each = connections_.front(); each != nullptr;
       each = connections_.next(*each)) {
    each->drain();
  }
}

}  // namespace weir::http
