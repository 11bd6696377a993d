#include "weir/http/server/detail/response_body.hpp"

#include <cassert>
#include <utility>

#include "weir/base/detail/state_table.hpp"
#include "weir/http/server/detail/response_sink.hpp"

namespace weir::http {
void ResponseBody::change(State next) noexcept {
  // `none` follows every state: another request begins.
  static constexpr weir::detail::StateTable<State, 5> table{
      {State::none, {State::begun, State::sent, State::dropped}},
      {State::begun, {State::sent, State::cut}},
  };
  table.change(state_, next);
}

/// Returns the body of a response that has no stream, as it is sent.
std::string_view ResponseBody::text() const {
  return call_.head_only() ? std::string_view() : call_.response().body().text();
}

ResponseBody::Sent ResponseBody::send_now() {
  Sent sent = Sent::nothing;
  if (call_.has_common_head()) sent = carrier_.send_common(call_.response());
  if (sent == Sent::nothing) {
    call_.check_response();
    if (carrier_.is_connect() && code_of(call_.response().status()) < 300) {
      call_.replace_response(Status::bad_request);  // the client would take it for a tunnel
    }
    const bool is_stream = call_.response().body().is_stream();
    if (is_stream && !call_.head_only()) return Sent::nothing;
    sent = carrier_.send_message(call_.response_head(), text());
    if (is_stream && sent == Sent::whole)
      call_.drop_response();  // its content may be the handler's
  }
  change(sent == Sent::whole ? State::sent : State::begun);
  return sent;
}

Task<> ResponseBody::send() {
  if (call_.response().body().is_stream() && call_.cancel_reason() == Call::CancelReason::removal) {
    // It was stopped while the client sent its body. No cancellation would end the function.
    call_.replace_response(Status::service_unavailable);
  }
  const Sent sent = send_now();
  if (sent == Sent::nothing) co_return co_await stream();
  if (sent == Sent::part) co_await send_rest();
}

Task<> ResponseBody::send_rest() {
  const auto rest = co_await carrier_.send_rest(call_.response_head(), text());
  if (!rest) co_return cut();
  change(State::sent);
}

void ResponseBody::send_upgrade() {
  send_head(false);
  change(State::sent);
}

void ResponseBody::cut() noexcept {
  if (state_ == State::none) change(State::dropped);
  if (state_ == State::begun) change(State::cut);
}

void ResponseBody::report() noexcept {
  if (state_ == State::sent) return call_.report_sent();
  cut();
  call_.report_cut(state_ == State::cut ? carrier_.unsent() : Call::nothing_sent);
}

void ResponseBody::send_head(bool ends) {
  change(State::begun);
  carrier_.send_head(call_.response_head(), ends);
}

Task<Result<>> ResponseBody::send_piece(Bytes piece) {
  if (state_ == State::none && !carrier_.gone()) send_head(false);
  co_return co_await carrier_.send_piece(piece);
}

Result<std::size_t> ResponseBody::try_send_file(const os::FilePart& part) {
  if (!carrier_.may_send_file()) return 0;
  if (state_ == State::none) send_head(false);
  return carrier_.try_send_file(part);
}

Call::StreamClient ResponseBody::client() const noexcept {
  using Client = Call::StreamClient;
  if (carrier_.gone()) return state_ == State::none ? Client::gone : Client::gone_with_head;
  return state_ == State::none ? Client::waits : Client::has_head;
}

/// Sends the body as its function writes it.
Task<> ResponseBody::stream() {
  ResponseSink sink(*this, call_.response().body().length());
  Result<> written;
  std::exception_ptr thrown;
  std::optional<Task<Result<>>> writing;
  try {
    writing.emplace(call_.stream_to(sink));
  } catch (...) {
    thrown = std::current_exception();  // the function itself, before it has made a task
  }
  if (writing && !call_.run(*writing)) {
    try {
      if (state_ == State::none && !carrier_.gone()) send_head(false);
      carrier_.watch_peer(true);
      Result<> sent;
      if (carrier_.needs_flush()) sent = co_await carrier_.flush();
      if (!sent) call_.cancel();
    } catch (...) {
      thrown = std::current_exception();  // there is no memory, but the task runs
      call_.cancel();
    }
    co_await call_.not_busy();
    call_.throw_if_abandoned();
    carrier_.watch_peer(false);
  }
  try {
    if (writing && !thrown) written = writing->handle().promise().take();
  } catch (...) {
    thrown = std::current_exception();
  }
  writing.reset();
  const bool whole = call_.end_stream(sink, written, thrown, client());
  if (!whole && state_ == State::none && !carrier_.gone()) co_return co_await send();
  if (!whole || carrier_.gone()) co_return cut();
  const std::string_view trailers = sink.trailers().lines();
  const bool ends = state_ == State::none && trailers.empty();
  if (state_ == State::none) send_head(ends);
  if (!ends) carrier_.end(trailers);
  change(State::sent);
}

}  // namespace weir::http
