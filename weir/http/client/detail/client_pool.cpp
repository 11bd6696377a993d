// Opening, keeping and closing the connections of a client, and the waits for them.
#include "weir/http/client/detail/client_pool.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/client/detail/h2/h2_client_connection.hpp"
#include "weir/http/client/detail/proxy.hpp"
#include "weir/http/detail/h2/response_fields.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

bool try_take(Semaphore& permits, SemaphorePermit& permit) noexcept {
  if (permit.count() > 0) return true;
  std::optional<SemaphorePermit> free = permits.try_acquire();
  if (free) permit = std::move(*free);
  return free.has_value();
}

}  // namespace

ClientPool::ClientPool(const ClientOptions& options) noexcept
    : options_(&options),
      connections_max_(std::max<std::size_t>(options.limits.connections_max, 1)),
      permits_(connections_max_) {}

ClientPool::~ClientPool() {
  while (const Node* const node = idle_.front()) close(node->connection);
  while (Http2Node* const node = http2_.front()) {
    node->connection.close(make_error_code(Errc::closed));
  }
  assert(origins_.empty() && "a response or a request outlives its client");
}

Task<Result<AnyStream>> ClientPool::open_http1(const Url& url, Loop& loop) {
  auto opened = co_await open_stream(url, loop, true);
  if (!opened) co_return fail(connect_error(opened.error()));
  co_return std::move(*opened);
}

/// Returns the text that is equal for URLs whose requests can use the same connections.
std::string_view ClientPool::key_of(const Url& url) const noexcept {
  // The certificate of a connection is that of one host.
  if (!options_->unix_socket.empty() && url.scheme() == "http") return options_->unix_socket;
  return uses_absolute_form(url, *options_) ? options_->proxy.url->text() : url.origin();
}

/// Returns the origin with this name, or nullptr.
ClientPool::Origin* ClientPool::known_origin(std::string_view name) noexcept {
  if (last_origin_ != nullptr && last_origin_->name == name) return last_origin_;
  const auto known = origins_.find(name);
  return known == origins_.end() ? nullptr : last_origin_ = &known->second;
}

ClientPool::Origin& ClientPool::origin_of(const Url& url) {
  const std::string_view name = key_of(url);
  if (Origin* const known = known_origin(name)) return *known;
  const std::size_t most = std::max<std::size_t>(options_->limits.connections_per_origin_max, 1);
  const auto added = origins_.try_emplace(std::string(name), most).first;
  added->second.name = added->first;
  return *(last_origin_ = &added->second);
}

/// Forgets an origin that nothing uses any more.
void ClientPool::leave(Origin& origin) noexcept {
  assert(origin.users > 0);
  if (--origin.users > 0) return;
  if (last_origin_ == &origin) last_origin_ = nullptr;
  origins_.erase(origins_.find(origin.name));
}

// The waits of requests: their order and their limits.

/// A request that waits in the queue of its origin, and possibly in that of the pool. Only the
/// first one of a queue looks for what it waits for, so the pool notifies only the first one. The
/// limit of its wait changes at most once.
class ClientPool::Waiting {
 public:
  Waiting(ClientPool& pool, Origin& origin, Loop& loop, Instant deadline) noexcept
      : pool_(pool),
        origin_(origin),
        loop_(loop),
        deadline_(deadline),
        start_(loop.platform().now()),
        limit_(is_opening(origin) && origin.http2.empty() ? Limit::connect : Limit::queue) {
    const ClientLimits& limits = pool.limits();
    const bool connecting = limit_ == Limit::connect;
    until_ = after(start_, connecting ? limits.connect_timeout : limits.queue_timeout);
    pool.counters_.waiting.add();
    ++origin.queued;
    origin.waiting.push_back(in_origin_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  /// Leaves the queues. Notifies the next request of each if it may find what it waits for.
  ~Waiting() {
    pool_.counters_.waiting.subtract();
    --origin_.queued;
    in_origin_.unlink();
    if (origin_.permits.available() > 0 || http2_of(origin_) != nullptr) {
      notify_first(origin_.waiting);
    }
    if (!in_pool_.linked()) return;
    in_pool_.unlink();
    if (pool_.has_room()) notify_first(pool_.waiting_for_room_);
  }

  bool is_first_of_origin() const noexcept { return origin_.waiting.front() == &in_origin_; }
  /// Returns true if no other request has waited for room for a longer time.
  bool is_first_of_pool() const noexcept {
    return pool_.waiting_for_room_.empty() || pool_.waiting_for_room_.front() == &in_pool_;
  }
  /// Joins the queue of the pool, for the right to a connection of any origin.
  void join_pool_queue() noexcept {
    if (in_pool_.linked()) return;
    pool_.waiting_for_room_.push_back(in_pool_);
    if (limit_ == Limit::connect) begin_queue_time(loop_.platform().now());
  }
  /// Returns the end of connect_timeout if it is the limit, and no connection has opened since.
  Instant connect_until() noexcept {
    if (limit_ == Limit::connect && origin_.opened >= start_) begin_queue_time(origin_.opened);
    return limit_ == Limit::connect ? until_ : never;
  }
  /// Waits until the request may find what it needs, or the wait reaches a limit.
  /// Errors: those of acquire(), if a limit was reached before the call.
  /// Cancel: Errc::cancelled.
  Task<Result<>> wait();

 private:
  /// The timeout that ends the wait.
  enum class Limit : std::uint8_t {
    connect,  ///< connect_timeout, while another request opens the first connection
    queue,    ///< queue_timeout
  };

  void begin_queue_time(Instant start) noexcept {
    static constexpr weir::detail::StateTable<Limit, 2> table{{Limit::connect, {Limit::queue}}};
    table.change(limit_, Limit::queue);
    until_ = after(start, pool_.limits().queue_timeout);
  }

  AutoResetEvent changed_;
  RequestNode in_origin_{changed_};
  RequestNode in_pool_{changed_};
  ClientPool& pool_;
  Origin& origin_;
  Loop& loop_;
  Instant deadline_;
  Instant start_;
  Instant until_;  // the end of connect_timeout or of queue_timeout
  Limit limit_;
};

void ClientPool::notify_first(const RequestQueue& queue) noexcept {
  if (const RequestNode* const first = queue.front()) first->changed.set();
}

void ClientPool::on_http2_changed(const Lease& lease) noexcept {
  notify_first(lease.origin_->waiting);
}

void ClientPool::on_http2_settings(const Lease& lease, std::size_t requests_max) {
  lease.origin_->requests_max = std::max<std::size_t>(requests_max, 1);
  if (observer_ != nullptr) observer_->tell();
}

std::size_t ClientPool::requests_per_connection(const Url& url) noexcept {
  const Origin* const origin = known_origin(key_of(url));
  return origin == nullptr || origin->is_http1 ? 1 : origin->requests_max;
}

bool ClientPool::try_take_of_pool(SemaphorePermit& permit) noexcept {
  if (try_take(permits_, permit)) return true;
  if (counters_.http2_idle.value() == 0) return false;
  // The first idle connection is the oldest one.
  for (Http2Node* each = http2_.front(); each != nullptr; each = http2_.next(*each)) {
    if (!each->connection.is_idle()) continue;
    each->connection.close(make_error_code(Errc::closed));
    return try_take(permits_, permit);
  }
  return false;
}

std::optional<ClientPool::Lease> ClientPool::try_acquire(const Url& url) {
  Lease lease(*this, origin_of(url));
  Origin& origin = *lease.origin_;
  if (is_opening(origin) || !origin.waiting.empty() || needs_room()) return std::nullopt;
  const bool free = try_take(origin.permits, lease.of_origin_) && try_take_of_pool(lease.of_pool_);
  if (!free) return std::nullopt;
  return lease;
}

Task<Result<ClientPool::Place>> ClientPool::acquire(const Url& url, Instant deadline) {
  if (counters_.waiting.value() >= limits().waiting_max) co_return fail(ClientError::queue_full);
  const Context own = co_await this_context();
  Place place;
  Lease lease(*this, origin_of(url));
  Origin& origin = *lease.origin_;
  Waiting waiting(*this, origin, *own.loop, deadline);
  while (true) {
    if (waiting.is_first_of_origin()) {
      place.http2 = http2_of(origin);
      if (place.http2 != nullptr) co_return std::move(place);
      end_unproven(origin);  // they may hold all permits of the origin
      // A request with a right of its origin waits for no connection that another request opens.
      // Such a wait would delay the requests behind it in the queue of the pool.
      const bool may_take = lease.of_origin_.count() > 0 || !is_opening(origin);
      if (may_take && try_take(origin.permits, lease.of_origin_)) {
        if (waiting.is_first_of_pool() && try_take_of_pool(lease.of_pool_)) break;
        waiting.join_pool_queue();
      }
    }
    const Result<> waited = co_await waiting.wait();
    if (!waited) co_return fail(waited.error());
  }
  lease.connect_until_ = waiting.connect_until();
  place.lease = std::move(lease);
  co_return std::move(place);
}

Task<Result<>> ClientPool::Waiting::wait() {
  const Instant now = loop_.platform().now();
  const bool connecting = connect_until() != never;
  const Instant end = std::min(until_, deadline_);
  if (end <= now) {
    if (end == deadline_) co_return fail(ClientError::timed_out);
    co_return fail(connecting ? ClientError::connect_timed_out : ClientError::queue_timed_out);
  }
  auto changing = timeout(time_until(end, now), changed_.wait());
  const Result<> waited = co_await std::move(changing);
  if (!waited && waited.error() == Errc::timed_out) co_return {};
  co_return waited;
}

bool ClientPool::may_speak_http2(const Url& url) const noexcept {
  if (url.scheme() == "http") return options_->plain_http2 && !uses_absolute_form(url, *options_);
  return options_->tls != nullptr &&
         std::ranges::count(options_->tls->options().protocols, http2_protocol) > 0;
}

void ClientPool::add_idle(Origin& origin, BlockPtr<PooledConnection>& connection,
                          Duration idle_max) {
  const ClientLimits& limits = options_->limits;
  Loop& loop = connection->stream_->loop();
  const Instant now = loop.now();  // early in a long turn; the connection then closes early
  const Instant until = std::min(after(now, std::min(idle_max, limits.idle_timeout)),
                                 after(connection->opened_, limits.age_max));
  if (until <= now) return;
  PooledConnection& idle = *connection.release();
  idle.change(PooledConnection::State::idle);
  idle.pool_ = this;
  idle.origin_ = &origin;
  origin.idle.push_front(idle.in_origin_);
  idle_.push_back(idle.in_pool_);
  ++origin.users;
  counters_.idle.add();
  ++origin.idle_count;
  idle.idle_until_ = until;
  const auto& timer = static_cast<const loop::Timer&>(idle);
  if (!timer.armed() || timer.deadline() > until) loop.timers().start(idle, until);
  idle.stream_->observe_hangup(&idle);
}

BlockPtr<PooledConnection> ClientPool::take_idle(Origin& origin) {
  while (const Node* const node = origin.idle.front()) {
    PooledConnection& chosen = node->connection;
    // The timer is late after a long turn, or after a pause of the process.
    if (chosen.idle_until_ <= chosen.stream_->loop().platform().now() || chosen.proof_ended()) {
      close(chosen);
      continue;
    }
    chosen.change(PooledConnection::State::in_use);
    chosen.in_origin_.unlink();
    chosen.in_pool_.unlink();
    chosen.stream_->observe_hangup(nullptr);
    counters_.idle.subtract();
    --origin.idle_count;
    --origin.users;  // the lease that takes the connection is another user
    return BlockPtr<PooledConnection>(&chosen);
  }
  return nullptr;
}

/// Closes idle connections until the leases that have permits may all open one.
void ClientPool::make_room() {
  while (const Node* const node = dead_.front()) close(node->connection);
  const std::size_t in_use = connections_max_ - permits_.available();
  while (in_use + counters_.idle.value() > connections_max_) close(idle_.front()->connection);
}

/// Removes an idle connection from the pool. An observer must not close it, so its timer does.
void ClientPool::on_input(PooledConnection& connection) noexcept {
  connection.change(PooledConnection::State::dead);
  connection.in_origin_.unlink();
  dead_.push_back(connection.in_origin_);
  counters_.idle.subtract();
  --connection.origin_->idle_count;
  Loop& loop = connection.stream_->loop();
  loop.timers().start(connection, loop.now());
}

/// Closes a connection that is dead, or has been idle for too long.
void ClientPool::on_timer(PooledConnection& connection) noexcept {
  using State = PooledConnection::State;
  if (connection.state_ == State::in_use) return;
  Loop& loop = connection.stream_->loop();
  const bool over = connection.state_ == State::dead || connection.idle_until_ <= loop.now();
  if (over) return close(connection);
  loop.timers().start(connection, connection.idle_until_);
}

/// Closes a connection that is idle or dead.
void ClientPool::close(PooledConnection& connection) noexcept {
  Origin& origin = *connection.origin_;
  if (connection.state_ == PooledConnection::State::idle) {
    counters_.idle.subtract();
    --origin.idle_count;
  }
  counters_.open.subtract();
  BlockPtr<PooledConnection>(&connection).reset();
  leave(origin);
}

// The connections of HTTP/2 of a pool.

H2ClientConnection* ClientPool::http2_for(const Url& url) noexcept {
  if (http2_.empty()) return nullptr;
  const Origin* const origin = known_origin(key_of(url));
  if (origin == nullptr || !origin->waiting.empty()) return nullptr;
  return http2_of(*origin);
}

H2ClientConnection* ClientPool::http2_of(const Origin& origin) noexcept {
  for (Http2Node* each = origin.http2.front(); each != nullptr; each = origin.http2.next(*each)) {
    if (each->connection.may_open()) return &each->connection;
  }
  return nullptr;
}

void ClientPool::end_unproven(const Origin& origin) noexcept {
  for (Http2Node* each = origin.http2.front(); each != nullptr;) {
    H2ClientConnection& connection = each->connection;
    each = origin.http2.next(*each);
    connection.end_if_unproven();
  }
}

void ClientPool::on_http2_lost(const Lease& lease) noexcept {
  const Origin& origin = *lease.origin_;
  for (Http2Node* each = origin.http2.front(); each != nullptr; each = origin.http2.next(*each)) {
    each->connection.probe(each->connection.loop().now());
  }
}

H2ClientConnection& ClientPool::add_http2(Lease&& lease) {
  Origin& origin = *lease.origin_;
  lease.end_wait_for_http2();  // notified requests resume later, when the list has it
  auto made = make_block<H2ClientConnection>(*this, std::move(lease));
  H2ClientConnection& connection = *made.release();
  origin.http2.push_front(connection.in_origin());
  http2_.push_back(connection.in_pool());
  return connection;
}

ResponseFieldReader& ClientPool::response_fields() {
  if (response_fields_ == nullptr) {
    ResponseFieldLimits limits;
    limits.head = options_->limits.response.head;
    limits.chunks = options_->limits.response.chunks;
    limits.list_bytes_max = options_->limits.http2.field_list_max;
    response_fields_ = std::make_unique<ResponseFieldReader>(limits);
  }
  return *response_fields_;
}

}  // namespace weir::http
