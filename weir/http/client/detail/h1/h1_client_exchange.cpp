// Sending a request and reading its response.
#include "weir/http/client/detail/h1/h1_client_exchange.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "weir/http/client/detail/client_head.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::http {
namespace {

using Kind = ResponseEvent::Kind;

// Bytes of a body that the kernel takes without waiting for the server, also with the smallest
// buffers of sockets (tcp_wmem of tcp(7)).
constexpr std::size_t short_body = 4 * 1024;
// Bytes of a response that are read while the request is still being sent.
constexpr std::size_t early_body_max = 64 * 1024;

// Reads of a body in one turn. A server that never lets them wait would otherwise fill the turn.
constexpr std::uint8_t body_reads_per_turn = 16;

/// Cancels a source at the end of its block, also if an exception ends it.
class CancelAtEnd {
 public:
  explicit CancelAtEnd(CancelSource& source) noexcept : source_(&source) {}
  CancelAtEnd(const CancelAtEnd&) = delete;
  CancelAtEnd& operator=(const CancelAtEnd&) = delete;
  ~CancelAtEnd() {
    if (source_ != nullptr) source_->cancel();
  }
  void dismiss() noexcept { source_ = nullptr; }

 private:
  CancelSource* source_;
};

}  // namespace

class H1ClientExchange::Writing : public Timed<Write>::Awaiter {
  using Base = Timed<Write>::Awaiter;

 public:
  Writing(H1ClientExchange& exchange, std::span<const Bytes> pieces, IoOptions options) noexcept
      : Base(exchange.lease_.stream().write(pieces), options), exchange_(exchange) {
    exchange.writing_ = true;
  }
  Result<> await_resume() noexcept {
    exchange_.writing_ = false;
    exchange_.sent_ += this->sent;
    Result<> written = Base::await_resume();
    if (written || written.error() == Errc::cancelled) return written;
    if (written.error() == Errc::timed_out) {
      return fail(exchange_.timeout_error(ClientError::body_timed_out));
    }
    exchange_.lost_ = true;
    return fail(ClientError::connection_lost);
  }

 private:
  H1ClientExchange& exchange_;
};

class H1ClientExchange::Reading : public Timed<Read>::Awaiter {
  using Base = Timed<Read>::Awaiter;

 public:
  Reading(H1ClientExchange& exchange, IoOptions options, ClientError timed_out) noexcept
      : Base(exchange.lease_.stream().read(), options),
        exchange_(exchange),
        timed_out_(timed_out) {}
  Result<> await_resume() noexcept {
    Result<Buffer> arrived = Base::await_resume();
    if (arrived) {
      exchange_.received_ = true;
      exchange_.buffer_ = std::move(*arrived);
      return {};
    }
    const std::error_code error = arrived.error();
    if (error == Errc::timed_out) return fail(exchange_.timeout_error(timed_out_));
    if (error == Errc::cancelled || error == Errc::end_of_stream) return fail(error);
    return fail(lost_error(error));
  }

 private:
  H1ClientExchange& exchange_;
  ClientError timed_out_;
};

/// The sink of a streamed body. It writes chunks, or the bytes of a known length.
class H1ClientExchange::Sink final : public RequestSink {
 public:
  Sink(H1ClientExchange& exchange, std::optional<std::uint64_t> length) noexcept
      : RequestSink(length), exchange_(exchange), chunked_(!length) {}

 private:
  bool late() const override { return exchange_.late(); }
  Task<Result<>> send(Bytes piece) override {
    if (!chunked_) {
      const Result<> written = co_await exchange_.write(std::span<const Bytes>(&piece, 1));
      if (written && whole()) exchange_.request_complete_ = true;  // the function may still wait
      co_return written;
    }
    std::array<char, chunk_size_max> size;
    const char* const end = write_chunk_size(piece.size(), size.data());
    const std::array<Bytes, 3> pieces{to_bytes(between(size.data(), end)), piece,
                                      to_bytes(chunk_end)};
    co_return co_await exchange_.write(pieces);
  }

  H1ClientExchange& exchange_;
  bool chunked_;
};

H1ClientExchange::H1ClientExchange(ClientPool::Lease lease, const ClientLimits& limits,
                                   Instant deadline) noexcept
    : ResponseSource(limits.body_max),
      lease_(std::move(lease)),
      loop_(lease_.stream().loop()),
      limits_(&limits),
      deadline_(deadline),
      parser_(limits.response) {}

H1ClientExchange::~H1ClientExchange() {
  if (ended_ || !has_head_) return;
  if (early_ != nullptr && early_->ended) {
    if (!early_->error) finish();
    return;
  }
  try {
    ResponseEvent event;
    do {
      event = parser_.next(input_);
      input_.remove_prefix(event.consumed);
    } while (event.kind == Kind::data);
    if (event.kind == Kind::end) finish();
  } catch (const std::bad_alloc&) {
    // A trailer found no memory; the lease closes the connection.
  }
}

void H1ClientExchange::abandon(std::error_code error) noexcept {
  ended_ = true;
  abandoned_ = true;
  error_ = error;
  if (is_sending()) return stop_sending();
  lease_.release();
}

/// Ends a complete response. The task that sends the request may be a little later.
void H1ClientExchange::finish() noexcept {
  ended_ = true;
  if (!is_sending()) release_connection();
}

/// Gives up the connection. It becomes idle if it can carry another request.
void H1ClientExchange::release_connection() noexcept {
  const bool reusable = !abandoned_ && request_complete_ && parser_.reusable() && input_.empty();
  if (!reusable) return lease_.release();
  const auto keep_alive = parser_.head().header("keep-alive");
  lease_.release_for_reuse(keep_alive ? idle_time_of(*keep_alive) : Duration::max());
}

bool H1ClientExchange::may_repeat(const ClientRequest& request) const noexcept {
  return !received_ && !stream_called_ && (sent_ == 0 || is_repeatable(request));
}

Instant H1ClientExchange::now() const {
  return loop_.platform().now();
}

Duration H1ClientExchange::limited(Duration timeout) const {
  return deadline_ == never ? timeout : std::min(timeout, deadline_ - now());
}

bool H1ClientExchange::late() const {
  return deadline_ != never && now() >= deadline_;
}

std::error_code H1ClientExchange::timeout_error(ClientError error) const {
  return late() ? ClientError::timed_out : error;
}

H1ClientExchange::Writing H1ClientExchange::write(std::span<const Bytes> pieces) {
  IoOptions options;
  options.timeout = limited(limits_->body_timeout);
  return Writing(*this, pieces, options);
}

H1ClientExchange::Reading H1ClientExchange::receive(Duration timeout, ClientError timed_out) {
  IoOptions options;
  options.timeout = limited(timeout);
  return Reading(*this, options, timed_out);
}

Task<Result<>> H1ClientExchange::write_request(Body& body, std::string_view head) {
  std::string_view text = body.text();
  const std::array<Bytes, 2> pieces{to_bytes(head), to_bytes(text.substr(0, body_slice))};
  const std::span<const Bytes> used(pieces.data(), text.empty() ? 1 : 2);
  const Result<> written = co_await write(used);
  if (!written) co_return written;
  while (text.size() > body_slice) {
    text.remove_prefix(body_slice);
    if (late()) co_return fail(ClientError::timed_out);
    const Bytes slice = to_bytes(text.substr(0, body_slice));
    const Result<> more = co_await write(std::span<const Bytes>(&slice, 1));
    if (!more) co_return more;
  }
  if (body.is_stream()) {
    const Result<> streamed = co_await write_stream(body);
    if (!streamed) co_return streamed;
  }
  request_complete_ = true;
  co_return {};
}

Task<Result<>> H1ClientExchange::write_stream(Body& body) {
  const std::optional<std::uint64_t> length = body.length();
  Sink sink(*this, length);
  stream_called_ = true;
  const Result<> streamed = co_await (*body.stream())(sink);
  if (!streamed) co_return streamed;
  if (sink.error()) co_return fail(sink.error());
  if (length) co_return {};
  const std::string_view trailers = sink.trailers().lines();
  std::string last(last_chunk_size(trailers), '\0');
  write_last_chunk(trailers, last.data());
  const Bytes bytes = to_bytes(last);
  co_return co_await write(std::span<const Bytes>(&bytes, 1));
}

Task<Result<>> H1ClientExchange::run(ClientRequest& request, std::string_view head, Scope* scope) {
  parser_.begin(request.method());
  const bool may_wait = request.body().is_stream() || request.body().text().size() > short_body;
  if (may_wait && scope != nullptr) co_return co_await read_head_beside(*scope, request, head);
  Result<> written;
  if (may_wait) {
    written = co_await write_while_reading(request.body(), head);
  } else {
    // A call of write_request() would cost a coroutine frame for each request.
    const std::string_view body = request.body().text();
    const std::array<Bytes, 2> pieces{to_bytes(head), to_bytes(body)};
    const std::span<const Bytes> used(pieces.data(), body.empty() ? 1 : 2);
    written = co_await write(used);
    request_complete_ = written.has_value();
  }
  if (has_head_) co_return {};
  if (!written && !lost_) {
    if (may_wait || written.error() != ClientError::body_timed_out) co_return written;
    // Nothing has read beside the write. An answer that has come meanwhile is not lost.
    const Result<> answered = co_await read_head(Duration::zero());
    co_return answered ? answered : written;
  }
  const Result<> received = co_await read_head(limits_->head_timeout);
  if (received || !lost_ || received.error() == Errc::cancelled) co_return received;
  co_return fail(lost_error(received.error()));
}

Result<> H1ClientExchange::take_response(Method method, std::string received) {
  parser_.begin(method);
  received_ = true;
  request_complete_ = true;
  head_text_ = std::move(received);
  input_ = head_text_;
  const ResponseEvent event = parser_.next(input_);
  if (event.kind != Kind::head) return fail(ClientError::bad_response);
  input_.remove_prefix(event.consumed);
  has_head_ = true;
  return {};
}

/// Writes the request and reads a response that comes before the request's end. The writing ends
/// early if that response is complete, an error or a redirect.
/// Returns: no error if the request was sent or the head has arrived.
Task<Result<>> H1ClientExchange::write_while_reading(Body& body, std::string_view head) {
  const Context own = co_await this_context();
  CancelSource writing(own.cancel);
  CancelSource reading(own.cancel);
  const Context write_context{own.loop, &writing};
  const Context read_context{own.loop, &reading};
  auto write = as_task(in_context(write_context, write_then_cancel(body, head, reading)));
  auto read = as_task(in_context(read_context, read_then_cancel(writing)));
  const auto both = co_await settled(std::move(write), std::move(read));
  const Result<>& written = std::get<0>(both);
  const Result<>& received = std::get<1>(both);
  if (received) {
    const bool fits =
        written || lost_ || writing.cancelled() || written.error() == ClientError::body_timed_out;
    has_head_ = fits;
    co_return fits ? Result<>() : written;
  }
  if (received.error() != Errc::cancelled) co_return received;
  if (own.cancelled()) co_return fail(Errc::cancelled);
  co_return written;
}

Task<Result<>> H1ClientExchange::write_then_cancel(Body& body, std::string_view head,
                                                   CancelSource& reading) {
  const CancelAtEnd at_end(reading);
  co_return co_await write_in_time(body, head);
}

Task<Result<>> H1ClientExchange::write_in_time(Body& body, std::string_view head) {
  auto writing = write_request(body, head);
  // The function of a stream can wait for something else than the server.
  const Result<> written = co_await timeout(limited(Duration::max()), std::move(writing));
  if (!written && written.error() == Errc::timed_out) co_return fail(ClientError::timed_out);
  co_return written;
}

Task<Result<>> H1ClientExchange::read_then_cancel(CancelSource& writing) {
  CancelAtEnd at_end(writing);
  const Result<> received = co_await read_head(Duration::max());
  bool ends_early = !received && received.error() != Errc::cancelled;
  if (received) {
    auto progress = ResponseProgress::head;
    if (!ends_request(head().status(), progress)) {
      const bool complete = co_await read_early();
      if (complete) progress = ResponseProgress::complete;
    }
    ends_early = ends_request(head().status(), progress);
  }
  if (!ends_early) at_end.dismiss();
  co_return received;
}

/// Reads the body of a response beside the writing of its request, as far as there is room.
/// Returns: true if nothing more comes unless the client reads, and the server takes no more of the
/// request; false if the writing has ended.
Task<bool> H1ClientExchange::read_early() {
  early_ = std::make_unique<EarlyBody>();
  while (!take_early()) {
    if (early_->bytes.size() >= early_body_max) co_return co_await server_stalls();
    const Result<> received = co_await receive(Duration::max(), ClientError::body_timed_out);
    if (received) {
      input_ = buffer_.text();
    } else if (received.error() == Errc::cancelled || received.error() == ClientError::timed_out) {
      co_return false;  // the writing has ended, or ends for the same reason
    } else {
      early_->ended = true;
      const bool whole = received.error() == Errc::end_of_stream && parser_.finish_at_close();
      if (!whole) early_->error = ClientError::connection_lost;
      if (is_alert(received.error())) early_->error = received.error();
      abandoned_ = true;  // the connection has ended
    }
  }
  co_return true;
}

/// Moves the bytes of the body that have arrived to the early body, as far as there is room.
/// Returns: true if the body has ended.
bool H1ClientExchange::take_early() {
  // The end needs no room.
  while (!early_->ended && (early_->bytes.size() < early_body_max || input_.empty())) {
    const ResponseEvent event = parser_.next(input_);
    input_.remove_prefix(event.consumed);
    if (event.kind == Kind::data) {
      early_->bytes.make_room(event.data.size());
      std::memcpy(early_->bytes.room().data(), event.data.data(), event.data.size());
      early_->bytes.commit(event.data.size());
      continue;
    }
    early_->ended = event.kind == Kind::end || event.kind == Kind::error;
    if (event.kind == Kind::error) early_->error = ClientError::bad_response;
    if (!early_->ended) break;
  }
  return early_->ended;
}

/// Waits until a write makes no progress for `answered_stall_max`. Returns false if the writing has
/// ended before.
Task<bool> H1ClientExchange::server_stalls() {
  for (;;) {
    const bool writes = writing_;
    const std::uint64_t before = sent_ + lease_.stream().pending_write_sent();
    const Result<> slept = co_await sleep(answered_stall_max);
    if (!slept) co_return false;
    const std::uint64_t now = sent_ + lease_.stream().pending_write_sent();
    if (writes && writing_ && now == before) co_return true;
  }
}

/// Starts the task that sends the request, and reads the head of the response. The request keeps
/// its body if nothing sends it any more, so that it can be sent again.
Task<Result<>> H1ClientExchange::read_head_beside(Scope& scope, ClientRequest& request,
                                                  std::string_view head) {
  sending_ = std::make_unique<Sending>();
  sending_->body = std::move(request.body());
  sending_->head = head;
  scope.spawn(send_beside());
  Result<> received = co_await read_head_while_sending();
  const bool goes_on = received && code_of(this->head().status()) < 300;
  if (goes_on) co_return received;
  if (is_sending()) {
    stop_sending();
    const Result<> ended = co_await sending_->ended.wait();
    if (!ended) co_return ended;
  }
  request.body() = std::move(sending_->body);
  if (received || !lost_ || received.error() == Errc::cancelled) co_return received;
  co_return fail(lost_error(received.error()));
}

/// Reads the head of the response. Its timeout begins at the end of the request.
Task<Result<>> H1ClientExchange::read_head_while_sending() {
  const Context own = co_await this_context();
  Result<> received;
  for (bool again = true; again;) {
    if (sending_->error) co_return fail(sending_->error);
    const bool was_sending = is_sending();
    const Duration timeout = was_sending ? Duration::max() : limits_->head_timeout;
    received = co_await read_head(timeout);
    // The task that sends ends a read that has no timeout.
    again = was_sending && !received && received.error() == Errc::cancelled && !own.cancelled();
  }
  if (!received || !sending_->error) co_return received;
  has_head_ = false;
  co_return fail(sending_->error);
}

/// The task that sends the request. It may destroy the exchange.
Task<> H1ClientExchange::send_beside() {
  const Context own = co_await this_context();
  CancelSource cancel(own.cancel);
  sending_->cancel = &cancel;
  Result<> sent = fail(Errc::closed);  // if the function of the body throws
  std::exception_ptr thrown;
  try {
    auto writing =
        in_context(Context{own.loop, &cancel}, write_in_time(sending_->body, sending_->head));
    sent = co_await std::move(writing);
  } catch (...) {
    thrown = std::current_exception();
  }
  end_sending(sent);
  if (thrown) std::rethrow_exception(thrown);
}

void H1ClientExchange::stop_sending() noexcept {
  sending_->stopped = true;
  sending_->cancel->cancel();
}

void H1ClientExchange::end_sending(const Result<>& sent) noexcept {
  sending_->cancel = nullptr;
  if (destroy_if_released()) return;
  // A server that has answered may leave the rest of the request unread.
  const bool unread = has_head_ && !sent && sent.error() == ClientError::body_timed_out;
  if (!sent && !lost_ && !sending_->stopped && !unread) sending_->error = sent.error();
  sending_->ended.set();
  if (ended_) return release_connection();
  if (!has_head_ || sending_->error) lease_.stream().cancel_read();
}

/// Copies the bytes of the head unless no other buffer will take the place of theirs: views of
/// headers are valid as long as the response.
void H1ClientExchange::keep_head() {
  ReceivedResponseHead& head = parser_.head();
  const std::optional<std::uint64_t> length = parser_.body_length().bytes();
  const bool whole = length && *length <= input_.size();
  if (!head_text_.empty() || whole) return;
  head_text_ = head.bytes();
  head.rebase(head_text_.data());
}

Task<Result<>> H1ClientExchange::read_head(Duration timeout) {
  const Instant until = after(loop_.now(), timeout);
  while (true) {
    const ResponseEvent event = parser_.next(input_);
    if (event.kind == Kind::error) co_return fail(ClientError::bad_response);
    if (event.kind == Kind::head) {
      input_.remove_prefix(event.consumed);
      has_head_ = true;
      keep_head();
      co_return {};
    }
    if (event.kind == Kind::interim) {
      input_.remove_prefix(event.consumed);
      continue;
    }
    // The first wait needs no clock; `until` limits the later ones.
    const Duration left = received_ && until != never ? until - now() : timeout;
    // Bytes that wait for more move to memory of their own once; `input_` is then its end.
    if (head_text_.empty()) {
      head_text_ = input_;
    } else {
      head_text_.erase(0, head_text_.size() - input_.size());
    }
    input_ = head_text_;
    const Result<> received = co_await receive(left, ClientError::head_timed_out);
    if (!received) {
      co_return fail(received.error() == Errc::end_of_stream
                         ? make_error_code(ClientError::connection_lost)
                         : received.error());
    }
    if (head_text_.empty()) {
      input_ = buffer_.text();
    } else {
      head_text_ += buffer_.text();
      input_ = head_text_;
    }
  }
}

Task<Result<Bytes>> H1ClientExchange::read() {
  if (early_ != nullptr && !ended_) {
    early_->lent = std::exchange(early_->bytes, {});
    if (!early_->lent.empty()) co_return early_->lent.bytes();
    if (early_->error) {
      abandon(early_->error);
    } else if (early_->ended) {
      finish();
    }
    early_.reset();
  }
  while (!ended_) {
    const ResponseEvent event = parser_.next(input_);
    input_.remove_prefix(event.consumed);
    if (event.kind == Kind::data) co_return to_bytes(event.data);
    if (event.kind == Kind::end) {
      finish();
      break;
    }
    if (event.kind == Kind::error) {
      abandon(ClientError::bad_response);
      break;
    }
    if (!reads_.allow(loop_, body_reads_per_turn)) {
      co_await weir::detail::NextTurn(loop_);
      continue;
    }
    if (late()) {
      abandon(ClientError::timed_out);
      break;
    }
    if (sending_ != nullptr && sending_->error) {
      abandon(sending_->error);
      break;
    }
    const Result<> received = co_await receive(limits_->body_timeout, ClientError::body_timed_out);
    if (received) {
      input_ = buffer_.text();
    } else if (received.error() == Errc::cancelled) {
      if (sending_ != nullptr && sending_->error) continue;
      co_return fail(Errc::cancelled);
    } else if (received.error() == Errc::end_of_stream) {
      const bool complete = parser_.finish_at_close();
      abandon(complete ? std::error_code() : make_error_code(ClientError::connection_lost));
    } else {
      abandon(received.error());
    }
  }
  if (error_) co_return fail(error_);
  co_return Bytes();
}

}  // namespace weir::http
