// The part of an exchange that waits: for handlers, for bodies, for slow readers.
#include <array>
#include <cassert>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "weir/http/h1/exchange.hpp"
#include "weir/http/h1/writer.hpp"
#include "weir/http/route_seats.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

/// Sends a streamed body as it is written.
class StreamSink final : public BodySink {
 public:
  StreamSink(Transport& transport, bool chunked) noexcept
      : transport_(transport), chunked_(chunked) {}

  Task<Result<>> write(Bytes piece) override {
    if (piece.empty()) co_return {};
    used_ = true;
    if (!chunked_) co_return co_await transport_.send(piece);
    assert(!writing_);
    writing_ = true;
    char* const line = size_line_.data();
    const std::string_view size(
        line, static_cast<std::size_t>(write_chunk_size(piece.size(), line) - line));
    const auto sent = co_await transport_.send(to_bytes(size), piece, to_bytes(chunk_end));
    writing_ = false;
    co_return sent;
  }

  bool used() const noexcept { return used_; }

 private:
  Transport& transport_;
  std::array<char, chunk_size_max> size_line_;
  bool chunked_;
  bool used_ = false;
  bool writing_ = false;
};

}  // namespace

Task<Exchange::Next> Exchange::finish() {
  // The route that was found stays, and with it the seat, until what answers is in use, be it this
  // one itself: somebody may give it up meanwhile, and waits for nobody else then.
  std::optional<RouteUse> found;
  if (stage_ == Stage::tenant) {
    // There is nothing to stop yet.
    found.emplace(server_.routes(), match_.route(), [](RouteUse&) {});
    co_await wait_for_tenant();
    const Next next = take_request();
    if (next != Next::slow) co_return transport_.broken() ? Next::abort : next;
  }
  if (!refused_) keep_head();  // of what is streamed or large, too: the input goes
  in_use_.emplace(*this);      // until all is said, or, where something throws, until nothing runs
  found.reset();
  const Stage stage = std::exchange(stage_, Stage::answer);
  Result<> settled;
  if (stage == Stage::handler) {
    co_await wait_for_running();
    take_response();
    if (gone_) settled = fail(Errc::closed);
  }
  if (settled) settled = co_await settle_body();
  Next next = Next::abort;
  if (settled) {
    if (stage == Stage::body_first && !refused_) call_handler();
    next = co_await deliver();
  }
  in_use_.reset();
  co_return gone_ || transport_.broken() ? Next::abort : next;
}

/// Waits for who will answer on this core, for as long as the route says. A client that leaves
/// meanwhile is noticed with the answer.
Task<> Exchange::wait_for_tenant() {
  if (!transport_.writing() && !transport_.output().empty()) {
    if (auto sent = co_await transport_.send(); !sent) co_return;
  }
  transport_.drop_empty_buffers();
  RouteSeats& seats = *match_.route()->seats;
  auto settled = as_task(seats.on(server_.loop())->settled());
  static_cast<void>(co_await timeout(seats.wait_max(), std::move(settled)));
  static_cast<void>(find_tenant());  // and if there is none yet, the route says so
}

/// Sends what is ready, so that it does not wait for what runs and is slow, then waits for that,
/// also where there is no memory for the sending.
Task<> Exchange::wait_for_running() {
  std::exception_ptr thrown;
  try {
    if (!transport_.writing() && !transport_.output().empty()) {
      if (auto sent = co_await transport_.send(); !sent) cancel_->cancel();
    }
  } catch (...) {
    thrown = std::current_exception();
    cancel_->cancel();
  }
  transport_.drop_empty_buffers();  // it may take long
  co_await RunningEnd(*this);
  if (thrown) std::rethrow_exception(thrown);
}

/// The rest of the body may be read only to be dropped.
bool Exchange::body_is_droppable() const noexcept {
  return !body_.touched() && !body_.unsolicited() && !(server_.draining() && !keep_alive_) &&
         body_.known_left() <= server_.limits().unread_body_max;
}

/// Brings the input behind a body that nobody read, or decides that the connection closes. What is
/// malformed is refused instead of answered. Errors: the connection's.
Task<Result<>> Exchange::settle_body() {
  if (body_.ended() || refused_) co_return {};
  const std::error_code seen = body_.error();  // by the handler
  const bool droppable = body_is_droppable();
  if (body_.drop_received()) co_return {};
  if (droppable) {
    auto dropped = co_await body_.drop(server_.limits().unread_body_max);
    if (dropped) co_return {};
    const std::error_code error = dropped.error();
    const bool cut = error == Errc::end_of_stream;
    if (error.category() != refusal_category() && error != Errc::limit_reached && !cut) {
      co_return fail(error);
    }
    refused_ = cut || error.category() == refusal_category();
    if (refused_) answer_with(cut ? Status::bad_request : status_for(error));
  }
  if (body_.error().category() == refusal_category()) {
    server_.refused(static_cast<Refusal>(body_.error().value()));
  }
  // Success is no answer to a body that the handler saw to be malformed.
  if (seen.category() == refusal_category() && code_of(response_->status()) < 400) {
    answer_with(status_for(seen));
  }
  keep_alive_ = false;
  co_return {};
}

/// Sends the answer, whatever its size.
Task<Exchange::Next> Exchange::deliver() {
  if (write_small()) co_return ended();
  const ResponseHead head = describe_head();
  const std::size_t size = head_size_max(head);
  Buffer& output = transport_.writable_output();
  if (output.room().size() < size) {
    if (auto sent = co_await transport_.send(); !sent) co_return Next::abort;
    output.make_room(size);
  }
  const std::size_t answers_before = output.size();
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.grow(static_cast<std::size_t>(write_head(head, start) - start));
  if (head_only()) co_return ended();
  if (response_->body().is_stream()) co_return co_await deliver_stream(answers_before);
  if (auto sent = co_await transport_.send(to_bytes(response_->body().text())); !sent) {
    co_return Next::abort;
  }
  co_return ended();
}

/// A streaming function gave up. The log tells it where no answer does, unless the peer or a
/// cancellation made it so.
void Exchange::stream_failed(std::error_code error, bool cut) {
  answer_with(status_for(error));
  const bool theirs = gone_ || transport_.broken() || error == Errc::cancelled;
  if (theirs || (!cut && code_of(response_->status()) < 500)) return;
  server_.counters().handler_failures.add();
  log("the body was not finished: " + error.message());
}

/// The head is in the output, behind other answers: sends the body as its function writes it.
Task<Exchange::Next> Exchange::deliver_stream(std::size_t answers_before) {
  const bool chunked = head_.version_minor() > 0;
  StreamSink sink(transport_, chunked);
  begin_cancel();
  Result<> written;
  bool waited = false;
  std::optional<Task<Result<>>> writing;
  std::exception_ptr thrown;
  try {
    {
      const Running::Working working(&unit_);
      writing.emplace((*response_->body().stream())(sink));
    }
    waited = !run(*writing);
    if (waited) co_await wait_for_running();
    written = writing->handle().promise().take();
    if (!written) stream_failed(written.error(), waited || sink.used());
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    cancel_->cancel();
    co_await RunningEnd(*this);  // there was no memory to wait for it otherwise
    failed(thrown);
    written = fail(Errc::closed);
  }
  writing.reset();
  cancel_.reset();
  Buffer& output = transport_.writable_output();
  if (!written) {
    if (waited || sink.used()) co_return Next::abort;
    // Nothing has left yet: the client hears about it.
    output.truncate(answers_before);
    co_return co_await deliver();
  }
  if (chunked) {
    output.make_room(last_chunk.size());
    std::memcpy(output.room().data(), last_chunk.data(), last_chunk.size());
    output.grow(last_chunk.size());
  }
  co_return ended();
}

}  // namespace weir::http
