#include "weir/http/server_core.hpp"

#include <algorithm>

namespace weir::http {
namespace {

// Descriptors that a server leaves for files, listeners and the backend.
constexpr std::size_t descriptors_reserved = 64;

std::size_t share_of_descriptors(Loop& loop) {
  const std::size_t all = loop.host().descriptor_limit().descriptors_max;
  const std::size_t cores = std::max<std::size_t>(1, loop.group().loops().size());
  return std::max<std::size_t>(1, (all - std::min(all, descriptors_reserved)) / cores);
}

}  // namespace

ServerCore::ServerCore(Loop& loop, const Router& router, const Limits& limits)
    : DrainWatcher(&asked_to_drain),
      loop_(loop),
      router_(router),
      limits_(limits),
      connections_max_(limits.connections_max != 0 ? limits.connections_max
                                                   : share_of_descriptors(loop)),
      draining_(loop.draining()),
      date_(loop.host().wall_time()),
      date_until_(loop.now()) {
  if (!draining_) loop.watch_drain(*this);
}

ServerCore::~ServerCore() {
  assert(connections_.empty());
}

void ServerCore::refresh_date() noexcept {
  const WallTime now = loop_.host().wall_time();
  date_ = Date(now);
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

void ServerCore::add(DrainingConnection& connection) noexcept {
  connections_.push_back(connection);
  ++open_;
  counters_.connections_accepted.add();
  counters_.connections_open.add();
}

void ServerCore::remove(DrainingConnection& connection) noexcept {
  connection.unlink();
  --open_;
  counters_.connections_open.subtract();
}

void ServerCore::asked_to_drain(DrainWatcher& self) {
  auto& core = static_cast<ServerCore&>(self);
  core.draining_ = true;
  for (DrainingConnection* each = core.connections_.front(); each != nullptr;
       each = core.connections_.next(*each)) {
    each->drain();
  }
}

}  // namespace weir::http
