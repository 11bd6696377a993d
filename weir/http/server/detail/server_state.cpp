#include "weir/http/server/detail/server_state.hpp"

#include <utility>

#include "weir/http/server/detail/request_trace.hpp"

namespace weir::http {

void ResponseHeads::refresh() noexcept {
  const WallTime now = loop_.platform().wall_time();
  date_ = Date(now);
  common_ = ResponseHeadCache();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

ServerState::ServerState(Loop& loop, const Router& router, const Limits& limits,
                         std::shared_ptr<tls::Server> tls)
    : loop_(loop),
      router_(router),
      limits_(limits),
      id_prefix_(request_id_prefix(loop.platform().wall_time(), loop.core())),
      routes_(loop, router.updater()),
      counters_(loop),
      connections_(*this, loop, limits.connections_max),
      lingering_streams_(loop),
      heads_(loop),
      tls_(std::move(tls)) {
  if (tls_ != nullptr) acceptor_.emplace(loop, *tls_);
}

}  // namespace weir::http
