// Sending a request and reading its response.
#include "weir/http/client/detail/client_exchange.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

using Kind = ResponseEvent::Kind;

// Bytes of a body that the kernel takes without waiting for the server, as a rule.
constexpr std::size_t short_body = 32 * 1024;
// Bytes of a longer body that ClientLimits::body_timeout limits together.
constexpr std::size_t body_slice = 256 * 1024;

constexpr std::array<std::string_view, 4> headers_of_client{"content-length", "transfer-encoding",
                                                            "connection", "upgrade"};

bool is_of_client(std::string_view name) noexcept {
  return std::ranges::any_of(headers_of_client, [name](std::string_view each) {
    return equals_ignoring_case(name, each);
  });
}

/// Returns true if the request has a length although its body is empty (RFC 9110 §8.6).
bool sends_length(const ClientRequest& request) noexcept {
  const Method method = request.method();
  return !request.body().text().empty() || method == Method::post || method == Method::put ||
         method == Method::patch;
}

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

Result<std::string> request_head(const ClientRequest& request, const HeadContext& context) {
  for (const HeaderField header : request.headers()) {
    if (is_of_client(header.name)) return fail(Errc::bad_input);
  }
  const std::string_view method = name_of(request.method());
  constexpr std::size_t rest_max = 128;  // this client's own names, values and line ends
  std::string head;
  head.reserve(method.size() + context.target.size() + request.url().text().size() +
               context.more_lines.size() + context.cookies.size() +
               request.headers().lines().size() + request.content_type().size() + rest_max);
  head.append(method).append(" ").append(context.target).append(" HTTP/1.1\r\n");
  if (!request.headers().contains("host")) {
    head.append("Host: ").append(request.url().authority()).append(line_end);
  }
  head.append(request.headers().lines()).append(context.more_lines);
  if (!context.cookies.empty() && !request.headers().contains("cookie")) {
    head.append("Cookie: ").append(context.cookies).append(line_end);
  }
  if (!request.content_type().empty() && !request.headers().contains("content-type")) {
    head.append("Content-Type: ").append(request.content_type()).append(line_end);
  }
  const std::optional<std::uint64_t> length = request.body().length();
  if (!length) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (request.body().is_stream() || sends_length(request)) {
    head.append("Content-Length: ").append(std::to_string(*length)).append(line_end);
  }
  return head.append(line_end);
}

Duration idle_time_of(std::string_view keep_alive) noexcept {
  constexpr std::string_view name = "timeout=";
  while (!keep_alive.empty()) {
    std::string_view each = keep_alive.substr(0, keep_alive.find(','));
    keep_alive.remove_prefix(std::min(each.size() + 1, keep_alive.size()));
    each.remove_prefix(std::min(each.find_first_not_of(" \t"), each.size()));
    if (!equals_ignoring_case(each.substr(0, name.size()), name)) continue;
    std::uint32_t seconds = 0;
    const char* const digits = each.data() + name.size();
    const auto read = std::from_chars(digits, each.data() + each.size(), seconds);
    if (read.ec != std::errc()) continue;
    const Duration given = std::chrono::seconds(seconds);
    return given - std::max<Duration>(std::chrono::seconds(1), given / 10);
  }
  return Duration::max();
}

class ClientExchange::Writing : public Timed<Write>::Awaiter {
  using Base = Timed<Write>::Awaiter;

 public:
  Writing(ClientExchange& exchange, std::span<const Bytes> pieces, IoOptions options) noexcept
      : Base(exchange.lease_.stream().write(pieces), options), exchange_(exchange) {}
  Result<> await_resume() noexcept {
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
  ClientExchange& exchange_;
};

class ClientExchange::Reading : public Timed<Read>::Awaiter {
  using Base = Timed<Read>::Awaiter;

 public:
  Reading(ClientExchange& exchange, IoOptions options, ClientError timed_out) noexcept
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
    return fail(ClientError::connection_lost);
  }

 private:
  ClientExchange& exchange_;
  ClientError timed_out_;
};

/// The sink of a streamed body. It writes chunks, or counts down a known length. After a failed
/// write, all later ones fail with the same error, because the server has a part of a piece.
class ClientExchange::ChunkSink final : public BodySink {
 public:
  ChunkSink(ClientExchange& exchange, std::optional<std::uint64_t> length) noexcept
      : exchange_(&exchange), left_(length) {}
  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (error_) co_return fail(error_);
    if (piece.empty()) co_return {};
    error_ = exchange_->late() ? make_error_code(ClientError::timed_out) : std::error_code();
    if (!error_ && left_ && piece.size() > *left_) error_ = make_error_code(Errc::bad_input);
    if (error_) co_return fail(error_);
    const Result<> written = co_await write_whole(piece);
    if (!written) error_ = written.error();
    co_return written;
  }
  /// Returns the first error; bad_input if bytes of a known length are missing.
  std::error_code error() const noexcept {
    if (!error_ && left_.value_or(0) > 0) return make_error_code(Errc::bad_input);
    return error_;
  }

 private:
  Task<Result<>> write_whole(Bytes piece) {
    if (left_) {
      *left_ -= piece.size();
      co_return co_await exchange_->write(std::span<const Bytes>(&piece, 1));
    }
    std::array<char, chunk_size_max> size;
    const char* const end = write_chunk_size(piece.size(), size.data());
    const std::array<Bytes, 3> pieces{to_bytes(between(size.data(), end)), piece,
                                      to_bytes(chunk_end)};
    co_return co_await exchange_->write(pieces);
  }

  ClientExchange* exchange_;
  std::optional<std::uint64_t> left_;
  std::error_code error_;
};

ClientExchange::ClientExchange(ClientPool::Lease lease, const ClientLimits& limits,
                               Instant deadline) noexcept
    : lease_(std::move(lease)),
      loop_(lease_.stream().loop()),
      limits_(&limits),
      deadline_(deadline),
      parser_(limits.response) {}

ClientExchange::~ClientExchange() {
  if (ended_ || !has_head_) return;
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

void ClientExchange::abandon(std::error_code error) noexcept {
  lease_.release();
  ended_ = true;
  error_ = error;
}

/// Ends a complete response. The connection becomes idle if it can carry another request.
void ClientExchange::finish() noexcept {
  ended_ = true;
  if (!request_complete_ || !parser_.reusable() || !input_.empty()) return lease_.release();
  const auto keep_alive = parser_.head().header("keep-alive");
  lease_.release_for_reuse(keep_alive ? idle_time_of(*keep_alive) : Duration::max());
}

bool ClientExchange::may_repeat(const ClientRequest& request) const noexcept {
  if (received_ || stream_called_) return false;
  const Headers& headers = request.headers();
  return sent_ == 0 || is_idempotent(request.method()) || headers.contains("idempotency-key") ||
         headers.contains("x-idempotency-key");
}

Instant ClientExchange::now() const {
  return loop_.platform().now();
}

Duration ClientExchange::limited(Duration timeout) const {
  return deadline_ == never ? timeout : std::min(timeout, deadline_ - now());
}

bool ClientExchange::late() const {
  return deadline_ != never && now() >= deadline_;
}

std::error_code ClientExchange::timeout_error(ClientError error) const {
  return late() ? ClientError::timed_out : error;
}

ClientExchange::Writing ClientExchange::write(std::span<const Bytes> pieces) {
  IoOptions options;
  options.timeout = limited(limits_->body_timeout);
  return Writing(*this, pieces, options);
}

ClientExchange::Reading ClientExchange::receive(Duration timeout, ClientError timed_out) {
  IoOptions options;
  options.timeout = limited(timeout);
  return Reading(*this, options, timed_out);
}

Task<Result<>> ClientExchange::write_request(ClientRequest& request, std::string_view head) {
  std::string_view body = request.body().text();
  const std::array<Bytes, 2> pieces{to_bytes(head), to_bytes(body.substr(0, body_slice))};
  const std::span<const Bytes> used(pieces.data(), body.empty() ? 1 : 2);
  const Result<> written = co_await write(used);
  if (!written) co_return written;
  while (body.size() > body_slice) {
    body.remove_prefix(body_slice);
    if (late()) co_return fail(ClientError::timed_out);
    const Bytes slice = to_bytes(body.substr(0, body_slice));
    const Result<> more = co_await write(std::span<const Bytes>(&slice, 1));
    if (!more) co_return more;
  }
  if (request.body().is_stream()) {
    const Result<> streamed = co_await write_stream(request);
    if (!streamed) co_return streamed;
  }
  request_complete_ = true;
  co_return {};
}

Task<Result<>> ClientExchange::write_stream(ClientRequest& request) {
  const std::optional<std::uint64_t> length = request.body().length();
  ChunkSink sink(*this, length);
  stream_called_ = true;
  const Result<> streamed = co_await (*request.body().stream())(sink);
  if (!streamed) co_return streamed;
  if (sink.error()) co_return fail(sink.error());
  if (length) co_return {};
  const Bytes last = to_bytes(last_chunk);
  co_return co_await write(std::span<const Bytes>(&last, 1));
}

Task<Result<>> ClientExchange::run(ClientRequest& request, std::string_view head) {
  parser_.begin(request.method());
  const bool may_wait = request.body().is_stream() || request.body().text().size() > short_body;
  Result<> written;
  if (may_wait) {
    written = co_await write_while_reading(request, head);
  } else {
    // A call of write_request() would cost a coroutine frame for each request.
    const std::string_view body = request.body().text();
    const std::array<Bytes, 2> pieces{to_bytes(head), to_bytes(body)};
    const std::span<const Bytes> used(pieces.data(), body.empty() ? 1 : 2);
    written = co_await write(used);
    request_complete_ = written.has_value();
  }
  if (has_head_) co_return {};
  if (!written && !lost_) co_return written;
  const Result<> received = co_await read_head(limits_->head_timeout);
  if (received || !lost_ || received.error() == Errc::cancelled) co_return received;
  co_return fail(ClientError::connection_lost);
}

/// Writes the request and reads the head of a response that comes before the request's end. The
/// writing ends early if that response is an error or a redirect.
/// Returns: no error if the request was sent or the head has arrived.
Task<Result<>> ClientExchange::write_while_reading(ClientRequest& request, std::string_view head) {
  const Context own = co_await this_context();
  CancelSource writing(own.cancel);
  CancelSource reading(own.cancel);
  const Context write_context{own.loop, &writing};
  const Context read_context{own.loop, &reading};
  auto write = as_task(in_context(write_context, write_then_cancel(request, head, reading)));
  auto read = as_task(in_context(read_context, read_then_cancel(writing)));
  const auto both = co_await settled(std::move(write), std::move(read));
  const Result<>& written = std::get<0>(both);
  const Result<>& received = std::get<1>(both);
  if (received) {
    const bool fits = written || lost_ || writing.cancelled();
    has_head_ = fits;
    co_return fits ? Result<>() : written;
  }
  if (received.error() != Errc::cancelled) co_return received;
  if (own.cancelled()) co_return fail(Errc::cancelled);
  co_return written;
}

Task<Result<>> ClientExchange::write_then_cancel(ClientRequest& request, std::string_view head,
                                                 CancelSource& reading) {
  const CancelAtEnd at_end(reading);
  auto writing = write_request(request, head);
  // The function of a stream can wait for something else than the server.
  const Result<> written = co_await timeout(limited(Duration::max()), std::move(writing));
  if (!written && written.error() == Errc::timed_out) co_return fail(ClientError::timed_out);
  co_return written;
}

Task<Result<>> ClientExchange::read_then_cancel(CancelSource& writing) {
  CancelAtEnd at_end(writing);
  const Result<> received = co_await read_head(Duration::max());
  const bool cancelled = !received && received.error() == Errc::cancelled;
  const bool ends_early = !cancelled && (!received || code_of(head().status()) >= 300);
  if (!ends_early) at_end.dismiss();
  co_return received;
}

/// Copies the bytes of the head unless no other buffer will take the place of theirs: views of
/// headers are valid as long as the response.
void ClientExchange::keep_head() {
  ReceivedResponseHead& head = parser_.head();
  const bool whole = head.has_content_length() && head.content_length() <= input_.size();
  if (!head_text_.empty() || whole) return;
  head_text_ = head.bytes();
  head.rebase(head_text_.data());
}

Task<Result<>> ClientExchange::read_head(Duration timeout) {
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

Task<Result<Bytes>> ClientExchange::read() {
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
    if (late()) {
      abandon(ClientError::timed_out);
      break;
    }
    const Result<> received = co_await receive(limits_->body_timeout, ClientError::body_timed_out);
    if (received) {
      input_ = buffer_.text();
    } else if (received.error() == Errc::cancelled) {
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
