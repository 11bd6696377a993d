#include "weir/http/server/detail/exchange.hpp"

#include <cassert>
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
  body_error_counted_ = false;
  interim_.open();
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
  if (scope_ != nullptr) return Next::wait;  // run() ends its tasks
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
  auto socket = make_block<ServedWebSocket>(server_, call_.route(), std::move(*call_.upgrade()),
                                            context_.cancel);
  response_.send_upgrade();
  finish();
  call_.leave_route();  // the socket keeps it from now on
  carrier_.open_websocket(std::move(socket));
  return Next::upgraded;
}

/// Cancels the tasks of the scope, and waits for their end. It allocates nothing.
class Exchange::ScopeEnd : public Scope::ChildrenFinished {
 public:
  explicit ScopeEnd(Exchange& exchange) noexcept
      : ChildrenFinished(exchange.scope_->scope), exchange_(exchange) {
    exchange.scope_->scope.cancel();
  }
  void await_resume() const noexcept { exchange_.scope_.reset(); }

 private:
  Exchange& exchange_;
};

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
  // The waits for tasks need no memory, and take place also if there is none for the rest.
  std::exception_ptr thrown;
  const bool runs = call_.stage() == Call::Stage::running;
  try {
    Result<> sent;
    if (runs && carrier_.needs_flush()) sent = co_await carrier_.flush();
    if (!sent) call_.cancel();
  } catch (...) {
    thrown = std::current_exception();
    call_.cancel();
  }
  if (runs) co_await call_.not_busy();
  try {
    if (runs) take_response(thrown);
    if (call_.stage() == Call::Stage::routed && call_.has_route()) call_.respond();
  } catch (...) {
    thrown = std::current_exception();
  }
  bool reads = false;
  // Its tasks may read the body of the request only beside the function of a duplex response.
  if (scope_ != nullptr && (thrown || !is_duplex())) co_await ScopeEnd(*this);
  if (thrown) std::rethrow_exception(thrown);
  try {
    reads = reads_on();
    if (reads) {
      body_.set_read_timeout(*call_.response().body().duplex());
      std::ignore = co_await body_.invite();  // the function sees an error
    } else if (!carrier_.gone()) {
      co_await settle_body();
    }
    interim_.close();
    co_await interim_.all_sent();
    next = answer_late();
    if (next == Next::wait) {
      co_await response_.send();
      if (reads) count_body_error();
      next = Next::finish;
      // The end of the response does not wait for the tasks.
      if (scope_ != nullptr && carrier_.needs_flush()) std::ignore = co_await carrier_.flush();
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  if (scope_ != nullptr) co_await ScopeEnd(*this);
  if (thrown) std::rethrow_exception(thrown);
  if (next == Next::upgraded) next = upgrade();
  if (next == Next::wait) co_await response_.send();
  if (next == Next::send_on) co_await response_.send_rest();
  co_return next == Next::upgraded ? next : Next::finish;
}

/// Takes the response of a handler that has returned, or throws what has interrupted the wait.
void Exchange::take_response(const std::exception_ptr& thrown) {
  carrier_.watch_peer(false);
  if (thrown) std::rethrow_exception(thrown);
  call_.throw_if_abandoned();
  call_.take_response();
}

/// Returns what follows the wait for the handler and for the body: wait if send() sends the
/// response, finish if none is sent, and upgraded for a response that accepts a WebSocket.
Exchange::Next Exchange::answer_late() {
  if (carrier_.gone()) response_.cut();
  if (response_.failed()) return Next::finish;
  if (call_.stage() == Call::Stage::routed) call_.respond();
  return call_.upgrade() != nullptr ? Next::upgraded : Next::wait;
}

/// Returns true if the function of the response may read the body of the request.
bool Exchange::is_duplex() const noexcept {
  return call_.stage() == Call::Stage::answered && call_.response().body().duplex().has_value();
}

Scope& Exchange::scope() {
  assert(call_.stage() == Call::Stage::running && "a task of the request asks for the scope");
  if (scope_ == nullptr) scope_ = make_block<RequestScope>(context_, call_.trace());
  return scope_->scope;
}

void Exchange::abandon(std::exception_ptr why) noexcept {
  call_.abandon(std::move(why));
  if (scope_ != nullptr) scope_->scope.cancel();
}

Task<Result<>> Exchange::send_interim(Status status, const Headers& headers) {
  const int code = code_of(status);
  if (code < 100 || code > 199 || status == Status::switching_protocols) {
    co_return fail(Errc::bad_input);
  }
  for (const HeaderField each : headers) {
    if (detail::belongs_to_server(each.name)) co_return fail(Errc::bad_input);
  }
  const RequestHead& head = call_.head();
  if (head.version_minor() == 0) co_return {};
  const bool is_continue = code == 100;
  if (is_continue && head.expects_continue()) co_return co_await body_.invite();
  ResponseHead interim;
  interim.status = status;
  interim.framing = BodyFraming::none;
  interim.lines = headers.lines();
  co_return co_await interim_.send(interim);
}

/// Returns true if the function that writes the response reads the body meanwhile.
bool Exchange::reads_on() const noexcept {
  return is_duplex() && !body_.ended();
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
  if (std::exchange(body_error_counted_, true)) return;
  server_.counters().count_parse_error(static_cast<ParseError>(body_.error().value()));
}

Task<Result<>> Exchange::drop_rest() {
  body_.clear_read_timeout();
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
