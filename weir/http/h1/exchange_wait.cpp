// The part of an exchange that waits: for handlers, for bodies, for slow readers.
#include <array>
#include <cstring>
#include <utility>

#include "weir/http/h1/exchange.hpp"
#include "weir/http/h1/writer.hpp"

namespace weir::http {
namespace {

/// Sends a streamed body as it is written.
class StreamSink final : public BodySink {
 public:
  StreamSink(Transport& transport, bool chunked) noexcept
      : transport_(transport), chunked_(chunked) {}

  Task<Result<>> write(Bytes piece) override {
    if (piece.empty()) co_return {};
    if (!chunked_) co_return co_await transport_.send(piece);
    Buffer& output = transport_.writable_output();
    char* const start = reinterpret_cast<char*>(output.room().data());
    output.grow(static_cast<std::size_t>(write_chunk_size(piece.size(), start) - start));
    co_return co_await transport_.send(piece, to_bytes(chunk_end));
  }

 private:
  Transport& transport_;
  bool chunked_;
};

}  // namespace

Task<Exchange::Next> Exchange::finish() {
  const Stage stage = std::exchange(stage_, Stage::answer);
  if (stage == Stage::handler) co_await wait_for_handler();
  if (auto settled = co_await settle_body(); !settled) co_return Next::abort;
  if (stage == Stage::body_first && !refused_) call_handler();
  co_return co_await deliver();
}

/// Sends the answers before this one, so that they do not wait for a slow handler, then waits.
Task<> Exchange::wait_for_handler() {
  if (!transport_.writing() && !transport_.output().empty()) {
    if (auto sent = co_await transport_.send(); !sent) cancel_->cancel();
  }
  co_await HandlerEnd(*this);
  transport_.stream().watch(nullptr);
  while (cancel_later_.queued) co_await yield();
  take_response();
}

/// The rest of the body may be read only to be dropped.
bool Exchange::body_is_droppable() const noexcept {
  return !body_.touched() && !body_.unsolicited() && !(server_.draining() && !keep_alive_) &&
         body_.known_left() <= server_.limits().unread_body_max;
}

/// Brings the input behind a body that nobody read, or decides that the connection closes. What is
/// malformed is refused instead of answered. Errors: the connection's.
Task<Result<>> Exchange::settle_body() {
  if (body_.ended() || refused_ || body_.drop_received()) co_return {};
  if (body_is_droppable()) {
    auto dropped = co_await body_.drop(server_.limits().unread_body_max);
    if (dropped) co_return {};
    const std::error_code error = dropped.error();
    if (error.category() != refusal_category() && error != Errc::limit_reached) {
      co_return fail(error);
    }
    refused_ = error.category() == refusal_category();
    if (refused_) answer_with(status_for(error));
  }
  if (body_.error().category() == refusal_category()) {
    server_.refused(static_cast<Refusal>(body_.error().value()));
  }
  keep_alive_ = false;
  linger_ = true;
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
    if (output.room().size() < size) {
      output = Buffer::with_capacity(static_cast<std::uint32_t>(size));
    }
  }
  char* const start = reinterpret_cast<char*>(output.room().data());
  output.grow(static_cast<std::size_t>(write_head(head, start) - start));
  if (head_only()) co_return ended();
  if (response_.body().is_stream()) co_return co_await deliver_stream();
  if (auto sent = co_await transport_.send(to_bytes(response_.body().text())); !sent) {
    co_return Next::abort;
  }
  co_return ended();
}

/// The head is in the output: sends the body as its function writes it.
Task<Exchange::Next> Exchange::deliver_stream() {
  const bool chunked = head_.version_minor() > 0;
  StreamSink sink(transport_, chunked);
  cancel_.emplace(context_.cancel);
  transport_.stream().watch(this);
  bool written = false;
  try {
    auto writing = (*response_.body().stream())(sink);
    auto result = co_await in_context(Context{&server_.loop(), &*cancel_}, std::move(writing));
    written = result.has_value();
  } catch (...) {
    failed(std::current_exception());
  }
  transport_.stream().watch(nullptr);
  while (cancel_later_.queued) co_await yield();
  cancel_.reset();
  if (!written) co_return Next::abort;
  if (chunked) {
    Buffer& output = transport_.writable_output();
    std::memcpy(output.room().data(), last_chunk.data(), last_chunk.size());
    output.grow(last_chunk.size());
  }
  co_return ended();
}

}  // namespace weir::http
