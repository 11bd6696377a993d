#include "weir/http/server/detail/h1/h1_connection.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {

H1Connection::H1Connection(ServerState& server, Connection& connection, const Context& context,
                           Buffer input) noexcept
    : ConnectionIo(connection, server.limits(), std::move(input)),
      server_(server),
      context_(context),
      parser_(server.limits().head, &server.host_line_cache()),
      carrier_(*this, server, exchange_, context),
      exchange_(server, carrier_, context) {}

Task<H1Connection::Action> H1Connection::run(Action action) {
  for (;;) {
    if (action == Action::finish) {
      action = co_await finish();
      if (action == Action::idle) action = turn_share_used() ? Action::next_turn : advance();
      continue;
    }
    if (action == Action::abort || action == Action::http2) co_return action;
    const bool ends = action == Action::close || action == Action::close_now;
    if (ends && !writing() && !broken() && !output().empty()) {
      const bool sent = co_await write_last_output();
      if (sent) carrier_.set_close_mode(CloseMode::orderly);
      co_return sent ? action : Action::abort;
    }
    if (auto sent = co_await send(); !sent) co_return Action::abort;
    if (ends) carrier_.set_close_mode(CloseMode::orderly);
    if (action == Action::next_turn) {
      const auto slept = co_await sleep(Duration::zero());
      if (!slept) co_return Action::abort;
      action = advance();
      continue;
    }
    if (action != Action::read_more) co_return action;
    auto filled = co_await fill(ReadState::head, head_deadline());
    const bool late = !filled && filled.error() == Errc::timed_out;
    if (connection().evicted() && (filled || late)) {
      // The bytes of this read may have arrived before the eviction.
      action = parser_.started() ? end_evicted() : Action::abort;
    } else if (late && parser_.started()) {
      action = reject_head(ParseError::head_timed_out);
    } else if (!filled) {
      co_return Action::abort;
    } else {
      action = advance();
    }
  }
}

/// Returns the deadline of the head that is being read, counted from the arrival of its first
/// bytes.
Instant H1Connection::head_deadline() noexcept {
  if (head_started_ == never) head_started_ = server_.loop().now();
  const Duration usual = server_.limits().head_timeout;
  const Duration most = server_.draining() ? std::min(usual, Connection::drain_grace_head) : usual;
  return after(head_started_, most);
}

H1Connection::Action H1Connection::advance() {
  for (;;) {
    if (input().empty()) return Action::idle;
    if (http2_allowed_) {
      const std::string_view preface = H2Session::client_preface;
      const std::size_t size = std::min(preface.size(), input().size());
      if (input().text().substr(0, size) == preface.substr(0, size)) {
        return size == preface.size() ? Action::http2 : Action::read_more;
      }
    }
    const ParseResult parsed = parser_.parse(input().text(), exchange_.head());
    if (parsed.kind == ParseResult::Kind::incomplete) return Action::read_more;
    if (parsed.kind == ParseResult::Kind::error) return reject_head(parsed.error);
    input().consume(parsed.consumed);
    if (connection().proof_ended()) return end_unproven();
    head_started_ = never;
    http2_allowed_ = false;
    const Action action = take_next(exchange_.begin(carrier_.begin(exchange_.head())));
    if (action != Action::idle) return action;
    if (turn_share_used()) return Action::next_turn;
  }
}

/// Closes the connection without an answer, as if the request had met the end of idle_timeout. A
/// client then repeats an idempotent request on another connection (RFC 9112 §9.3.1).
H1Connection::Action H1Connection::end_unproven() noexcept {
  if (exchange_.head().has_body()) late_input_ = LateInput::body;
  return Action::close;
}

/// Tells a client whose head has not arrived that the server is full.
H1Connection::Action H1Connection::end_evicted() {
  carrier_.begin_rejected();
  return take_next(exchange_.reject_head(Status::service_unavailable));
}

/// Rejects a head that cannot be parsed, after which the connection closes. A body may follow a
/// head that is only too long, or asks for what this server does not do.
H1Connection::Action H1Connection::reject_head(ParseError error) {
  const Status status = to_status(error);
  if (status != Status::bad_request && status != Status::request_timeout) {
    late_input_ = LateInput::body;
  }
  carrier_.begin_rejected();
  return take_next(exchange_.reject_head(error));
}

/// Takes the step behind a head.
H1Connection::Action H1Connection::take_next(Exchange::Next next) {
  if (next == Exchange::Next::start) next = exchange_.start();
  if (next == Exchange::Next::upgraded) return end_request();
  if (next != Exchange::Next::finish) return Action::finish;
  exchange_.finish();
  const Action action = end_request();
  return action == Action::close && peer_sends_no_more() ? Action::close_now : action;
}

/// Returns true if the peer should send nothing more, so that the server need not read on. The
/// peer requested the close itself (RFC 9112 §9.6: it "MUST NOT send further requests"). The
/// request had no body, because some old clients send an empty line behind one.
bool H1Connection::peer_sends_no_more() const noexcept {
  const RequestHead& head = call().head();
  return !head.keep_alive() && !call().rejected() && !head.has_body() && input().empty();
}

/// Returns what follows a request that has ended.
H1Connection::Action H1Connection::end_request() {
  if (exchange_.response().failed()) return Action::abort;
  carrier_.release_piece();
  if (carrier_.websocket() != nullptr) return Action::websocket;
  if (carrier_.keeps_alive()) return Action::idle;
  expect_rest_of_body();
  return Action::close;
}

/// Lets the closing connection read the rest of a body, unless the peer sends it too slowly.
void H1Connection::expect_rest_of_body() noexcept {
  if (exchange_.body().ended() || exchange_.body().too_slow()) return;
  late_input_ = LateInput::body;
}

/// Finishes a request that has to wait.
Task<H1Connection::Action> H1Connection::finish() {
  constexpr std::size_t room_for_head = 1024;
  if (output().owns_memory() && output().room().size() < room_for_head && !writing()) {
    const auto sent = co_await send();
    if (!sent) exchange_.on_peer_gone();
  }
  const Exchange::Next next = co_await exchange_.run();
  if (next == Exchange::Next::finish) exchange_.finish();
  Action action = end_request();
  if (action == Action::idle && !exchange_.body().ended()) action = co_await discard_body();
  co_return carrier_.gone() ? Action::abort : action;
}

/// Reads and drops the rest of the body after an early response.
/// Returns: idle, or the way to close.
Task<H1Connection::Action> H1Connection::discard_body() {
  const Result<> dropped = co_await exchange_.drop_rest();
  if (dropped) co_return Action::idle;
  expect_rest_of_body();
  co_return Exchange::may_answer(dropped.error()) ? Action::close : Action::abort;
}

}  // namespace weir::http
