#include "weir/http/server/detail/connection.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

// Time in which an idle connection may still send a request when its server drains.
constexpr Duration drain_grace = std::chrono::milliseconds(100);
constexpr Duration drain_grace_new = std::chrono::seconds(1);  // before the first request
// Time for the rest of a head when the server drains.
constexpr Duration drain_grace_head = std::chrono::seconds(2);

}  // namespace

Connection::~Connection() {
  if (is_active()) deactivate();
  if (is_open()) server().remove(*this);
}

void Connection::open(CancelSource* cancel) noexcept {
  cancel_ = cancel;
  server().add(*this);
}

void Connection::deactivate() noexcept {
  if (const auto broken = active_state().broken(); broken && broken == Errc::timed_out) {
    server().counters().slow_readers.add();
  }
  BlockDeleter<ActiveState>()(&active_state());
}

void Connection::drain() {
  const Instant now = loop().now();
  if (read_purpose() == ReadPurpose::request) {
    shorten_deadline(after(now, was_active() ? drain_grace : drain_grace_new));
  } else if (read_purpose() == ReadPurpose::head) {
    shorten_deadline(after(now, drain_grace_head));
  }
}

void Connection::linger_detached() noexcept {
  if (!stream().finish_writing()) return;
  server().lingering_streams().add(std::move(stream()), limits().linger_timeout);
}

Instant Connection::request_deadline() const noexcept {
  const Limits& most = limits();
  const Duration idle =
      was_active() ? most.idle_timeout : std::min(most.idle_timeout, most.first_request_timeout);
  const Duration grace = was_active() ? drain_grace : drain_grace_new;
  return after(loop().now(), server().draining() ? std::min(idle, grace) : idle);
}

Instant Connection::head_deadline() noexcept {
  ActiveState& now = active_state();
  if (std::exchange(now.head_number, now.request_loop.heads()) != now.request_loop.heads()) {
    now.head_started = loop().now();
  }
  const Duration usual = limits().head_timeout;
  return after(now.head_started, server().draining() ? std::min(usual, drain_grace_head) : usual);
}

bool Connection::ReadAwaiter::await_ready() {
  connection_.begin_read(ReadPurpose::request, connection_.request_deadline());
  return Awaiter::await_ready();
}

RequestLoop::Action Connection::ReadAwaiter::await_resume() {
  auto bytes = Awaiter::await_resume();
  connection_.end_read();
  if (!bytes) {
    const bool waited_long = connection_.to_timeout(bytes.error()) == Errc::timed_out;
    ServerState& server = connection_.server();
    if (waited_long && !connection_.was_active() && !server.draining()) {
      server.counters().silent_connections.add();
    }
    return waited_long ? RequestLoop::Action::close : RequestLoop::Action::abort;
  }
  // io() owns it from here until deactivate().
  const Context context{&connection_.loop(), connection_.cancel_};
  ActiveState* const state =
      make_block<ActiveState>(connection_, connection_.server(), context, std::move(*bytes))
          .release();
  return state->request_loop.advance();
}

bool Connection::WriteAwaiter::await_ready() {
  connection_.active_state().begin_write();
  return Awaiter::await_ready();
}

RequestLoop::Action Connection::WriteAwaiter::await_resume() {
  const auto sent = Awaiter::await_resume();
  connection_.active_state().end_write(sent ? std::error_code() : sent.error());
  connection_.deactivate();
  return sent ? action_ : RequestLoop::Action::abort;
}

namespace {

/// Handles the arrived bytes until the input is used up. Returns Action::idle, or the way to
/// close.
Task<RequestLoop::Action> work_on(Connection& connection, RequestLoop::Action action) {
  using Action = RequestLoop::Action;
  ConnectionIo& io = connection.active_state();
  RequestLoop& request_loop = connection.active_state().request_loop;
  for (;;) {
    if (action == Action::finish) {
      action = co_await request_loop.finish();
      if (action == Action::idle) action = request_loop.advance();
      continue;
    }
    if (action == Action::abort) co_return action;
    if (auto sent = co_await io.send(); !sent) co_return Action::abort;
    if (action != Action::read_more) co_return action;
    auto filled = co_await io.fill(ConnectionIo::ReadPurpose::head, connection.head_deadline());
    if (!filled && filled.error() == Errc::timed_out && request_loop.has_partial_head()) {
      action = request_loop.reject(ParseError::head_timed_out);
    } else if (!filled) {
      co_return Action::abort;
    } else {
      action = request_loop.advance();
    }
  }
}

/// Handles the arrived bytes until the input is used up, and ends the active state; then lingers
/// if the action is close. Returns Action::idle if the connection stays open.
Task<RequestLoop::Action> work(Connection& connection, RequestLoop::Action action) {
  if (connection.is_active()) {
    action = co_await work_on(connection, action);
    connection.deactivate();
  }
  if (action == RequestLoop::Action::close) co_await connection.linger(connection.limits());
  co_return action;
}

Task<> serve_opened(Connection connection) {
  using Action = RequestLoop::Action;
  connection.open((co_await this_context()).cancel);
  Action action = Action::idle;
  try {
    while (action == Action::idle && !connection.cancelled()) {
      if (connection.turn_budget_used()) static_cast<void>(co_await sleep(Duration::zero()));
      action = co_await connection.receive();
      if (connection.is_active() && (action == Action::idle || action == Action::close_now)) {
        // The usual way: everything is answered, and one send is left.
        action = co_await connection.send_responses(action);
      } else {
        action = co_await work(connection, action);
      }
    }
  } catch (...) {
    // The wait for the running task had no memory; abandoned() waits without any.
    if (!connection.is_active()) throw;
    connection.active_state().request_loop.abandon(std::current_exception());
  }
  if (connection.is_active()) co_await connection.active_state().request_loop.abandoned();
  if (action == Action::close_now) connection.linger_detached();
}

}  // namespace

Task<> serve_connection(ServerState::ConnectionPermit permit, tcp::Stream stream) {
  return serve_opened(Connection(std::move(permit), std::move(stream)));
}

Task<> reject_connection(ServerState& server, tcp::Stream stream) {
  const ServerState::Rejection rejection(server);
  DeadlineStream timed(std::move(stream));
  std::optional<ConnectionIo> io(std::in_place, timed, server.limits());
  Buffer& output = io->writable_output();
  ResponseHead head;
  head.status = Status::service_unavailable;
  head.connection = ConnectionHeader::close;
  head.date = &server.date();
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.commit(static_cast<std::size_t>(write_head(head, start) - start));
  const auto sent = co_await io->send();
  io.reset();
  if (sent && !rejection.too_many()) co_await timed.linger(server.limits());
}

}  // namespace weir::http
