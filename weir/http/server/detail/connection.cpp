#include "weir/http/server/detail/connection.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/h1/h1_connection.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"
#include "weir/http/server/detail/rejection.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

using Action = H1Connection::Action;

// Time in which an idle connection may still send a request when its server drains.
constexpr Duration drain_grace = std::chrono::milliseconds(100);
constexpr Duration drain_grace_new = std::chrono::seconds(1);  // before the first request

}  // namespace

Connection::~Connection() {
  if (!is_http2()) forget_peer();
  if (!is_open()) return;
  if (io_ != nullptr) deactivate();
  if (is_http2()) {
    server().forget_fields(http2_->table);
    BlockDeleter<H2ConnectionState>()(http2_);
  }
  server().connections().remove(*this);
  if (!evicted()) return;
  server().connections().eviction_ended();
  permit_.forget();
}

void Connection::change(Life next) noexcept {
  static constexpr weir::detail::StateTable<Life, 4> table{
      {Life::unopened, {Life::open}},
      {Life::open, {Life::evicted, Life::released}},
  };
  Life life = life_;  // a bit-field
  table.change(life, next);
  life_ = life;
}

void Connection::change(Protocol next) noexcept {
  static constexpr weir::detail::StateTable<Protocol, 3> table{
      {Protocol::unknown, {Protocol::http1, Protocol::http2}},
      {Protocol::http1, {Protocol::http2}},
  };
  Protocol protocol = protocol_;  // a bit-field
  table.change(protocol, next);
  protocol_ = protocol;
}

void Connection::open(CancelSource* cancel) noexcept {
  change(Life::open);
  cancel_ = cancel;
  totals_.begin(server().loop().now());
  const TlsInfo* const tls = stream_->tls();
  has_proof_ = tls != nullptr && tls->proven_until != WallTime::max();
  server().connections().add(*this);
}

os::Address Connection::peer_address() {
  const os::Address* const known = is_http2() ? http2_->peer.get() : peer_;
  if (known != nullptr) return *known;
  const os::Address address = stream_->peer_address();
  try {
    auto made = make_block<os::Address>(address);
    if (is_http2()) {
      http2_->peer = std::move(made);
    } else {
      peer_ = made.release();
    }
  } catch (const std::bad_alloc&) {
    // The next call asks again.
  }
  return address;
}

os::IpBytes Connection::network() const noexcept {
  const os::Address* const known = is_http2() ? http2_->peer.get() : peer_;
  return os::client_network(known != nullptr ? *known : stream_->peer_address());
}

void Connection::forget_peer() noexcept {
  BlockPtr<os::Address>(std::exchange(peer_, nullptr)).reset();
}

H1Connection& Connection::activate(Buffer bytes) {
  // The preface begins a plain connection (RFC 9113 §3.3). Later it would be the request of another
  // client, whose bytes a proxy has passed on.
  const bool allows_http2 = server().plain_http2() == PlainHttp2::prior_knowledge &&
                            !was_active() && stream_->tls() == nullptr;
  // io_ refers to it from here until deactivate().
  H1Connection& made =
      *make_block<H1Connection>(server(), *this, context(), std::move(bytes)).release();
  if (allows_http2) made.allow_http2();
  return made;
}

H1Connection& Connection::http1() const noexcept {
  return static_cast<H1Connection&>(*io_);
}

void Connection::begin_http2() {
  assert(io_ == nullptr);
  auto made = make_block<H2ConnectionState>(server());
  forget_peer();
  http2_ = made.release();
  change(Protocol::http2);
  server().counters().http2_connections.add();
  http2_->session.start();
}

H2Connection& Connection::activate_http2(Buffer bytes) {
  return *make_block<H2Connection>(server(), *this, *http2_, std::move(bytes)).release();
}

H2Connection& Connection::http2() const noexcept {
  assert(is_http2());
  return static_cast<H2Connection&>(*io_);
}

void Connection::deactivate() noexcept {
  if (io_->broken() == Errc::timed_out) server().counters().slow_readers.add();
  if (is_http2()) {
    BlockDeleter<H2Connection>()(&http2());
  } else {
    BlockDeleter<H1Connection>()(&http1());
  }
}

Connection::Parts Connection::release() noexcept {
  change(Life::released);
  Buffer input = std::move(io_->input());
  deactivate();
  loop::Timer::cancel();
  server().connections().remove(*this);
  return {std::move(permit_), std::move(stream_), std::move(input)};
}

void Connection::drain() {
  const Instant now = loop().now();
  if (read_state_ == ReadState::request) {
    shorten_deadline(after(now, was_active() ? drain_grace : drain_grace_new));
  } else if (read_state_ == ReadState::head) {
    shorten_deadline(after(now, drain_grace_head));
  } else if (read_state_ == ReadState::http2) {
    shorten_deadline(now);  // the reader then begins to drain
  }
}

bool Connection::now_unproven() const noexcept {
  return stream_->tls()->proof_ended(server().loop().platform().wall_time());
}

Instant Connection::proof_deadline() const noexcept {
  if (!has_proof_) return never;
  const Duration left = stream_->tls()->proven_until - server().loop().platform().wall_time();
  return after(server().loop().now(), left);
}

/// Returns the time in which a request of HTTP/1 must begin.
Duration Connection::request_wait() const noexcept {
  const Limits& most = server().limits();
  return was_active() ? most.idle_timeout : std::min(most.idle_timeout, most.first_request_timeout);
}

Instant Connection::idle_since() const noexcept {
  if (io_ != nullptr || evicted()) return never;
  if (read_state_ == ReadState::http2) return http2_->idle_since;
  if (read_state_ != ReadState::request) return never;
  // The deadline of a first request may count from before a handshake. One that is not limited
  // tells nothing.
  if (!was_active() || read_deadline_ == never) return totals_.begun(loop().now());
  constexpr Duration clock_difference =
      std::chrono::seconds(1);  // of the wall clock and the loop's
  if (after(proof_deadline(), -clock_difference) <= read_deadline_) return never;
  return after(read_deadline_, -request_wait());
}

Instant Connection::may_be_evicted_from() const noexcept {
  if (evicted()) return never;
  if (io_ != nullptr && read_state_ == ReadState::head) {
    return after(http1().head_started(), head_before_eviction);
  }
  return after(idle_since(), idle_before_eviction);
}

ConnectionPermit Connection::evict() noexcept {
  assert(may_be_evicted_from() != never);
  change(Life::evicted);
  change(ReadState::expired);
  stream_->cancel_read();
  return permit_.give_away();
}

Instant Connection::request_deadline() const noexcept {
  if (is_http2()) {
    return ends() ? loop().now() : std::min(http2_->idle_deadline(server()), proof_deadline());
  }
  const Duration idle = request_wait();
  const Duration grace = was_active() ? drain_grace : drain_grace_new;
  const Instant now = server().loop().now();
  const Duration wait_max = server().draining() ? std::min(idle, grace) : idle;
  const Instant deadline = std::min(after(now, wait_max), proof_deadline());
  return was_active() ? deadline : std::min(deadline, read_deadline_);
}

void Connection::on_timer(loop::Timer& timer) {
  auto& self = static_cast<Connection&>(timer);
  const Instant now = self.loop().now();
  Instant next = self.check_read(now);
  if (self.io_ != nullptr) next = std::min(next, self.io_->check_write(now));
  if (next != never) self.watch_until(next);
}

/// Returns the time of the next check of the read in progress.
Instant Connection::check_read(Instant now) {
  if (read_state_ == ReadState::none || read_state_ == ReadState::expired) return never;
  if (now < read_deadline_) return read_deadline_;
  change(ReadState::expired);
  stream_->cancel_read();
  return never;
}

Task<> Connection::linger(const Limits& limits, LateInput expected) {
  if (!stream_->finish_writing()) co_return;
  Linger linger(limits, expected, loop().now());
  std::array<std::byte, 1024> scratch;
  // One byte beyond the limit ends the connection. A buffer may hold more than that.
  for (;;) {
    const Instant now = loop().now();
    if (is_open() && server().draining()) linger.drain(now);
    const MutableBytes room(scratch);
    const IoOptions progress{.timeout = linger.deadline() - now};
    const std::uint64_t left = linger.bytes_left();
    std::size_t dropped = 0;
    if (left >= Buffer::default_capacity) {
      const auto bytes = co_await stream_->read(progress);
      if (bytes) dropped = bytes->size();
    } else {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left + 1, room.size()));
      const auto bytes = co_await stream_->read_into(room.first(count), progress);
      dropped = bytes.value_or(0);
    }
    if (dropped == 0 || !linger.count(dropped, loop().now())) co_return;
    if (turn_budget_used()) std::ignore = co_await sleep(Duration::zero());
  }
}

void Connection::linger_detached() noexcept {
  if (!stream_->finish_writing()) return;
  server().lingering_streams().add(std::move(stream_), server().limits().linger_timeout);
}

namespace {

/// Answers the requests of HTTP/2 that need no wait. Returns idle if at most one write is left,
/// else http2.
Action advance_http2(Connection& connection, Buffer bytes) {
  H2Connection& http2 = connection.activate_http2(std::move(bytes));
  if (!http2.advance()) return Action::http2;
  if (http2.output().empty()) connection.deactivate();
  return Action::idle;
}

/// Changes to HTTP/2, after HTTP/1 has found the preface. Returns the next action.
[[gnu::noinline]] Action begin_http2(Connection& connection) {
  Buffer input;
  if (connection.io() != nullptr) {
    input = std::move(connection.io()->input());
    connection.deactivate();
  }
  connection.begin_http2();
  return advance_http2(connection, std::move(input));
}

/// Ends an evicted connection. Tells a client whose request has arrived, or may be on its way for
/// the first time, that the server is full. A request on a used connection may meet a close at any
/// time (RFC 9112 §9.5).
Action end_evicted(Connection& connection, Result<Buffer> bytes) {
  if (connection.is_http2()) {
    connection.activate_http2(bytes ? std::move(*bytes) : Buffer());  // it sends GOAWAY
    return Action::http2;
  }
  if (!bytes && connection.was_active()) return Action::close_now;
  ServerState& server = connection.server();
  server.connection_scope()->spawn(reject_connection(server, connection.take_stream()));
  return Action::abort;
}

/// `co_await NextRequest(connection)` waits for the first bytes of a request and creates a
/// H1Connection or an H2Connection for them. It then answers all requests that need no wait. It
/// works out of line, so that its temporaries do not lie in the awaiting frame.
/// Returns: the next action; the way to close if the connection stays idle.
/// Cancel: that of Stream::read().
class NextRequest : public Connection::ReadAwaiter {
 public:
  explicit NextRequest(Connection& connection) noexcept
      : Connection::ReadAwaiter(connection, state_of(connection), connection.request_deadline(),
                                connection.stream().read()) {}
  [[gnu::noinline]] Action await_resume();

 private:
  static Connection::ReadState state_of(const Connection& connection) noexcept {
    return connection.is_http2() ? Connection::ReadState::http2 : Connection::ReadState::request;
  }
};

Action NextRequest::await_resume() {
  auto bytes = Connection::ReadAwaiter::await_resume();
  if (connection().evicted()) return end_evicted(connection(), std::move(bytes));
  if (bytes && connection().is_http2()) return advance_http2(connection(), std::move(*bytes));
  if (bytes) {
    const Action action = connection().activate(std::move(*bytes)).advance();
    return action == Action::http2 ? begin_http2(connection()) : action;
  }
  const bool waited_long = bytes.error() == Errc::timed_out;
  if (waited_long && connection().is_http2()) {
    connection().activate_http2({});  // it ends the connection, or begins to drain
    return Action::http2;
  }
  ServerState& server = connection().server();
  if (waited_long && !connection().was_active() && !server.draining()) {
    server.counters().silent_connections.add();
  }
  return waited_long ? Action::close : Action::abort;
}

/// Calls Connection::linger(). Its frame does not become a part of the caller's, which is idle for
/// most of the time. Clients may still send bodies of answered requests when the server has ended
/// the connection.
[[gnu::noinline]] Task<> linger_apart(Connection& connection) {
  const Limits& limits = connection.server().limits();
  return connection.linger(limits, connection.ends() ? LateInput::body : LateInput::none);
}

/// Serves HTTP/2 until the connection is idle or ends. Lingers if the peer should read the last
/// bytes. Returns Action::idle, or the way in which the connection has ended.
Task<Action> work_http2(Connection& connection) {
  const H2Connection::End end = co_await connection.http2().run();
  connection.deactivate();
  if (end == H2Connection::End::idle) co_return Action::idle;
  if (end == H2Connection::End::broken) co_return Action::abort;
  if (connection.evicted()) co_return Action::close_now;
  co_await linger_apart(connection);
  co_return Action::close;
}

/// Lets the connection become a WebSocket, which the scope of the connections waits for.
void begin_websocket(Connection& connection) {
  ServerState& server = connection.server();
  server.websockets().keep_open(*server.connection_scope());
  BlockPtr<ServedWebSocket> socket = connection.http1().take_websocket();
  Connection::Parts parts = connection.release();
  socket->open(std::move(parts.permit), std::move(parts.stream), std::move(parts.input));
  ServedWebSocket::serve(std::move(socket), nullptr);
}

/// Finishes the present requests and makes the connection idle. Then lingers if the action is
/// close. Returns Action::idle if the connection stays open. After a preface it returns the action
/// of begin_http2().
Task<Action> work_http1(Connection& connection, Action action) {
  LateInput expected = LateInput::none;
  if (connection.io() != nullptr) {
    action = co_await connection.http1().run(action);
    expected = connection.http1().late_input();
    if (action == Action::http2) co_return begin_http2(connection);
    if (action == Action::websocket) {
      begin_websocket(connection);
      co_return Action::abort;
    }
    connection.deactivate();
  }
  if (action != Action::close) co_return action;
  // An evicted connection must not keep the place of its eviction while it lingers.
  if (connection.evicted()) co_return Action::close_now;
  co_await connection.linger(connection.server().limits(), expected);
  co_return action;
}

/// Performs the actions that may wait. Each protocol has a frame of its own.
[[gnu::noinline]] Task<Action> work(Connection& connection, Action action) {
  return action == Action::http2 ? work_http2(connection) : work_http1(connection, action);
}

/// Writes the output. It is the last one unless the connection stays idle.
ConnectionIo::WriteAwaiter write_rest(Connection& connection, Action action) noexcept {
  ConnectionIo& io = *connection.io();
  return action == Action::idle ? io.write_output() : io.write_last_output();
}

/// Returns true if the protocol is known before the first byte.
bool begins_with_http2(Connection& connection) {
  const TlsInfo* const tls = connection.stream().tls();
  if (tls != nullptr) return tls->protocol == "h2";
  return connection.server().plain_http2() == PlainHttp2::only;
}

Task<> serve_opened(Connection connection) {
  connection.open((co_await this_context()).cancel);
  Action action = begins_with_http2(connection) ? begin_http2(connection) : Action::idle;
  try {
    while ((action == Action::idle && !connection.cancelled()) || action == Action::http2) {
      if (action == Action::idle && connection.io() == nullptr) {
        if (connection.turn_budget_used()) std::ignore = co_await sleep(Duration::zero());
        action = co_await NextRequest(connection);
      }
      if (connection.io() != nullptr && (action == Action::idle || action == Action::close_now)) {
        // The usual case: everything is answered, and one write is left.
        if (!co_await write_rest(connection, action)) action = Action::abort;
        connection.deactivate();
      } else if (action != Action::idle) {
        action = co_await work(connection, action);
      }
    }
  } catch (...) {
    // The wait for the running task had no memory; call_ended() waits without any.
    if (connection.io() == nullptr || connection.is_http2()) throw;
    connection.http1().abandon(std::current_exception());
  }
  if (connection.io() != nullptr && !connection.is_http2()) {
    co_await connection.http1().call_ended();
    Scope* const scope = connection.http1().scope_in_use();
    if (scope != nullptr) co_await scope->children_finished();
    connection.http1().throw_if_abandoned();
  }
  if (action == Action::close_now) connection.linger_detached();
}

}  // namespace

Task<> serve_connection(ConnectionPermit permit, AnyStream stream, Instant first_request_until) {
  return serve_opened(Connection(std::move(permit), std::move(stream), first_request_until));
}

Task<> reject_connection(ServerState& server, AnyStream stream) {
  const Rejection rejection(server);
  Connection connection(std::move(stream));
  std::optional<ConnectionIo> io(std::in_place, connection, server.limits());
  ResponseHead head;
  head.status = Status::service_unavailable;
  head.connection = ConnectionHeader::close;
  head.date = &server.heads().date();
  const auto write = [&](char* out) { return write_head(head, out); };
  [[maybe_unused]] const bool appended = io->append(head_size_max(head), write);
  assert(appended && "the output is empty");
  const auto sent = co_await io->send();
  io.reset();
  if (sent && !rejection.too_many()) co_await connection.linger(server.limits());
}

}  // namespace weir::http
