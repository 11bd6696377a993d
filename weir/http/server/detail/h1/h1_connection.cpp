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
namespace {

/// Sends each piece of a streamed body when the piece is written.
class StreamSink final : public ResponseSink {
 public:
  StreamSink(ConnectionIo& io, bool chunked, std::optional<std::uint64_t> length) noexcept
      : ResponseSink(length), io_(io), chunked_(chunked) {}

 private:
  Task<Result<>> send(Bytes piece) override {
    if (!chunked_) return io_.send(piece);
    char* const line = size_line_.data();
    const std::string_view size(
        line, static_cast<std::size_t>(write_chunk_size(piece.size(), line) - line));
    return io_.send(to_bytes(size), piece, to_bytes(chunk_end));
  }
  Result<std::size_t> try_send_file(const os::FilePart& part) override {
    if (chunked_) return 0;
    const std::size_t head = io_.output().size();
    const auto sent = io_.try_send_file(part);
    if (io_.output().size() != head) set_used();
    return sent;
  }

  ConnectionIo& io_;
  std::array<char, chunk_size_max> size_line_;
  bool chunked_;
};

/// Returns true if the client can still receive a response after this error of
/// BodyReader::discard().
bool may_answer(std::error_code error) noexcept {
  return error.category() == parse_error_category() || error == Errc::limit_reached ||
         error == Errc::end_of_stream;
}

}  // namespace

H1Connection::H1Connection(ServerState& server, Connection& connection, const Context& context,
                           Buffer input) noexcept
    : ConnectionIo(connection, server.limits(), std::move(input)),
      loop::HangupObserver([](loop::HangupObserver& self) {
        static_cast<H1Connection&>(self).call_.cancel_without_peer();
      }),
      server_(server),
      context_(context),
      parser_(server.limits().head, &server.host_line_cache()),
      body_(*this, server.limits(), context),
      call_(server, body_, context) {}

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
      if (sent) set_close_mode(CloseMode::orderly);
      co_return sent ? action : Action::abort;
    }
    if (auto sent = co_await send(); !sent) co_return Action::abort;
    if (ends) set_close_mode(CloseMode::orderly);
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
  if (std::exchange(head_number_, heads_) != heads_) head_started_ = server_.loop().now();
  const Duration usual = server_.limits().head_timeout;
  const Duration most = server_.draining() ? std::min(usual, Connection::drain_grace_head) : usual;
  return after(head_started_, most);
}

H1Connection::Action H1Connection::advance() {
  for (;;) {
    if (input().empty()) return Action::idle;
    if (http2_allowed_ && heads_ == 0) {
      const std::string_view preface = H2Session::client_preface;
      const std::size_t size = std::min(preface.size(), input().size());
      if (input().text().substr(0, size) == preface.substr(0, size)) {
        return size == preface.size() ? Action::http2 : Action::read_more;
      }
    }
    const ParseResult parsed = parser_.parse(input().text(), call_.head());
    if (parsed.kind == ParseResult::Kind::incomplete) return Action::read_more;
    if (parsed.kind == ParseResult::Kind::error) return reject_head(parsed.error);
    input().consume(parsed.consumed);
    if (connection().proof_ended()) return end_unproven();
    ++heads_;
    keep_alive_ = call_.head().keep_alive() && !server_.draining();
    call_.begin();
    const Action action = call_.stage() == Call::Stage::routed ? start_call() : Action::finish;
    if (action != Action::idle) return action;
    if (turn_share_used()) return Action::next_turn;
  }
}

/// Closes the connection without an answer, as if the request had met the end of idle_timeout. A
/// client then repeats an idempotent request on another connection (RFC 9112 §9.3.1).
H1Connection::Action H1Connection::end_unproven() noexcept {
  if (call_.head().has_body()) late_input_ = LateInput::body;
  return Action::close;
}

/// Tells a client whose head has not arrived that the server is full.
H1Connection::Action H1Connection::end_evicted() {
  call_.begin_rejected();
  keep_alive_ = false;
  call_.reject(Status::service_unavailable);
  return finish_now();
}

/// Rejects a head that cannot be parsed, after which the connection closes. A body may follow a
/// head that is only too long, or asks for what this server does not do.
H1Connection::Action H1Connection::reject_head(ParseError error) {
  const Status status = to_status(error);
  if (status != Status::bad_request && status != Status::request_timeout) {
    late_input_ = LateInput::body;
  }
  call_.begin_rejected();
  return reject(error);
}

H1Connection::Action H1Connection::reject(ParseError error) {
  server_.counters().count_parse_error(error);
  keep_alive_ = false;
  call_.reject(to_status(error));
  return finish_now();
}

/// Begins the body of the request, and answers the request if nothing has to wait.
H1Connection::Action H1Connection::start_call() {
  const RequestHead& head = call_.head();
  if (head.has_body()) {
    body_.begin(head, call_.options().body_max.value_or(server_.limits().body_max));
    if (body_.error()) return reject(ParseError::body_too_large);
  } else {
    body_.begin_empty();
  }
  if (!call_.is_async()) {
    // A success follows the whole body, because it would hide that the body is malformed.
    if (!body_.ended()) {
      call_.keep_head();
      return Action::finish;
    }
    call_.respond();
    return finish_now();
  }
  if (call_.needs_only_body()) {
    if (const auto body = body_.complete_body()) {
      call_.respond_with(*body);
      return finish_now();
    }
  }
  if (call_.start()) return finish_now();
  observe_hangup();
  return Action::finish;
}

/// Writes the response if nothing has to wait for it.
H1Connection::Action H1Connection::finish_now() {
  if ((!body_.ended() && !call_.rejected()) || !append_response()) return Action::finish;
  const Action action = finish_request();
  return action == Action::close && peer_sends_no_more() ? Action::close_now : action;
}

/// Returns true if the peer should send nothing more, so that the server need not read on. The
/// peer requested the close itself (RFC 9112 §9.6: it "MUST NOT send further requests"). The
/// request had no body, because some old clients send an empty line behind one.
bool H1Connection::peer_sends_no_more() const noexcept {
  const RequestHead& head = call_.head();
  return !head.keep_alive() && !call_.rejected() && !head.has_body() && input().empty();
}

/// Ends a request that is answered.
H1Connection::Action H1Connection::finish_request() {
  if (WebSocketUpgrade* const upgrade = call_.upgrade()) {
    websocket_ =
        make_block<ServedWebSocket>(server_, call_.route(), std::move(*upgrade), context_.cancel);
  }
  call_.report_sent();
  call_.end();
  body_.release();
  if (websocket_ != nullptr) return Action::websocket;
  if (keep_alive_) return Action::idle;
  expect_rest_of_body();
  return Action::close;
}

/// Lets the closing connection read the rest of a body, unless the peer sends it too slowly.
void H1Connection::expect_rest_of_body() noexcept {
  if (body_.ended() || body_.error() == make_error_code(ParseError::body_timed_out)) return;
  late_input_ = LateInput::body;
}

/// Decides if the connection stays open after this response.
void H1Connection::decide_keep_alive() {
  const bool ends_with_connection =
      !call_.response().body().length() && call_.head().version_minor() == 0 && !call_.head_only();
  if (ends_with_connection || connection().ends() || context_.cancelled()) keep_alive_ = false;
}

/// Returns the response's head as it is sent.
ResponseHead H1Connection::make_response_head() const {
  const bool is_old = call_.head().version_minor() == 0;
  ResponseHead head = call_.response_head();
  // The end of the connection ends the body.
  if (is_old && head.framing == BodyFraming::chunked) head.framing = BodyFraming::none;
  head.has_upgrade = !head.lines.empty() && call_.response().headers().contains("upgrade");
  if (call_.response().body().is_upgrade()) return head;
  if (!keep_alive_) {
    head.connection = ConnectionHeader::close;
  } else if (is_old) {
    head.connection = ConnectionHeader::keep_alive;
  }
  return head;
}

/// Returns true for a response of the common kind; see ResponseHeadCache.
bool H1Connection::is_common() const noexcept {
  return call_.has_common_head() && call_.head().version_minor() > 0 && keep_alive_ &&
         !connection().ends() && !context_.cancelled();
}

/// Appends the whole response to the output. Returns false if it does not fit or is streamed.
bool H1Connection::append_response() {
  Body& body = call_.response().body();
  if (is_common()) {
    const std::string_view text = body.text();
    const ResponseHeadCache& head = server_.heads().common(call_.response().content_type());
    return append(
        ResponseHeadCache::size_max, [&](char* out) { return head.write(text.size(), out); }, text);
  }
  call_.check_response();
  decide_keep_alive();
  const bool head_only = call_.head_only();
  if (body.is_stream() && !head_only) return false;
  const ResponseHead head = make_response_head();
  const bool whole = append(
      head_size_max(head), [&](char* out) { return write_head(head, out); },
      head_only ? std::string_view() : body.text());
  if (whole && body.is_stream()) call_.drop_response();  // its content may be the handler's
  return whole;
}

Task<H1Connection::Action> H1Connection::finish() {
  if (call_.stage() == Call::Stage::routing) {
    if (auto sent = co_await send_waiting(); !sent) co_return Action::abort;
    co_await call_.wait_for_core_handler();
    const Action action = start_call();
    if (action != Action::finish) {
      call_.release();
      co_return broken() ? Action::abort : action;
    }
  }
  call_.hold();  // until the response is sent; after an exception, until nothing runs
  Result<> settled;
  if (call_.stage() == Call::Stage::running) {
    co_await wait_for_task();
    call_.take_response();
    if (call_.peer_gone()) settled = fail(Errc::closed);
  }
  if (settled) settled = co_await finish_body();
  Action action = Action::abort;
  if (settled) {
    if (call_.stage() == Call::Stage::routed) call_.respond();
    action = co_await send_response();
  }
  if (action == Action::abort) call_.report_cut();
  call_.release();
  if (action == Action::idle && !body_.ended()) action = co_await discard_body();
  co_return call_.peer_gone() || broken() ? Action::abort : action;
}

/// Sends earlier responses, so that they do not wait for this request, and frees the memory that it
/// does not need while it waits.
Task<Result<>> H1Connection::send_waiting() {
  Result<> sent;
  if (!writing() && !output().empty()) sent = co_await send();
  drop_empty_buffers();
  co_return sent;
}

/// Waits for the task of the call. It also waits if there is no memory to send earlier responses.
Task<> H1Connection::wait_for_task() {
  std::exception_ptr thrown;
  if (!writing() && !output().empty()) {
    try {
      if (auto sent = co_await send(); !sent) call_.cancel();
    } catch (...) {
      thrown = std::current_exception();
      call_.cancel();
    }
  }
  drop_empty_buffers();
  co_await TaskEndAwaiter(*this);
  if (thrown) std::rethrow_exception(thrown);
}

/// Returns true if the rest of the body may be read only to be dropped.
bool H1Connection::can_discard_body() const noexcept {
  return !body_.was_read() && !body_.awaits_continue() && !(server_.draining() && !keep_alive_) &&
         body_.bytes_left() <= server_.limits().unread_body_max;
}

/// Calls the handler, unless it was called, before the rest of the body has arrived.
/// Returns: true if the response does not wait for that rest, which the handler did not read. A
/// success waits, and so does the router's own answer: it would hide that the body is malformed. A
/// streamed response waits too, since its function could read the body.
bool H1Connection::respond_early() {
  if (!call_.has_route()) return false;
  if (call_.stage() == Call::Stage::routed) call_.respond();
  const Response& response = call_.response();
  return code_of(response.status()) >= 300 && !response.body().is_stream();
}

/// Moves the input behind a body that the handler did not read, or decides that the connection
/// closes. After an early response, discard_body() moves the input instead. A request with a
/// malformed body is rejected, unless the handler has read the body and answers with an error
/// itself. A handler that has read a part may answer a body that is too large.
/// Errors: those of the connection.
Task<Result<>> H1Connection::finish_body() {
  if (body_.ended() || call_.rejected()) co_return {};
  const bool can_discard = can_discard_body();
  const bool handler_saw_error = static_cast<bool>(body_.error());
  if (body_.discard_received()) co_return {};
  if (can_discard && !body_.error()) {
    if (respond_early()) co_return {};
    auto dropped = co_await body_.discard(server_.limits().unread_body_max);
    if (dropped) co_return {};
    if (!may_answer(dropped.error())) co_return fail(dropped.error());
    if (dropped.error() == Errc::end_of_stream) call_.reject(Status::bad_request);
  }
  count_body_error();
  if (body_.error().category() == parse_error_category()) {
    const Status status = to_status(body_.error());
    const bool needs_no_more =
        !handler_saw_error && body_.error() == make_error_code(ParseError::body_too_large);
    if (!body_.was_read()) {
      call_.reject(status);  // there may be no response yet
    } else if (code_of(call_.response().status()) < 400 && !needs_no_more) {
      call_.replace_response(status);
    }
  }
  keep_alive_ = false;
  body_.close();  // a function that streams the response would read a body with a gap
  co_return {};
}

/// Reads and drops the rest of the body after an early response.
/// Returns: idle, or the way to close.
Task<H1Connection::Action> H1Connection::discard_body() {
  const Result<> dropped = co_await body_.discard(server_.limits().unread_body_max);
  body_.release();
  if (dropped) co_return Action::idle;
  count_body_error();
  expect_rest_of_body();
  co_return may_answer(dropped.error()) ? Action::close : Action::abort;
}

void H1Connection::count_body_error() noexcept {
  if (body_.error().category() != parse_error_category()) return;
  server_.counters().count_parse_error(static_cast<ParseError>(body_.error().value()));
}

/// Sends a response of any size.
Task<H1Connection::Action> H1Connection::send_response() {
  if (append_response()) co_return finish_request();
  const ResponseHead head = make_response_head();
  const std::size_t size = head_size_max(head);
  const auto write = [&](char* out) { return write_head(head, out); };
  std::size_t output_before = output().size();
  if (!append(size, write)) {
    if (auto sent = co_await send(); !sent) co_return Action::abort;
    make_room(size);
    output_before = 0;
    [[maybe_unused]] const bool appended = append(size, write);
    assert(appended && "make_room() has made room");
  }
  if (call_.head_only()) co_return finish_request();
  if (call_.response().body().is_stream()) co_return co_await send_stream(output_before);
  if (auto sent = co_await send(to_bytes(call_.response().body().text())); !sent) {
    call_.report_cut(unsent());
    co_return Action::abort;
  }
  co_return finish_request();
}

void H1Connection::set_close_mode(CloseMode mode) {
  if (std::exchange(close_mode_, mode) != mode) std::ignore = stream().set_close_mode(mode);
}

/// Sends the body as its function writes it. The head is already in the output, behind other
/// responses. A body that the end of the connection ends must not look whole if anything interrupts
/// it (RFC 9112 §9.8): until its last byte is sent, each way to close is a reset.
Task<H1Connection::Action> H1Connection::send_stream(std::size_t output_before) {
  if (call_.cancel_reason() == Call::CancelReason::removal) {
    // It was stopped while the client sent its body. No cancellation would end the function.
    output().truncate(output_before);
    call_.replace_response(Status::service_unavailable);
    co_return co_await send_response();
  }
  const auto length = call_.response().body().length();
  const bool chunked = !length && call_.head().version_minor() > 0;
  if (!length && !chunked) set_close_mode(CloseMode::reset);
  StreamSink sink(*this, chunked, length);
  Result<> written;
  bool waited = false;
  std::optional<Task<Result<>>> writing;
  std::exception_ptr thrown;
  try {
    writing.emplace(call_.stream_to(sink));
    waited = !call_.run(*writing);
    if (waited) {
      observe_hangup();
      co_await wait_for_task();
    }
    written = writing->handle().promise().take();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    call_.cancel();
    co_await TaskEndAwaiter(*this);  // wait_for_task() had no memory; this wait needs none
  }
  writing.reset();
  const bool begun = waited || sink.used();
  using Client = Call::StreamClient;
  Client client = begun ? Client::has_head : Client::waits;
  if (call_.peer_gone() || broken()) client = begun ? Client::gone_with_head : Client::gone;
  if (!call_.end_stream(sink, written, thrown, client)) {
    if (begun) co_return Action::abort;
    // Nothing has been sent yet, so the client gets an error response.
    set_close_mode(CloseMode::orderly);
    output().truncate(output_before);
    co_return co_await send_response();
  }
  if (chunked) {
    const std::string_view trailers = sink.trailers().lines();
    make_room(last_chunk_size(trailers));
    const auto write_last = [trailers](char* out) { return write_last_chunk(trailers, out); };
    [[maybe_unused]] const bool appended = append(last_chunk_size(trailers), write_last);
    assert(appended && "make_room() has made room");
  }
  co_return finish_request();
}

}  // namespace weir::http
