// The part of a request loop that waits: for handlers, for bodies, for slow readers.
#include <array>
#include <cassert>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/server/detail/request_loop.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

/// Sends a streamed body as it is written.
class StreamSink final : public BodySink {
 public:
  StreamSink(ConnectionIo& io, bool chunked) noexcept : io_(io), chunked_(chunked) {}

  Task<Result<>> write(Bytes piece) override {
    if (piece.empty()) co_return {};
    assert(!writing_ && "calls of BodySink::write() must not overlap");
    used_ = true;
    const Writing writing(*this);
    co_return co_await send(piece);
  }

  bool used() const noexcept { return used_; }

 private:
  /// Marks a call of write(), also one that ends with an exception.
  class Writing {
   public:
    explicit Writing(StreamSink& sink) noexcept : sink_(sink) { sink_.writing_ = true; }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    ~Writing() { sink_.writing_ = false; }

   private:
    StreamSink& sink_;
  };

  Task<Result<>> send(Bytes piece) {
    if (!chunked_) return io_.send(piece);
    char* const line = size_line_.data();
    const std::string_view size(
        line, static_cast<std::size_t>(write_chunk_size(piece.size(), line) - line));
    return io_.send(to_bytes(size), piece, to_bytes(chunk_end));
  }

  ConnectionIo& io_;
  std::array<char, chunk_size_max> size_line_;
  bool chunked_;
  bool used_ = false;
  bool writing_ = false;
};

}  // namespace

Task<RequestLoop::Action> RequestLoop::finish() {
  // Keep the route that was found, and with it the core handler, until the answering route is in
  // use (it may be the same route). A removal of the found route waits for `found` and for nothing
  // else of this request.
  std::optional<InFlightRequest> found;
  if (stage_ == Stage::core_handler) {
    // Nothing can be stopped yet.
    found.emplace(server_.routes(), match_.route(), [](InFlightRequest&) {});
    co_await wait_for_core_handler();
    const Action action = dispatch_request();
    if (action != Action::finish) co_return io_.broken() ? Action::abort : action;
  }
  if (!rejected_) copy_head();  // also for a streamed or large response, because the input moves on
  in_flight_.emplace(*this);  // until the response is sent; after an exception, until nothing runs
  found.reset();
  const Stage stage = std::exchange(stage_, Stage::send_response);
  Result<> settled;
  if (stage == Stage::run_handler) {
    co_await wait_for_running();
    take_response();
    if (peer_gone_) settled = fail(Errc::closed);
  }
  if (settled) settled = co_await finish_body();
  Action action = Action::abort;
  if (settled) {
    if (stage == Stage::read_body && !rejected_) call_handler();
    action = co_await send_response();
  }
  in_flight_.reset();
  co_return peer_gone_ || io_.broken() ? Action::abort : action;
}

/// Waits for a handler on this core, for at most the wait timeout of the route. The connection
/// notices a client that leaves meanwhile only when it answers.
Task<> RequestLoop::wait_for_core_handler() {
  if (!io_.writing() && !io_.output().empty()) {
    if (auto sent = co_await io_.send(); !sent) co_return;
  }
  io_.drop_empty_buffers();
  CoreHandlers& core_handlers = *match_.route()->core_handlers;
  auto settled = as_task(core_handlers.on(server_.loop())->replacement_settled());
  static_cast<void>(co_await timeout(core_handlers.wait_timeout(), std::move(settled)));
  static_cast<void>(find_core_handler());  // without one the route answers 503
}

/// Sends the output, so that it does not wait for a slow task, then waits for that task. It also
/// waits if there is no memory for the send.
Task<> RequestLoop::wait_for_running() {
  std::exception_ptr thrown;
  try {
    if (!io_.writing() && !io_.output().empty()) {
      if (auto sent = co_await io_.send(); !sent) cancel_->cancel();
    }
  } catch (...) {
    thrown = std::current_exception();
    cancel_->cancel();
  }
  io_.drop_empty_buffers();  // the task may take long
  co_await RunningEndAwaiter(*this);
  if (thrown) std::rethrow_exception(thrown);
}

/// Returns true if the rest of the body may be read only to be dropped.
bool RequestLoop::can_discard_body() const noexcept {
  return !body_.was_read() && !body_.awaits_continue() && !(server_.draining() && !keep_alive_) &&
         body_.bytes_left() <= server_.limits().unread_body_max;
}

/// Moves the input behind a body that the handler did not read, or decides that the connection
/// closes. A request with a malformed body is rejected, unless the handler has read the body and
/// answers with an error itself. A handler that has read a part may answer a body that is too
/// large.
/// Errors: those of the connection.
Task<Result<>> RequestLoop::finish_body() {
  if (body_.ended() || rejected_) co_return {};
  const bool can_discard = can_discard_body();
  const bool handler_saw_error = static_cast<bool>(body_.error());
  if (body_.discard_received()) co_return {};
  if (can_discard) {
    auto dropped = co_await body_.discard(server_.limits().unread_body_max);
    if (dropped) co_return {};
    const std::error_code error = dropped.error();
    const bool cut = error == Errc::end_of_stream;
    if (error.category() != parse_error_category() && error != Errc::limit_reached && !cut) {
      co_return fail(error);
    }
    rejected_ = cut;
    if (cut) respond_with_status(Status::bad_request);
  }
  if (body_.error().category() == parse_error_category()) {
    server_.count_parse_error(static_cast<ParseError>(body_.error().value()));
    rejected_ = !body_.was_read();  // without a read there may be no response yet
    const bool needs_no_more = body_.was_read() && !handler_saw_error &&
                               body_.error() == make_error_code(ParseError::body_too_large);
    if (rejected_ || (code_of(response_->status()) < 400 && !needs_no_more)) {
      respond_with_status(to_status(body_.error()));
    }
  }
  keep_alive_ = false;
  body_.close();  // a function that streams the response would read a body with a gap
  co_return {};
}

/// Sends a response of any size.
Task<RequestLoop::Action> RequestLoop::send_response() {
  if (try_write_to_output()) co_return finish_request();
  const ResponseHead head = make_response_head();
  const std::size_t size = head_size_max(head);
  Buffer& output = io_.writable_output();
  if (output.room().size() < size) {
    if (auto sent = co_await io_.send(); !sent) co_return Action::abort;
    output.make_room(size);
  }
  const std::size_t output_before = output.size();
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.commit(static_cast<std::size_t>(write_head(head, start) - start));
  if (head_only()) co_return finish_request();
  if (response_->body().is_stream()) co_return co_await send_stream(output_before);
  if (auto sent = co_await io_.send(to_bytes(response_->body().text())); !sent) {
    co_return Action::abort;
  }
  co_return finish_request();
}

/// Handles the error of a streaming function. Logs it if the client cannot see it in a response,
/// unless the peer or a cancellation caused it.
void RequestLoop::handle_stream_error(std::error_code error, bool cut) {
  respond_with_status(to_status(error));
  const bool theirs = peer_gone_ || io_.broken() || error == Errc::cancelled;
  if (theirs || (!cut && code_of(response_->status()) < 500)) return;
  server_.counters().handler_failures.add();
  log("response body incomplete: " + error.message());
}

/// Sends the body as its function writes it. The head is already in the output, behind other
/// responses.
Task<RequestLoop::Action> RequestLoop::send_stream(std::size_t output_before) {
  if (stopped_) {  // while the client sent its body; no cancellation would end the function
    io_.output().truncate(output_before);
    respond_with_status(Status::service_unavailable);
    co_return co_await send_response();
  }
  const bool chunked = head_.version_minor() > 0;
  StreamSink sink(io_, chunked);
  begin_cancel();
  Result<> written;
  bool waited = false;
  std::optional<Task<Result<>>> writing;
  std::exception_ptr thrown;
  try {
    {
      const CurrentActivity::TraceGuard trace_guard(&trace_);
      writing.emplace((*response_->body().stream())(sink));
    }
    waited = !run(*writing);
    if (waited) co_await wait_for_running();
    written = writing->handle().promise().take();
    if (!written) handle_stream_error(written.error(), waited || sink.used());
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    cancel_->cancel();
    co_await RunningEndAwaiter(*this);  // there was no memory for another way to wait
    handle_exception(thrown);
    written = fail(Errc::closed);
  }
  writing.reset();
  cancel_.reset();
  Buffer& output = io_.writable_output();
  if (!written) {
    if (waited || sink.used()) co_return Action::abort;
    // Nothing has been sent yet, so the client gets an error response.
    output.truncate(output_before);
    co_return co_await send_response();
  }
  if (chunked) {
    output.make_room(last_chunk.size());
    std::memcpy(output.room().data(), last_chunk.data(), last_chunk.size());
    output.commit(last_chunk.size());
  }
  co_return finish_request();
}

}  // namespace weir::http
