// The requests of an HTTP/2 connection. h2_connection.cpp has the connection.

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
H2Exchange::H2Exchange(H2Connection& connection) noexcept
    : connection_(connection),
      call_(connection.server(), *this, connection.context()),
      body_rate_(connection.server().limits().body_rate),
      write_rate_(connection.server().limits().write_rate) {}

H2Exchange::~H2Exchange() = default;

os::Address H2Exchange::peer_address() const {
  return connection_.peer_address();
}

const TlsInfo* H2Exchange::tls() const noexcept {
  return connection_.stream().tls();
}

void H2Exchange::reuse() noexcept {
  call_.drop_response();
  head_sent_ = false;
  tunnel_ = TunnelState::none;
  forget_reads();
}

void H2Exchange::begin(bool is_connect) {
  tunnel_ = is_connect ? TunnelState::asked : TunnelState::none;
  const bool has_body = !remote_ended() && !is_connect;
  length_ = has_body ? head().length_in_stream() : BodyLength();
  call_.begin();
  body_max_ = UINT64_MAX;  // until the route is known
  awaits_continue_ = head().expects_continue() && !remote_ended();
  if (call_.stage() == Call::Stage::routing) return spawn_run();
  limit_body();
  if (body_error_) return reject(ParseError::body_too_large);
  if (!call_.is_async()) {
    if (!remote_ended() && !is_connect && wait_for_end()) return;
    if (call_.stage() == Call::Stage::routed) call_.respond();
    return answer_now();
  }
  if (remote_ended() && call_.needs_only_body()) {
    call_.respond_with({});
    return answer_now();
  }
  spawn_run();
}

/// Begins to apply the limit of the route, which is known now, to the body.
void H2Exchange::limit_body() {
  body_max_ = call_.options().body_max.value_or(connection_.server().limits().body_max);
  const bool too_large = std::max(announced_bytes(), received_) > body_max_;
  if (too_large && !body_error_) body_error_ = ParseError::body_too_large;
}

void H2Exchange::reject_head(ParseError error) {
  call_.begin_rejected();
  reject(error);
}

void H2Exchange::reject(ParseError error) {
  connection_.server().counters().count_parse_error(error);
  call_.reject(to_status(error));
  answer_now();
}

/// Sends a response that is complete, or begins to.
void H2Exchange::answer_now() {
  if (call_.upgrade() != nullptr) {
    call_.hold();
    return spawn_run();
  }
  if (send_response()) {
    report_end();
    return finish();
  }
  waited_ = true;
  call_.hold();
  if (call_.response().body().is_stream()) return spawn_run();
}

/// Waits for the end of a body that the handler does not read, and drops it: a success would hide
/// that the body is malformed. An error or a redirect of the handler does not wait.
bool H2Exchange::wait_for_end() {
  if (awaits_continue_ || announced_bytes() > connection_.server().limits().unread_body_max) {
    return false;
  }
  call_.keep_head();
  if (call_.has_route()) {
    call_.respond();
    const Response& response = call_.response();
    if (code_of(response.status()) >= 300 && !response.body().is_stream()) return false;
  }
  call_.hold();
  waited_ = awaits_end_ = true;
  connection_.watch_progress();
  return true;
}

void H2Exchange::end_wait() {
  awaits_end_ = false;
  if (call_.stage() == Call::Stage::routed) call_.respond();
  answer_now();
}

void H2Exchange::check_body(Duration waited) {
  const std::uint64_t before = std::exchange(received_at_check_, received_);
  const bool allowed = connection_.session().may_receive();
  body_rate_.record(allowed ? waited : Duration::zero(), received_ - before);
  if (!body_rate_.exhausted()) return;
  awaits_end_ = false;
  body_error_ = ParseError::body_timed_out;
  reject(ParseError::body_timed_out);
}

void H2Exchange::spawn_run() {
  waited_ = true;
  Scope* const scope = connection_.scope();
  if (scope == nullptr) return connection_.wait_for_scope(*this);
  Task<> running = run();
  runs_ = true;
  scope->spawn(std::move(running));
}

/// Runs a request that has to wait, and then destroys the exchange.
Task<> H2Exchange::run() {
  bool failed = false;
  try {
    co_await respond();
  } catch (...) {
    failed = true;
  }
  report_end();
  call_.release();
  if (failed && !closed()) connection_.reset(*this, H2Error::internal_error);
  finish();
}

Task<> H2Exchange::respond() {
  if (call_.stage() == Call::Stage::routing) {
    co_await call_.wait_for_core_handler();
    limit_body();
    if (body_error_ == make_error_code(ParseError::body_too_large)) {
      call_.reject(to_status(body_error_));
    } else if (!call_.is_async()) {
      call_.respond();
    }
  }
  if (call_.stage() == Call::Stage::routed && !call_.start()) {
    call_.hold();
    co_await call_.not_busy();
    call_.take_response();
  }
  if (call_.upgrade() != nullptr) co_return co_await serve_websocket();
  const bool may_have_body = !remote_ended() && tunnel_ == TunnelState::none;
  if (may_have_body && !was_read() && !gone_) co_await drop_body();
  if (gone_ || closed()) co_return;
  if (body_error_.category() == parse_error_category()) {
    connection_.server().counters().count_parse_error(static_cast<ParseError>(body_error_.value()));
    if (code_of(call_.response().status()) < 400 && !needs_no_more()) {
      call_.replace_response(to_status(body_error_));
    }
  }
  if (!head_sent_ && send_response()) co_return;
  call_.hold();
  if (call_.response().body().is_stream()) co_await send_stream();
  if (has_pending()) std::ignore = co_await output_.wait();
}

/// Returns true if the handler has read a part of a body that is too large, and has not met its
/// end.
bool H2Exchange::needs_no_more() const noexcept {
  const bool too_large = body_error_ == make_error_code(ParseError::body_too_large);
  return too_large && was_read() && !error_was_read_;
}

/// Drops a body that the handler has not read, if it is short, before a success is sent; see
/// wait_for_end().
Task<> H2Exchange::drop_body() {
  const std::uint64_t most = connection_.server().limits().unread_body_max;
  const bool hides_body = code_of(call_.response().status()) < 300;
  if (!hides_body || awaits_continue_ || announced_bytes() > most) co_return;
  call_.hold();
  drops_ = true;
  drop_arrived();
  connection_.wake_writer();
  while (!remote_ended() && !body_error_ && received_ <= most) {
    const auto more = co_await fetch();
    if (!more) co_return;
  }
}

/// Counts and reports the response, or the part of it that was sent. That of a WebSocket is
/// complete since its head.
void H2Exchange::report_end() noexcept {
  if (tunnel_ == TunnelState::open || tunnel_ == TunnelState::ended) return;
  if (local_ended() && !gone_) return call_.report_sent();
  call_.report_cut(head_sent_ ? pending_.size() : Call::nothing_sent);
}

/// Ends the exchange, whose end was reported.
void H2Exchange::finish() noexcept {
  call_.end();
  if (may_linger()) return connection_.linger(*this);
  if (!closed()) {
    const bool whole = local_ended();
    connection_.reset(*this, whole ? H2Error::no_error : H2Error::internal_error);
  }
  connection_.end(*this);
}

// The rest of a body whose request is answered. RST_STREAM may tell the client to stop (RFC 9113
// §8.1), but some clients, such as curl 7.88, then lose a response that they have not read.

/// Returns true if the client may still send the body of the answered request. One that was too
/// slow before has no more time, and the bytes of a tunnel are no body.
bool H2Exchange::may_linger() const noexcept {
  const bool too_slow = body_error_ == make_error_code(ParseError::body_timed_out);
  const bool answered = local_ended() && !closed() && !gone_;
  return answered && tunnel_ == TunnelState::none && !too_slow && !connection_.session().failed();
}

void H2Exchange::begin_linger() {
  linger_.emplace(connection_.server().limits(), LateInput::body, connection_.loop().now());
  waited_ = true;
  call_.leave_route();
  call_.drop_response();
  if (collects_) {
    lent_ = {};
    arrived_ = {};
    allow_more();
  } else {
    return_lent();
    drop_arrived();
  }
}

void H2Exchange::drop_late(std::size_t count, bool end_stream) {
  connection_.session().consume(*this, count);
  const bool allowed = linger_->count(count, connection_.loop().now());
  if (!allowed) connection_.reset(*this, H2Error::no_error);
  if (!allowed || end_stream) connection_.end(*this);
}

void H2Exchange::check_linger() {
  const Instant now = connection_.loop().now();
  if (connection_.server().draining()) linger_->drain(now);
  if (now < linger_->deadline()) return;
  connection_.reset(*this, H2Error::no_error);
  connection_.end(*this);
}

// The response.

/// Sends the head of the response.
void H2Exchange::send_head(bool ends) {
  head_sent_ = true;
  HpackEncoderState& encoder = connection_.encoder();
  const ResponseHead head = call_.response_head();
  const auto write = [&](char* out) {
    return write_response_block(head, encoder.write_size_update(out));
  };
  connection_.session().send_headers(
      *this, HpackEncoderState::size_update_max + response_block_size_max(head), write, ends);
  connection_.wake_writer();
}

/// Sends the response as far as possible. Returns false if a part of its body is left.
bool H2Exchange::send_response() {
  if (tunnel_ == TunnelState::asked && code_of(call_.response().status()) < 300) {
    call_.replace_response(Status::bad_request);  // the client would take it for a tunnel
  }
  if (call_.has_common_head()) {
    const Response& response = call_.response();
    const std::string_view text = response.body().text();
    const ResponseBlockCache& block =
        connection_.server().heads().common_block(response.content_type());
    HpackEncoderState& encoder = connection_.encoder();
    head_sent_ = true;
    const auto write = [&](char* out) { return block.write(text.size(), encoder, out); };
    if (connection_.session().send_whole(*this, block.size_max, write, to_bytes(text))) {
      return true;  // finish() wakes the writer
    }
    connection_.session().send_headers(*this, block.size_max, write, text.empty());
    return send_text(text);
  }
  call_.check_response();
  const bool head_only = call_.head_only();
  const bool is_stream = call_.response().body().is_stream();
  if (is_stream && !head_only) return false;
  const std::string_view text = head_only ? std::string_view() : call_.response().body().text();
  send_head(text.empty());
  if (is_stream) call_.drop_response();  // its content may be the handler's
  return send_text(text);
}

/// Sends a text that ends the stream. The writer of the connection sends what the windows and the
/// output do not allow yet. Returns false if something is left.
bool H2Exchange::send_text(std::string_view text) {
  connection_.wake_writer();
  Bytes rest = to_bytes(text);
  while (!rest.empty() && !connection_.sends_in_place(rest.size())) {
    const std::size_t sent = connection_.session().send_data(*this, rest, true);
    rest = rest.subspan(sent);
    if (sent == 0) break;
  }
  if (rest.empty()) return true;
  pending_ = rest;
  pending_ends_ = true;
  output_.reset();
  connection_.session().want_send(*this);
  connection_.watch_progress();
  return false;
}

void H2Exchange::send_part() {
  std::size_t sent = 0;
  if (connection_.sends_in_place(pending_.size())) {
    sent = connection_.send_in_place(*this, pending_, pending_ends_);
  }
  if (sent == 0) sent = connection_.session().send_data(*this, pending_, pending_ends_);
  assert(sent != 0 && "it was the next sender");
  sent_since_check_ += static_cast<std::uint32_t>(sent);
  count_sent(sent);
  pending_ = pending_.subspan(sent);
  if (!pending_.empty()) return;
  connection_.session().stop_sending(*this);
  output_.set();
  if (is_tunnel()) return on_piece_sent();
  if (runs_) return;
  report_end();
  call_.release();
  finish();
}

bool H2Exchange::is_too_slow(Duration waited, std::uint32_t sent) noexcept {
  const std::uint32_t sent_here = std::exchange(sent_since_check_, 0);
  if (pending_.empty()) return false;
  if (is_tunnel()) return false;  // WebSocketLimits::write_timeout is its limit, on every carrier
  // A stream whose own window is open only waits behind others of the connection.
  const bool here = send_window() <= 0;
  const bool blocked = here || !connection_.session().may_send();
  write_rate_.record(blocked ? waited : Duration::zero(), here ? sent_here : sent);
  return write_rate_.exhausted();
}

/// Sends each piece of a streamed body.
class H2Exchange::Sink final : public ResponseSink {
 public:
  Sink(H2Exchange& exchange, std::optional<std::uint64_t> length) noexcept
      : ResponseSink(length), exchange_(exchange) {}

 private:
  Task<Result<>> send(Bytes piece) override { return exchange_.send_piece(piece); }

  H2Exchange& exchange_;
};

Task<Result<>> H2Exchange::send_piece(Bytes piece) {
  if (gone_ || closed()) co_return fail(Errc::closed);
  if (!head_sent_) send_head(false);
  pending_ = piece;
  if (!connection_.sends_in_place(piece.size())) {
    pending_ = piece.subspan(connection_.session().send_data(*this, piece, false));
  }
  connection_.wake_writer();
  if (pending_.empty()) co_return {};
  pending_ends_ = false;
  output_.reset();
  connection_.session().want_send(*this);
  connection_.watch_progress();
  const auto waited = co_await output_.wait();
  if (!pending_.empty()) {
    pending_ = {};
    connection_.session().stop_sending(*this);
  }
  if (!waited) co_return fail(waited.error());
  if (gone_ || closed()) co_return fail(Errc::closed);
  co_return {};
}

/// Sends the body as its function writes it. A part of an error page may be pending afterwards.
Task<> H2Exchange::send_stream() {
  if (call_.cancel_reason() == Call::CancelReason::removal) {
    // It was stopped while the client sent its body. No cancellation would end the function.
    call_.replace_response(Status::service_unavailable);
    send_response();
    co_return;
  }
  Sink sink(*this, call_.response().body().length());
  Result<> written;
  std::exception_ptr thrown;
  std::optional<Task<Result<>>> writing;
  try {
    writing.emplace(call_.stream_to(sink));
  } catch (...) {
    thrown = std::current_exception();  // the function itself, before it has made a task
  }
  if (writing) {
    if (!call_.run(*writing)) {
      try {
        if (!head_sent_ && !closed()) send_head(false);
      } catch (...) {
        thrown = std::current_exception();  // there is no memory, but the task runs
        call_.cancel();
      }
      co_await call_.not_busy();
    }
    try {
      if (!thrown) written = writing->handle().promise().take();
    } catch (...) {
      thrown = std::current_exception();
    }
    writing.reset();
  }
  using Client = Call::StreamClient;
  Client client = head_sent_ ? Client::has_head : Client::waits;
  if (gone_ || closed()) client = head_sent_ ? Client::gone_with_head : Client::gone;
  const bool whole = call_.end_stream(sink, written, thrown, client);
  if (gone_ || closed()) co_return;
  if (whole) {
    const std::string_view trailers = sink.trailers().lines();
    if (!head_sent_) send_head(trailers.empty());
    if (!local_ended()) send_end(connection_.session(), connection_.encoder(), *this, trailers);
  } else if (!head_sent_) {
    send_response();
  }
  connection_.wake_writer();  // finish() resets a stream that has not ended
}

// The body of the request.

void H2Exchange::on_data(Bytes bytes, bool end_stream) {
  if (lingers()) return drop_late(bytes.size(), end_stream);
  received_ += bytes.size();
  if (received_ > body_max_ && !body_error_) body_error_ = ParseError::body_too_large;
  if (body_error_ || local_ended() || awaits_end_ || drops_) {
    connection_.session().consume(*this, bytes.size());
  } else if (!bytes.empty()) {
    add_arrived(bytes);
    if (collects_) {
      add_collected(bytes.size());
    } else {
      limit_share();
    }
  }
  if (is_tunnel()) return give_input();
  input_.set();
  if (!awaits_end_) return;
  if (body_error_) {
    awaits_end_ = false;
    return reject(ParseError::body_too_large);
  }
  const bool too_long = received_ > connection_.server().limits().unread_body_max;
  if (end_stream || too_long) end_wait();
}

void H2Exchange::add_arrived(Bytes bytes) {
  if (arrived_.room().size() < bytes.size()) {
    // A body that arrives faster than it is read gets a large buffer in one step.
    constexpr std::size_t large = 64 * 1024;
    const std::size_t more = arrived_.empty() ? 0 : large - std::min(large, arrived_.size());
    arrived_.make_room(std::max(bytes.size(), more));
  }
  std::memcpy(arrived_.room().data(), bytes.data(), bytes.size());
  arrived_.commit(bytes.size());
}

/// Returns the bytes beyond the share of this body to the window of the connection. A body that its
/// handler does not read would otherwise keep those of the other streams from arriving. The window
/// of the stream still bounds the bytes.
void H2Exchange::limit_share() {
  const std::size_t held = lent_.size() + arrived_.size() - returned_;
  const std::size_t share = connection_.window_share();
  if (held <= share) return;
  returned_ += held - share;  // also if there is no memory for the WINDOW_UPDATE
  connection_.session().consume_on_connection_only(*this, held - share);
  connection_.wake_writer();
}

/// Returns how many of `count` bytes that leave the buffers the connection has back already.
std::size_t H2Exchange::take_returned(std::size_t count) noexcept {
  const std::size_t taken = std::min(count, returned_);
  returned_ -= taken;
  return taken;
}

/// Returns the last piece of read() to the windows, unless another one is lent.
void H2Exchange::return_lent() {
  const std::size_t lent = std::exchange(lent_, {}).size();
  connection_.session().consume_on_connection_only(*this, lent - take_returned(lent));
  connection_.session().allow_more(*this, lent);
}

void H2Exchange::drop_arrived() {
  const std::size_t count = std::exchange(arrived_, {}).size();
  H2Session& session = connection_.session();
  session.consume_on_connection_only(*this, count - take_returned(count));
  session.allow_more(*this, count);
}

/// Counts bytes that are added to a collected body.
void H2Exchange::add_collected(std::size_t count) {
  connection_.session().consume_on_connection_only(*this, count - take_returned(count));
  collected_ += count;
  withheld_ += count;
  connection_.add_collected(*this, count);
}

void H2Exchange::allow_more() {
  connection_.session().allow_more(*this, std::exchange(withheld_, 0));
}

void H2Exchange::on_end() {
  if (lingers()) return connection_.end(*this);
  if (is_tunnel()) return give_input();
  input_.set();
  if (awaits_end_) end_wait();
}

void H2Exchange::on_rejected_trailers(ParseError error) {
  trailers_.clear();
  if (lingers()) return connection_.end(*this);
  if (!body_error_) body_error_ = error;
  if (is_tunnel()) return give_input();
  input_.set();
  if (!std::exchange(awaits_end_, false)) return;
  reject(error);
}

void H2Exchange::on_gone() {
  if (lingers()) return connection_.end(*this);
  gone_ = true;
  if (!body_error_) body_error_ = make_error_code(Errc::closed);
  input_.set();
  output_.set();
  if (is_tunnel()) give_input();
  end_send(body_error_);
  if (!runs_) {
    report_end();
    call_.release();
    return finish();
  }
  if (call_.stage() == Call::Stage::running) call_.cancel_without_peer();
}

/// Waits until more of the body arrives. Sends 100 (Continue) first if the client waits for it.
Task<Result<>> H2Exchange::fetch() {
  if (std::exchange(awaits_continue_, false) && received_ == 0 && !head_sent_ && !closed()) {
    HpackEncoderState& encoder = connection_.encoder();
    const auto write = [&](char* out) {
      return write_hpack_status(Status(100), encoder.write_size_update(out));
    };
    connection_.session().send_headers(
        *this, HpackEncoderState::size_update_max + hpack_status_size_max, write, false);
    connection_.wake_writer();
  }
  input_.reset();
  constexpr Duration blocked_interval = std::chrono::seconds(1);
  Loop& loop = connection_.loop();
  const H2Session& session = connection_.session();
  for (bool allowed = false; !allowed;) {
    // A wait does not count if the windows did not allow the client to send.
    allowed = session.may_receive() && !connection_.needs_window(*this);
    const Instant start = loop.now();
    const std::uint64_t before = received_;
    const Duration most =
        allowed ? body_rate_.time_left() : std::max(body_rate_.time_left(), blocked_interval);
    auto waiting = as_task(input_.wait());
    const auto waited = co_await timeout(most, std::move(waiting));
    allowed = allowed && session.may_receive() && !connection_.needs_window(*this);
    body_rate_.record(allowed ? loop.now() - start : Duration::zero(), received_ - before);
    if (waited) co_return {};
    if (waited.error() != Errc::timed_out) co_return fail(waited.error());
  }
  body_error_ = ParseError::body_timed_out;
  co_return fail(body_error_);
}

/// Returns the error of the body for the handler.
std::unexpected<std::error_code> H2Exchange::fail_read() noexcept {
  error_was_read_ = true;
  return fail(body_error_);
}

Task<Result<Bytes>> H2Exchange::read_piece() {
  const std::size_t lent = std::exchange(lent_, {}).size();
  const std::size_t returned = take_returned(lent);
  if (lent != 0 && !closed()) {
    connection_.session().consume_and_grow(*this, lent, returned);
    connection_.wake_writer();
  }
  while (arrived_.empty()) {
    if (body_error_) co_return fail_read();
    if (remote_ended()) co_return Bytes();
    WEIR_CO_TRY(co_await fetch());
  }
  lent_ = std::exchange(arrived_, {});
  co_return lent_.bytes();
}

Task<Result<std::string_view>> H2Exchange::collect() {
  if (!std::exchange(collects_, true)) {
    // on_data() consumes the rest of a frame that is incomplete.
    return_lent();
    add_collected(arrived_.size());
    connection_.wake_writer();
  }
  while (!remote_ended() || body_error_) {
    if (body_error_) co_return fail_read();
    WEIR_CO_TRY(co_await fetch());
  }
  if (!arrived_.empty()) lent_ = std::exchange(arrived_, {});
  co_return lent_.text();
}

}  // namespace weir::http
