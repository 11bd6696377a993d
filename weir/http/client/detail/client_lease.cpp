#include "weir/http/client/detail/client_lease.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "weir/base/detail/shortage.hpp"
#include "weir/base/detail/state_table.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/net/detail/connect_targets.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {

std::error_code connect_error(std::error_code error) noexcept {
  const bool known = error.category() == client_error_category() ||
                     error.category() == tls::tls_error_category() || error == Errc::cancelled ||
                     error == Errc::bad_configuration || weir::detail::is_shortage(error);
  return known ? error : make_error_code(ClientError::connect_failed);
}

ClientLease::ClientLease(ClientLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      origin_(other.origin_),
      of_origin_(std::move(other.of_origin_)),
      of_pool_(std::move(other.of_pool_)),
      connection_(std::move(other.connection_)),
      connect_until_(other.connect_until_),
      state_(std::exchange(other.state_, State::none)) {}

ClientLease& ClientLease::operator=(ClientLease&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  origin_ = other.origin_;
  of_origin_ = std::move(other.of_origin_);
  of_pool_ = std::move(other.of_pool_);
  connection_ = std::move(other.connection_);
  connect_until_ = other.connect_until_;
  state_ = std::exchange(other.state_, State::none);
  return *this;
}

void ClientLease::change(State next) noexcept {
  static constexpr weir::detail::StateTable<State, 6> table{
      {State::unpooled, {State::none}},
      {State::right, {State::opening, State::connected, State::none}},
      {State::opening, {State::right, State::http2}},
      {State::http2, {State::connected}},
      {State::connected, {State::right}},
  };
  table.change(state_, next);
}

bool ClientLease::take_idle() {
  connection_ = pool_->take_idle(*origin_);
  if (connection_ == nullptr) return false;
  change(State::connected);
  connect_until_ = never;
  return true;
}

Task<Result<>> ClientLease::connect(const Url& url, Instant deadline) {
  close_connection();
  pool_->make_room();
  const ClientOptions& options = *pool_->options_;
  const Context own = co_await this_context();
  pool_->join_reports(*own.loop);
  const Instant now = own.loop->platform().now();
  const Duration left = time_until(deadline, now);
  const Instant connect_until = std::exchange(connect_until_, never);
  const Duration limit =
      std::min({left, options.limits.connect_timeout, time_until(connect_until, now)});
  const bool may_be_http2 = pool_->may_speak_http2(url);
  if (may_be_http2) begin_opening();
  pool_->counters_.report_to(*own.loop);
  auto opening = pool_->open_stream(url, *own.loop);
  Result<AnyStream> stream = co_await timeout(limit, std::move(opening));
  if (stream) {
    const TlsInfo* const tls = (*stream)->tls();
    const bool secured = url.scheme() == "https";
    const bool http2 =
        may_be_http2 && (!secured || (tls != nullptr && tls->protocol == http2_protocol));
    origin_->is_http1 = !http2;
    origin_->opened = own.loop->platform().now();
    if (!http2 && state_ == State::opening) end_opening(State::right);
    if (!http2 && pool_->observer_ != nullptr) pool_->observer_->tell();
    connection_ = make_block<PooledConnection>(std::move(*stream));
    change(http2 ? State::http2 : State::connected);
    pool_->counters_.open.add();
    ConnectTargets::on_opened(*own.loop, pool_->key_of(url));
    co_return {};
  }
  if (state_ == State::opening) end_opening(State::right);
  ConnectTargets::on_failed(*own.loop, pool_->key_of(url), stream.error());
  if (stream.error() != Errc::timed_out) co_return fail(connect_error(stream.error()));
  co_return fail(limit == left ? ClientError::timed_out : ClientError::connect_timed_out);
}

void ClientLease::release_for_reuse(Duration idle_max) {
  assert(connection_ != nullptr);
  if (pool_ == nullptr) return release();
  end_wait_for_http2();
  pool_->add_idle(*origin_, connection_, idle_max);
  if (connection_ == nullptr) change(State::right);
  release();
}

void ClientLease::release() noexcept {
  if (state_ == State::none) return;
  if (state_ == State::unpooled) {
    connection_.reset();
    return change(State::none);
  }
  close_connection();
  if (state_ == State::opening) end_opening(State::right);
  change(State::none);
  give_up(of_pool_, pool_->waiting_for_room_);
  give_up(of_origin_, origin_->waiting);
  std::exchange(pool_, nullptr)->leave(*origin_);
}

/// Gives a right back, if there is one, and notifies the first request that waits for it.
void ClientLease::give_up(SemaphorePermit& right, const RequestQueue& waiting) noexcept {
  if (right.count() == 0) return;
  right.release();
  ClientPool::notify_first(waiting);
}

/// Makes requests to the origin wait for the connection that the lease opens.
void ClientLease::begin_opening() noexcept {
  change(State::opening);
  ++origin_->opening;
}

void ClientLease::end_opening(State next) noexcept {
  assert(is_awaited());
  change(next);
  --origin_->opening;
  ClientPool::notify_first(origin_->waiting);
}

void ClientLease::close_connection() noexcept {
  if (connection_ == nullptr) return;
  end_wait_for_http2();
  change(State::right);
  connection_.reset();
  pool_->counters_.open.subtract();
}

}  // namespace weir::http
