#include "weir/http/client/detail/client_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>
#include <tuple>
#include <utility>

#include "weir/base/detail/state_table.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

// Bytes of a long text that ClientLimits::body_timeout limits together.
constexpr std::size_t text_slice = 256 * 1024;

// The time in which a server must take more of a request if its response has filled all room that
// the client has for it. Server and client would otherwise wait for each other.
constexpr Duration answered_stall_max = std::chrono::seconds(1);

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

/// The sink of a streamed body. It counts down the length of the body, if that is known. After a
/// failed write, all later ones fail with the same error, because the server has a part of a piece.
class ClientExchange::Sink final : public BodySink {
 public:
  Sink(ClientExchange& exchange, std::optional<std::uint64_t> length) noexcept
      : exchange_(exchange), left_(length) {}

  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (error_) co_return fail(error_);
    if (piece.empty()) co_return {};
    if (exchange_.late()) error_ = ClientError::timed_out;
    if (!error_ && left_ && piece.size() > *left_) error_ = Errc::bad_input;
    if (error_) co_return fail(error_);
    if (left_) *left_ -= piece.size();
    const Result<> sent = co_await exchange_.send_piece(piece, false);
    if (!sent) error_ = sent.error();
    // The function may still wait, but the server has all.
    if (sent && left_ == std::uint64_t{0}) exchange_.change(Progress::streamed);
    co_return sent;
  }
  /// Returns the first error; bad_input if bytes of a known length are missing.
  std::error_code error() const noexcept {
    if (!error_ && left_.value_or(0) > 0) return make_error_code(Errc::bad_input);
    return error_;
  }

 private:
  ClientExchange& exchange_;
  std::optional<std::uint64_t> left_;
  std::error_code error_;
};

ClientExchange::ClientExchange(const ClientLimits& limits, Loop& loop, Instant deadline) noexcept
    : ResponseSource(limits.body_max), limits_(&limits), loop_(loop), deadline_(deadline) {}

ClientExchange::~ClientExchange() = default;

void ClientExchange::change(State next) noexcept {
  static constexpr weir::detail::StateTable<State, 4> table{
      {State::awaited, {State::head, State::abandoned}},
      {State::head, {State::ended, State::abandoned}},
      {State::ended, {State::abandoned}},
      {State::abandoned, {State::abandoned}},
  };
  table.change(state_, next);
}

void ClientExchange::change(Progress next) noexcept {
  static constexpr weir::detail::StateTable<Progress, 4> table{
      {Progress::begun, {Progress::streaming, Progress::complete}},
      {Progress::streaming, {Progress::streamed}},
      {Progress::streamed, {Progress::streamed}},
  };
  table.change(progress_, next);
}

/// A task that still sends is cancelled, and destroys the exchange at its end.
void ClientExchange::release() noexcept {
  released_ = true;
  if (is_sending()) return abandon(Errc::cancelled);
  delete this;
}

Duration ClientExchange::limited(Duration timeout) const {
  return deadline_ == never ? timeout : std::min(timeout, deadline_ - loop_.platform().now());
}

bool ClientExchange::late() const {
  return deadline_ != never && loop_.platform().now() >= deadline_;
}

std::error_code ClientExchange::timeout_error(ClientError error) const {
  return late() ? ClientError::timed_out : error;
}

Task<Result<>> ClientExchange::report_interim(const ReceivedResponseHead& head,
                                              Instant& until) const {
  const Instant begun = loop_.platform().now();
  const InterimResponse interim(head);
  auto limited_call = timeout(limited(Duration::max()), (*interim_)(interim));
  auto calling = in_context(Context{&loop_, caller_}, std::move(limited_call));
  const Result<> called = co_await std::move(calling);
  if (!called && called.error() == Errc::timed_out) co_return fail(ClientError::timed_out);
  if (until != never) until = after(until, loop_.platform().now() - begun);
  co_return {};
}

Result<> ClientExchange::accept(Result<> received) noexcept {
  woken_ = false;  // the end of the request was for those who waited for the head
  if (received) change(State::head);
  return received;
}

// The request.

Task<Result<>> ClientExchange::send_body_and_read_head(ClientRequest& request, Scope* scope) {
  if (scope != nullptr) {
    const Result<> received = co_await read_head_beside(*scope, request);
    co_return received;
  }
  const Result<> sent = co_await send_beside_reading(request.body());
  if (state_ == State::head) co_return {};
  if (!sent && !output_closed()) co_return sent;
  // An answer may have come although the server takes nothing more.
  const Result<> received = co_await read_head(limits_->head_timeout);
  co_return accept(received);
}

/// Sends the body, or the rest of its text.
Task<Result<>> ClientExchange::send_body(Body& body) {
  if (body.is_stream()) {
    const Result<> streamed = co_await send_stream(body);
    co_return streamed;
  }
  std::string_view rest = body.text().substr(text_sent_);
  while (!rest.empty()) {
    if (late()) co_return fail(ClientError::timed_out);
    const Bytes slice = to_bytes(rest.substr(0, text_slice));
    rest.remove_prefix(slice.size());
    const Result<> sent = co_await send_piece(slice, rest.empty());
    if (!sent) co_return sent;
  }
  change(Progress::complete);
  co_return {};
}

Task<Result<>> ClientExchange::send_stream(Body& body) {
  const Context own = co_await this_context();
  const Result<> begun = co_await send_piece({}, false);  // the function can wait for the server
  if (!begun) co_return begun;
  Sink sink(*this, body.length());
  change(Progress::streaming);
  const Result<> streamed = co_await (*body.stream())(sink);
  if (!streamed) co_return streamed;
  if (sink.error()) co_return fail(sink.error());
  // A body that was cut off must not look whole, whatever its function makes of the cancellation.
  if (own.cancelled()) co_return fail(Errc::cancelled);
  const Result<> ended = co_await end_body(sink.trailers().lines());
  if (ended) change(Progress::streamed);
  co_return ended;
}

Task<Result<>> ClientExchange::send_in_time(Body& body) {
  auto sending = send_body(body);
  // The function of a stream can wait for something else than the server.
  const Result<> sent = co_await timeout(limited(Duration::max()), std::move(sending));
  if (!sent && sent.error() == Errc::timed_out) co_return fail(ClientError::timed_out);
  co_return sent;
}

// The caller's task sends the body.

/// Returns true if the response ends the body of its request: a server that has answered with an
/// error or a redirect, or with a whole response, needs no more of it (RFC 9113 §8.1).
bool ClientExchange::ends_request(bool complete) const noexcept {
  return complete || code_of(head().status()) >= 300;
}

/// Sends the body and reads a response that comes before its end.
/// Returns: no error if the body was sent or the head was accepted.
Task<Result<>> ClientExchange::send_beside_reading(Body& body) {
  const Context own = co_await this_context();
  CancelSource writing(own.cancel);
  CancelSource reading(own.cancel);
  const Context write_context{own.loop, &writing};
  const Context read_context{own.loop, &reading};
  auto write = as_task(in_context(write_context, send_then_cancel(body, reading)));
  auto read = as_task(in_context(read_context, read_then_cancel(writing)));
  const auto both = co_await settled(std::move(write), std::move(read));
  const Result<>& sent = std::get<0>(both);
  const Result<>& received = std::get<1>(both);
  if (received) {
    const bool needs_no_more = output_closed() || writing.cancelled();
    if (!sent && !needs_no_more && sent.error() != ClientError::body_timed_out) co_return sent;
    change(State::head);
    if (!sent) on_body_cut();
    co_return {};
  }
  if (received.error() != Errc::cancelled) co_return received;
  if (own.cancelled()) co_return fail(Errc::cancelled);
  co_return sent;
}

Task<Result<>> ClientExchange::send_then_cancel(Body& body, CancelSource& reading) {
  const CancelAtEnd at_end(reading);
  co_return co_await send_in_time(body);
}

/// Reads the head, and ends the writing when the server needs no more of the request.
Task<Result<>> ClientExchange::read_then_cancel(CancelSource& writing) {
  CancelAtEnd at_end(writing);
  const Result<> received = co_await read_head(Duration::max());
  bool goes_on = !received && received.error() == Errc::cancelled;
  if (received && !ends_request(false)) {
    const bool complete = co_await receive_all_early();
    goes_on = !complete;
  }
  if (goes_on) at_end.dismiss();
  co_return received;
}

/// Reads the body of a response beside the writing of its request, as far as there is room.
/// Returns: true if nothing more comes unless the client reads, and the server takes no more of the
/// request; false if the writing has ended.
Task<bool> ClientExchange::receive_all_early() {
  for (;;) {
    const Early early = co_await receive_early();
    if (early == Early::stopped) co_return false;
    if (early == Early::complete) co_return true;
    if (early == Early::full) co_return co_await server_stalls();
  }
}

/// Waits until a piece makes no progress for `answered_stall_max`. Returns false if the writing has
/// ended before.
Task<bool> ClientExchange::server_stalls() {
  for (;;) {
    const Output before = output();
    const Result<> slept = co_await sleep(answered_stall_max);
    if (!slept) co_return false;
    const Output now = output();
    if (before.waits && now.waits && now.bytes == before.bytes) co_return true;
  }
}

// A task of a scope sends the body.

/// Starts the task that sends the body, and reads the head of the response. The request keeps its
/// body if nothing sends it any more, so that it can be sent again.
Task<Result<>> ClientExchange::read_head_beside(Scope& scope, ClientRequest& request) {
  sending_ = std::make_unique<Sending>();
  sending_->body = std::move(request.body());
  scope.spawn(send_in_scope());
  const Result<> received = co_await read_head_while_sending();
  if (received && !ends_request(false)) co_return accept(received);
  if (is_sending()) {
    stop_sending();
    const Result<> ended = co_await sending_->ended.wait();
    if (!ended) co_return ended;
  }
  request.body() = std::move(sending_->body);
  co_return accept(received);
}

/// Reads the head of the response. Its timeout begins at the end of the request.
Task<Result<>> ClientExchange::read_head_while_sending() {
  const Context own = co_await this_context();
  Result<> received;
  for (bool again = true; again;) {
    if (sending_->error) co_return fail(sending_->error);
    woken_ = false;
    const bool was_sending = is_sending();
    const Duration timeout = was_sending ? Duration::max() : limits_->head_timeout;
    received = co_await read_head(timeout);
    // The task that sends wakes a read that has no timeout.
    again = was_sending && !received && received.error() == Errc::cancelled && !own.cancelled();
  }
  if (received && sending_->error) co_return fail(sending_->error);
  co_return received;
}

/// The task that sends the body. It may destroy the exchange.
Task<> ClientExchange::send_in_scope() {
  const Context own = co_await this_context();
  CancelSource cancel(own.cancel);
  sending_->cancel = &cancel;
  Result<> sent = fail(Errc::closed);  // if the function of the body throws
  std::exception_ptr thrown;
  try {
    auto writing = in_context(Context{own.loop, &cancel}, send_in_time(sending_->body));
    sent = co_await std::move(writing);
  } catch (...) {
    thrown = std::current_exception();
  }
  end_sending(sent);
  if (thrown) std::rethrow_exception(thrown);
}

void ClientExchange::stop_sending() noexcept {
  sending_->stopped = true;
  sending_->cancel->cancel();
}

void ClientExchange::end_sending(const Result<>& sent) noexcept {
  sending_->cancel = nullptr;
  if (released_) {
    delete this;
    return;
  }
  // A server that has answered may leave the rest of the request unread.
  const bool unread = state_ == State::head && !sent && sent.error() == ClientError::body_timed_out;
  if (!sent && !output_closed() && !sending_->stopped && !unread) sending_->error = sent.error();
  sending_->ended.set();
  if (state_ == State::ended || state_ == State::abandoned) return release_connection();
  if (state_ == State::awaited || sending_->error) wake_reader();
}

// The response.

void ClientExchange::abandon(std::error_code error) noexcept {
  error_ = error;
  change(State::abandoned);
  drop_input();
  if (is_sending()) return stop_sending();
  release_connection();
}

void ClientExchange::finish() noexcept {
  change(State::ended);
  if (!is_sending()) release_connection();
}

/// Returns why nobody may wait for more of the response.
std::error_code ClientExchange::stop_error() const noexcept {
  if (late()) return ClientError::timed_out;
  return sending_ != nullptr ? sending_->error : std::error_code();
}

Task<Result<Bytes>> ClientExchange::read() {
  if (state_ == State::head) release_piece();
  while (state_ == State::head) {
    // Bytes that always arrive in time must not hide that the time has passed.
    const std::error_code stop = needs_more() ? stop_error() : std::error_code();
    Bytes piece;
    const Taken taken = stop ? Taken::nothing : take(piece);
    if (taken == Taken::piece) co_return piece;
    if (taken == Taken::end) {
      finish();
    } else if (taken == Taken::error || stop) {
      abandon(stop ? stop : response_error());
    } else {
      const Result<> arrived = co_await wait_for_body();
      if (arrived) continue;
      if (arrived.error() != Errc::cancelled) {
        abandon(arrived.error());
      } else if (sending_ == nullptr || !sending_->error) {
        co_return fail(Errc::cancelled);
      }
    }
  }
  if (error_) co_return fail(error_);
  co_return Bytes();
}

}  // namespace weir::http
