#include "weir/http/h1/open_connection.hpp"

#include <algorithm>

namespace weir::http {
namespace {

// How long a connection without a request under way may still bring one when its server drains.
constexpr Duration drain_grace = std::chrono::milliseconds(100);
constexpr Duration drain_grace_new = std::chrono::seconds(1);  // before its first request
// How long the rest of a head may still take.
constexpr Duration drain_grace_head = std::chrono::seconds(2);

}  // namespace

OpenConnection::~OpenConnection() {
  if (active()) end();
  if (is_open()) server().remove(*this);
}

void OpenConnection::open(CancelSource* cancel) noexcept {
  cancel_ = cancel;
  server().add(*this);
}

void OpenConnection::end() noexcept {
  if (const auto broken = activity().broken(); broken && broken == Errc::timed_out) {
    server().counters().slow_readers.add();
  }
  BlockDeleter<Activity>()(&activity());
}

void OpenConnection::drain() {
  const Instant now = loop().now();
  if (waiting() == Waiting::request) {
    hurry(after(now, used() ? drain_grace : drain_grace_new));
  } else if (waiting() == Waiting::head) {
    hurry(after(now, drain_grace_head));
  }
}

void OpenConnection::leave_answer() noexcept {
  if (!stream().finish_writing()) return;
  server().last_answers().keep(std::move(stream()), limits().linger_timeout);
}

Instant OpenConnection::request_deadline() const noexcept {
  const Limits& most = limits();
  const Duration idle =
      used() ? most.idle_timeout : std::min(most.idle_timeout, most.first_request_timeout);
  const Duration grace = used() ? drain_grace : drain_grace_new;
  return after(loop().now(), server().draining() ? std::min(idle, grace) : idle);
}

Instant OpenConnection::head_deadline() noexcept {
  Activity& now = activity();
  if (std::exchange(now.head_number, now.exchange.heads()) != now.exchange.heads()) {
    now.head_started = loop().now();
  }
  const Duration usual = limits().head_timeout;
  return after(now.head_started, server().draining() ? std::min(usual, drain_grace_head) : usual);
}

bool OpenConnection::Arrival::await_ready() {
  connection_.begin_read(Waiting::request, connection_.request_deadline());
  return Awaiter::await_ready();
}

Exchange::Next OpenConnection::Arrival::await_resume() {
  auto bytes = Awaiter::await_resume();
  connection_.end_read();
  if (!bytes) {
    const bool waited_long = connection_.explain(bytes.error()) == Errc::timed_out;
    ServerCore& server = connection_.server();
    if (waited_long && !connection_.used() && !server.draining()) {
      server.counters().silent_connections.add();
    }
    return waited_long ? Exchange::Next::close : Exchange::Next::abort;
  }
  // From here on transport() owns it, until end().
  const Context context{&connection_.loop(), connection_.cancel_};
  Activity* const activity =
      make_block<Activity>(connection_, connection_.server(), context, std::move(*bytes)).release();
  return activity->exchange.advance();
}

bool OpenConnection::Sending::await_ready() {
  connection_.activity().begin_write();
  return Awaiter::await_ready();
}

Exchange::Next OpenConnection::Sending::await_resume() {
  const auto sent = Awaiter::await_resume();
  connection_.activity().end_write(sent ? std::error_code() : sent.error());
  connection_.end();
  return sent ? next_ : Exchange::Next::abort;
}

}  // namespace weir::http
