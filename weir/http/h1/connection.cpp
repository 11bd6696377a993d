#include "weir/http/h1/connection.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "weir/http/h1/open_connection.hpp"
#include "weir/http/h1/writer.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

/// Works on what has arrived until the input is used up. Gives idle, or how to close.
Task<Exchange::Next> work_on(OpenConnection& connection, Exchange::Next next) {
  using Next = Exchange::Next;
  Transport& transport = connection.activity();
  Exchange& exchange = connection.activity().exchange;
  for (;;) {
    if (next == Next::slow) {
      next = co_await exchange.finish();
      if (next == Next::idle) next = exchange.advance();
      continue;
    }
    if (next == Next::abort) co_return next;
    if (auto sent = co_await transport.send(); !sent) co_return Next::abort;
    if (next != Next::more) co_return next;
    auto filled = co_await transport.fill(Transport::Waiting::head, connection.head_deadline());
    if (!filled && filled.error() == Errc::timed_out && exchange.inside_head()) {
      next = exchange.refuse(Refusal::head_timed_out);
    } else if (!filled) {
      co_return Next::abort;
    } else {
      next = exchange.advance();
    }
  }
}

/// Works on what has arrived until the input is used up, and drops the activity; then lingers where
/// that is how to close. Gives idle where the connection goes on.
Task<Exchange::Next> work(OpenConnection& connection, Exchange::Next next) {
  if (connection.active()) {
    next = co_await work_on(connection, next);
    connection.end();
  }
  if (next == Exchange::Next::close) co_await connection.linger(connection.limits());
  co_return next;
}

Task<> serve_opened(OpenConnection connection) {
  using Next = Exchange::Next;
  connection.open((co_await this_context()).cancel);
  Next next = Next::idle;
  try {
    while (next == Next::idle && !connection.cancelled()) {
      if (connection.share_used()) static_cast<void>(co_await sleep(Duration::zero()));
      next = co_await connection.bytes();
      if (connection.active() && (next == Next::idle || next == Next::close_now)) {
        // The usual way: everything is answered, one send is left.
        next = co_await connection.send_answers(next);
      } else {
        next = co_await work(connection, next);
      }
    }
  } catch (...) {
    // There was no memory to wait for what runs; still it is awaited.
    if (!connection.active()) throw;
    connection.activity().exchange.abandon(std::current_exception());
  }
  if (connection.active()) co_await connection.activity().exchange.abandoned();
  if (next == Next::close_now) connection.leave_answer();
}

}  // namespace

Task<> serve_connection(ServerCore::Place place, tcp::Stream stream) {
  return serve_opened(OpenConnection(std::move(place), std::move(stream)));
}

Task<> turn_away(ServerCore& server, tcp::Stream stream) {
  const ServerCore::TurningAway turning_away(server);
  TimedStream timed(std::move(stream));
  std::optional<Transport> transport(std::in_place, timed, server.limits());
  Buffer& output = transport->writable_output();
  ResponseHead head;
  head.status = Status::service_unavailable;
  head.connection = ConnectionField::close;
  head.date = &server.date();
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.grow(static_cast<std::size_t>(write_head(head, start) - start));
  const auto sent = co_await transport->send();
  transport.reset();
  if (sent && !turning_away.too_many()) co_await timed.linger(server.limits());
}

}  // namespace weir::http
