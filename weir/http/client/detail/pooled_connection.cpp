#include "weir/http/client/detail/pooled_connection.hpp"

#include <utility>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/net/tls_info.hpp"

namespace weir::http {

PooledConnection::PooledConnection(AnyStream stream) noexcept
    : loop::HangupObserver(
          [](loop::HangupObserver& observer) {
            auto& self = static_cast<PooledConnection&>(observer);
            self.pool_->on_input(self);
          },
          Event::input),
      loop::Timer([](loop::Timer& timer) {
        auto& self = static_cast<PooledConnection&>(timer);
        self.pool_->on_timer(self);
      }),
      opened_(stream->loop().platform().now()),
      stream_(std::move(stream)) {}

void PooledConnection::change(State next) noexcept {
  static constexpr weir::detail::StateTable<State, 3> table{
      {State::in_use, {State::idle}},
      {State::idle, {State::in_use, State::dead}},
  };
  table.change(state_, next);
}

bool PooledConnection::proof_ended() const noexcept {
  const TlsInfo* const tls = stream_->tls();
  return tls != nullptr && tls->proof_ended(stream_->loop().platform().wall_time());
}

}  // namespace weir::http
