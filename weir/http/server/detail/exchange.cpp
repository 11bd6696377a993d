#include "weir/http/server/detail/exchange.hpp"

#include <exception>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/server/detail/served_websocket.hpp"

namespace weir::http {

bool Exchange::may_answer(std::error_code error) noexcept {
  return error.category() == parse_error_category() || error == Errc::limit_reached ||
         error == Errc::end_of_stream;
}

Exchange::Next Exchange::begin(BodyLength length) {
  began_in_drain_ = server_.draining();
  call_.begin();
  body_.begin(length, call_.head().expects_continue() && call_.head().version_minor() > 0);
  response_.begin();
  return call_.stage() == Call::Stage::routing ? Next::wait : choose();
}

/// Answers the request if nothing has to wait.
Exchange::Next Exchange::choose() {
  if (!body_.ended()) {
    const auto max = call_.options().body_max.value_or(server_.limits().body_max);
    if (!body_.set_limit(max)) return reject(ParseError::body_too_large);
  }
  if (!call_.is_async()) {
    // A success follows the whole body, because it would hide that the body is malformed.
    if (!body_.ended()) {
      call_.keep_head();
      return Next::wait;
    }
    call_.respond();
    return answer();
  }
  if (call_.needs_only_body()) {
    if (const auto body = body_.try_collect()) {
      call_.respond_with(*body);
      return answer();
    }
  }
  return Next::start;
}

Exchange::Next Exchange::start() {
  if (call_.start()) return answer();
  carrier_.watch_peer(true);
  return Next::wait;
}

Exchange::Next Exchange::reject_head(ParseError error) {
  server_.counters().count_parse_error(error);
  return reject_head(to_status(error));
}

Exchange::Next Exchange::reject_head(Status status) {
  call_.begin_rejected();
  body_.begin({}, false);
  response_.begin();
  call_.reject(status);
  return answer();
}

Exchange::Next Exchange::reject(ParseError error) {
  server_.counters().count_parse_error(error);
  call_.reject(to_status(error));
  return answer();
}

/// Sends a response as far as nothing has to wait.
Exchange::Next Exchange::answer() {
  if (!body_.ended() && !call_.rejected()) return Next::wait;
  if (call_.upgrade() != nullptr) return upgrade();
  switch (response_.send_now()) {
    case Carrier::Sent::whole:
      return Next::finish;
    case Carrier::Sent::part:
      return Next::send_on;
    case Carrier::Sent::nothing:
      break;
  }
  return Next::wait;
}

/// Sends the head that accepts a WebSocket, and gives the socket to the carrier. A body that is in
/// its way refuses it.
Exchange::Next Exchange::upgrade() {
  if (!body_.ended()) call_.replace_response(Status::bad_request);
  call_.check_response();
  if (call_.upgrade() == nullptr) return answer();
  call_.hold();
  auto socket =
      make_block<ServedWebSocket>(server_, call_.route(), std::move(*call_.upgrade()), cancel_);
  response_.send_upgrade();
  finish();
  call_.leave_route();  // the socket keeps it from now on
  carrier_.open_websocket(std::move(socket));
  return Next::upgraded;
}

Task<Exchange::Next> Exchange::run() {
  Next next = Next::wait;
  if (call_.stage() == Call::Stage::routing) {
    if (carrier_.needs_flush()) std::ignore = co_await carrier_.flush();
    co_await call_.wait_for_core_handler();
    next = choose();
  } else if (call_.stage() == Call::Stage::routed && call_.is_async()) {
    next = Next::start;
  }
  if (next == Next::start) next = start();
  if (next == Next::finish || next == Next::upgraded) co_return next;
  call_.hold();  // until the response is sent; after an exception, until nothing runs
  if (response_.state() == ResponseBody::State::begun) {
    co_await response_.send_rest();
    co_return Next::finish;
  }
  if (call_.stage() == Call::Stage::running) {
    // This wait needs no memory, and takes place also if there is none to send earlier responses.
    std::exception_ptr thrown;
    try {
      Result<> sent;
      if (carrier_.needs_flush()) sent = co_await carrier_.flush();
      if (!sent) call_.cancel();
    } catch (...) {
      thrown = std::current_exception();
      call_.cancel();
    }
    co_await call_.not_busy();
    carrier_.watch_peer(false);
    if (thrown) std::rethrow_exception(thrown);
    call_.take_response();
  }
  if (call_.stage() == Call::Stage::routed && call_.has_route()) call_.respond();
  if (reads_on()) {
    body_.set_read_timeout(*call_.response().body().duplex());
    std::ignore = co_await body_.invite();  // the function sees an error
  } else if (!carrier_.gone()) {
    co_await settle_body();
  }
  if (carrier_.gone()) response_.cut();
  if (response_.failed()) co_return Next::finish;
  if (call_.stage() == Call::Stage::routed) call_.respond();
  if (call_.upgrade() != nullptr && upgrade() == Next::upgraded) co_return Next::upgraded;
  co_await response_.send();
  co_return Next::finish;
}

/// Returns true if the function that writes the response reads the body meanwhile.
bool Exchange::reads_on() const noexcept {
  return call_.stage() == Call::Stage::answered && !body_.ended() &&
         call_.response().body().duplex().has_value();
}

/// Returns true if the response does not wait for the rest of a body that the handler did not read.
/// A success waits, and so does the router's own answer: it would hide that the body is malformed.
/// A streamed response waits too.
bool Exchange::answers_early() const {
  if (call_.stage() != Call::Stage::answered || !call_.has_route()) return false;
  const Response& response = call_.response();
  return code_of(response.status()) >= 300 && !response.body().is_stream();
}

/// Waits for the end of a body that the handler did not read, if it is short and the request did
/// not begin during a drain. Otherwise nobody may read it any more, or an early response leaves it
/// to the carrier.
Task<> Exchange::settle_body() {
  if (body_.ended() || call_.rejected()) co_return;
  const std::uint64_t max = server_.limits().unread_body_max;
  const bool is_short = body_.bytes_left() <= max;
  const bool droppable =
      is_short && !body_.was_read() && !body_.awaits_continue() && !began_in_drain_;
  if (body_.drop_received()) co_return;
  if (droppable && !body_.error()) {
    if (answers_early()) co_return;
    const auto dropped = co_await body_.discard(max);
    if (dropped) co_return;
    if (!may_answer(dropped.error())) co_return response_.cut();
    if (dropped.error() == Errc::end_of_stream) call_.reject(Status::bad_request);
  }
  reject_body();
  body_.close();  // a function that streams the response would read a body with a gap
}

void Exchange::count_body_error() noexcept {
  if (body_.error().category() != parse_error_category()) return;
  server_.counters().count_parse_error(static_cast<ParseError>(body_.error().value()));
}

Task<Result<>> Exchange::drop_rest() {
  const Result<> dropped = co_await body_.discard(server_.limits().unread_body_max);
  if (!dropped) count_body_error();
  co_return dropped;
}

/// Replaces the response to a malformed body, unless the handler has read the body and answers with
/// an error itself. A handler that has read a part may answer a body that is too large.
void Exchange::reject_body() {
  if (body_.error().category() != parse_error_category()) return;
  count_body_error();
  const auto error = static_cast<ParseError>(body_.error().value());
  const bool seen = body_.state() == RequestBody::State::failure_read;
  const bool needs_no_more = !seen && error == ParseError::body_too_large;
  if (!body_.was_read()) {
    call_.reject(to_status(error));  // there may be no response yet
  } else if (code_of(call_.response().status()) < 400 && !needs_no_more) {
    call_.replace_response(to_status(error));
  }
}

void Exchange::on_peer_gone() noexcept {
  if (call_.stage() == Call::Stage::running) call_.cancel_without_peer();
}

void Exchange::finish() noexcept {
  response_.report();
  call_.end();
  call_.release();
}

}  // namespace weir::http
