#include "weir/http/client/detail/h1/h1_client_exchange.hpp"

#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "weir/http/client/detail/client_head.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/next_turn.hpp"

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

}  // namespace

class H1ClientExchange::Writing : public Timed<Write>::Awaiter {
  using Base = Timed<Write>::Awaiter;

 public:
  Writing(H1ClientExchange& exchange, std::span<const Bytes> pieces, IoOptions options) noexcept
      : Base(exchange.lease_.stream().write(pieces), options), exchange_(exchange) {
    exchange.written_ = Written::writing;
  }
  Result<> await_resume() noexcept {
    exchange_.written_ = Written::ready;
    exchange_.sent_ += this->sent;
    Result<> written = Base::await_resume();
    if (written || written.error() == Errc::cancelled) return written;
    if (written.error() == Errc::timed_out) {
      return fail(exchange_.timeout_error(ClientError::body_timed_out));
    }
    exchange_.written_ = Written::failed;
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
    if (error == Errc::cancelled) return fail(error);
    if (error == Errc::timed_out) return fail(exchange_.timeout_error(timed_out_));
    exchange_.closed_ = error == Errc::end_of_stream ? error : lost_error(error);
    return {};
  }

 private:
  H1ClientExchange& exchange_;
  ClientError timed_out_;
};

H1ClientExchange::H1ClientExchange(ClientPool::Lease lease, const ClientLimits& limits,
                                   Instant deadline) noexcept
    : ClientExchange(limits, lease.stream().loop(), deadline),
      lease_(std::move(lease)),
      parser_(limits.response) {}

H1ClientExchange::~H1ClientExchange() {
  if (state() != State::head) return;
  try {
    Bytes piece;
    Taken taken = Taken::piece;
    while (taken == Taken::piece) taken = parse(piece);
    if (taken == Taken::end) finish();
  } catch (const std::bad_alloc&) {
    // A trailer found no memory; the lease closes the connection.
  }
}

/// Gives up the connection. It becomes idle if it can carry another request.
void H1ClientExchange::release_connection() noexcept {
  const bool reusable = state() == State::ended && request_complete() && !closed_ &&
                        parser_.reusable() && input_.empty();
  if (!reusable) return lease_.release();
  const auto keep_alive = parser_.head().header("keep-alive");
  lease_.release_for_reuse(keep_alive ? idle_time_of(*keep_alive) : Duration::max());
}

bool H1ClientExchange::may_repeat(const ClientRequest& request) const noexcept {
  return !received_ && body_repeats() && (sent_ == 0 || is_repeatable(request));
}

H1ClientExchange::Writing H1ClientExchange::write(std::span<const Bytes> pieces) {
  IoOptions options;
  options.timeout = limited(limits().body_timeout);
  return Writing(*this, pieces, options);
}

H1ClientExchange::Reading H1ClientExchange::receive(Duration timeout, ClientError timed_out) {
  IoOptions options;
  options.timeout = limited(timeout);
  return Reading(*this, options, timed_out);
}

// The request.

Task<Result<>> H1ClientExchange::run(ClientRequest& request, std::string_view head, Scope* scope) {
  parser_.begin(request.method());
  if (request.interim_function() != nullptr) {
    set_interim_function(request.interim_function(), co_await this_context());
  }
  const Body& body = request.body();
  if (body.is_stream() || body.text().size() > short_body) {
    chunked_ = !body.length();
    request_head_ = head;
    co_return co_await send_body_and_read_head(request, scope);
  }
  // A call of send_piece() would cost a coroutine frame for each request.
  const std::array<Bytes, 2> pieces{to_bytes(head), to_bytes(body.text())};
  const std::span<const Bytes> used(pieces.data(), body.text().empty() ? 1 : 2);
  const Result<> written = co_await write(used);
  if (written) set_request_complete();
  if (!written && !output_closed()) {
    if (written.error() != ClientError::body_timed_out) co_return written;
    // Nothing has read beside the write. An answer that has come meanwhile is not lost.
    const Result<> answered = co_await read_head(Duration::zero());
    co_return answered ? accept(answered) : written;
  }
  const Result<> received = co_await read_head(limits().head_timeout);
  co_return accept(received);
}

Task<Result<>> H1ClientExchange::send_piece(Bytes piece, bool /*last*/) {
  const std::string head = std::exchange(request_head_, {});
  std::array<char, chunk_size_max> size;
  std::array<Bytes, 4> pieces;
  std::size_t count = 0;
  if (!head.empty()) pieces[count++] = to_bytes(head);
  if (chunked_ && !piece.empty()) {
    const char* const end = write_chunk_size(piece.size(), size.data());
    pieces[count++] = to_bytes(between(size.data(), end));
    pieces[count++] = piece;
    pieces[count++] = to_bytes(chunk_end);
  } else if (!piece.empty()) {
    pieces[count++] = piece;
  }
  co_return co_await write(std::span<const Bytes>(pieces.data(), count));
}

Task<Result<>> H1ClientExchange::end_body(std::string_view trailers) {
  if (!chunked_) co_return {};
  std::string last(last_chunk_size(trailers), '\0');
  write_last_chunk(trailers, last.data());
  const Bytes bytes = to_bytes(last);
  co_return co_await write(std::span<const Bytes>(&bytes, 1));
}

ClientExchange::Output H1ClientExchange::output() const noexcept {
  return {written_ == Written::writing, sent_ + lease_.stream().pending_write_sent()};
}

// The head of the response.

Result<> H1ClientExchange::take_response(Method method, std::string received) {
  parser_.begin(method);
  received_ = true;
  set_request_complete();
  head_text_ = std::move(received);
  input_ = head_text_;
  const ResponseEvent event = parser_.next(input_);
  if (event.kind != Kind::head) return fail(ClientError::bad_response);
  input_.remove_prefix(event.consumed);
  return accept({});
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
  Instant until = after(loop().now(), timeout);
  while (true) {
    const ResponseEvent event = parser_.next(input_);
    if (event.kind == Kind::error) co_return fail(ClientError::bad_response);
    if (event.kind == Kind::head) {
      input_.remove_prefix(event.consumed);
      keep_head();
      co_return {};
    }
    if (event.kind == Kind::interim) {
      if (wants_interim()) {
        const Result<> reported = co_await report_interim(parser_.head(), until);
        if (!reported) co_return reported;
      }
      input_.remove_prefix(event.consumed);
      continue;
    }
    if (closed_) co_return fail(lost_error(closed_));
    if (take_wake()) co_return fail(Errc::cancelled);
    // The first wait needs no clock; `until` limits the later ones.
    const Duration left = received_ && until != never ? until - loop().platform().now() : timeout;
    // Bytes that wait for more move to memory of their own once; `input_` is then its end.
    if (head_text_.empty()) {
      head_text_ = input_;
    } else {
      head_text_.erase(0, head_text_.size() - input_.size());
    }
    input_ = head_text_;
    const Result<> received = co_await receive(left, ClientError::head_timed_out);
    if (!received) {
      const bool lost = output_closed() && received.error() != Errc::cancelled;
      co_return fail(lost ? make_error_code(ClientError::connection_lost) : received.error());
    }
    if (closed_) continue;
    if (head_text_.empty()) {
      input_ = buffer_.text();
    } else {
      head_text_ += buffer_.text();
      input_ = head_text_;
    }
  }
}

// The body of the response.

ClientExchange::Taken H1ClientExchange::break_off(std::error_code error) noexcept {
  parsed_ = Parsed::broken;
  response_error_ = error;
  return Taken::error;
}

/// Parses the bytes that have arrived, up to the next piece.
ClientExchange::Taken H1ClientExchange::parse(Bytes& piece) {
  if (parsed_ == Parsed::whole) return Taken::end;
  if (parsed_ == Parsed::broken) return Taken::error;
  const ResponseEvent event = parser_.next(input_);
  input_.remove_prefix(event.consumed);
  if (event.kind == Kind::data) {
    piece = to_bytes(event.data);
    return Taken::piece;
  }
  if (event.kind == Kind::error) return break_off(ClientError::bad_response);
  if (event.kind == Kind::need_more) {
    if (!closed_) return Taken::nothing;
    const bool at_end = closed_ == Errc::end_of_stream;
    if (!at_end) return break_off(closed_);
    if (!parser_.finish_at_close()) return break_off(ClientError::connection_lost);
  }
  parsed_ = Parsed::whole;
  return Taken::end;
}

ClientExchange::Taken H1ClientExchange::take(Bytes& piece) {
  if (early_ == nullptr) return parse(piece);
  early_->lent = std::exchange(early_->bytes, {});
  piece = early_->lent.bytes();
  if (!piece.empty()) return Taken::piece;
  early_.reset();
  return parse(piece);
}

/// Moves the bytes of the body that have arrived to the early body, as far as there is room.
/// Returns: true if nothing more follows.
bool H1ClientExchange::keep_early() {
  Bytes piece;
  // The end needs no room.
  while (early_->bytes.size() < early_body_max || input_.empty()) {
    const Taken taken = parse(piece);
    if (taken == Taken::nothing) return false;
    if (taken != Taken::piece) return true;
    early_->bytes.make_room(piece.size());
    std::memcpy(early_->bytes.room().data(), piece.data(), piece.size());
    early_->bytes.commit(piece.size());
  }
  return false;
}

Task<ClientExchange::Early> H1ClientExchange::receive_early() {
  if (early_ == nullptr) early_ = std::make_unique<EarlyBody>();
  if (keep_early()) co_return Early::complete;
  if (early_->bytes.size() >= early_body_max) co_return Early::full;
  const Result<> received = co_await receive(Duration::max(), ClientError::body_timed_out);
  if (!received) co_return Early::stopped;  // cancelled, or the writing ends for the same reason
  if (!closed_) input_ = buffer_.text();
  co_return Early::some;
}

Task<Result<>> H1ClientExchange::wait_for_body() {
  while (!reads_.allow(loop(), body_reads_per_turn)) {
    co_await weir::detail::NextTurn(loop());
  }
  if (take_wake()) co_return fail(Errc::cancelled);
  const Result<> received = co_await receive(limits().body_timeout, ClientError::body_timed_out);
  if (received && !closed_) input_ = buffer_.text();
  co_return received;
}

}  // namespace weir::http
