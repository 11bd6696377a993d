// Sending a request and reading its response.
#include "weir/http/client/detail/client_exchange.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <span>
#include <utility>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

using Kind = ResponseEvent::Kind;

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

}  // namespace

Result<std::string> request_head(const ClientRequest& request) {
  for (const HeaderField header : request.headers()) {
    if (is_of_client(header.name)) return fail(Errc::bad_input);
  }
  std::string head(name_of(request.method()));
  head.append(" ").append(request.url().target()).append(" HTTP/1.1\r\n");
  if (!request.headers().contains("host")) {
    head.append("Host: ").append(request.url().authority()).append(line_end);
  }
  head.append(request.headers().lines());
  if (!request.content_type().empty() && !request.headers().contains("content-type")) {
    head.append("Content-Type: ").append(request.content_type()).append(line_end);
  }
  if (request.body().is_stream() && !request.length()) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (request.body().is_stream() || sends_length(request)) {
    const std::uint64_t length =
        request.body().is_stream() ? *request.length() : request.body().text().size();
    head.append("Content-Length: ").append(std::to_string(length)).append(line_end);
  }
  return head.append("Connection: close\r\n\r\n");
}

/// The sink of a streamed body. It writes chunks, or counts down a known length.
class ClientExchange::ChunkSink final : public BodySink {
 public:
  ChunkSink(ClientExchange& exchange, std::optional<std::uint64_t> length) noexcept
      : exchange_(&exchange), left_(length) {}
  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (piece.empty()) co_return {};
    if (left_) {
      if (piece.size() > *left_) co_return fail(Errc::bad_input);
      *left_ -= piece.size();
      co_return co_await exchange_->write(std::span<const Bytes>(&piece, 1));
    }
    std::array<char, chunk_size_max> size;
    const char* const end = write_chunk_size(piece.size(), size.data());
    const std::array<Bytes, 3> pieces{to_bytes(between(size.data(), end)), piece,
                                      to_bytes(chunk_end)};
    co_return co_await exchange_->write(pieces);
  }
  /// Returns true if all bytes of a known length were written.
  bool complete() const noexcept { return left_.value_or(0) == 0; }

 private:
  ClientExchange* exchange_;
  std::optional<std::uint64_t> left_;
};

ClientExchange::ClientExchange(tcp::Stream stream, Url url, const ClientLimits& limits,
                               Instant deadline) noexcept
    : stream_(std::move(stream)),
      url_(std::move(url)),
      limits_(&limits),
      deadline_(deadline),
      parser_(limits.response) {}

void ClientExchange::abandon(std::error_code error) noexcept {
  stream_.close();
  ended_ = true;
  error_ = error;
}

Instant ClientExchange::now() const {
  return stream_.loop().platform().now();
}

Duration ClientExchange::time_until(Instant end) const {
  const Instant earlier = std::min(end, deadline_);
  return earlier == never ? Duration::max() : earlier - now();
}

std::error_code ClientExchange::timeout_error(ClientError error) const {
  return now() >= deadline_ ? ClientError::timed_out : error;
}

Task<Result<>> ClientExchange::write(std::span<const Bytes> pieces) {
  const Duration timeout = time_until(after(now(), limits_->body_timeout));
  const Result<> written = co_await stream_.write(pieces, {.timeout = timeout});
  if (!written && written.error() == Errc::timed_out) {
    co_return fail(timeout_error(ClientError::body_timed_out));
  }
  co_return written;
}

Task<Result<>> ClientExchange::write_request(ClientRequest& request) {
  Result<std::string> head = request_head(request);
  if (!head) co_return fail(head.error());
  const std::string_view body = request.body().text();
  const std::array<Bytes, 2> pieces{to_bytes(*head), to_bytes(body)};
  const std::span<const Bytes> used(pieces.data(), body.empty() ? 1 : 2);
  const Result<> written = co_await write(used);
  if (!written || !request.body().is_stream()) co_return written;
  co_return co_await write_stream(request);
}

Task<Result<>> ClientExchange::write_stream(ClientRequest& request) {
  ChunkSink sink(*this, request.length());
  const Result<> streamed = co_await (*request.body().stream())(sink);
  if (!streamed) co_return streamed;
  if (!sink.complete()) co_return fail(Errc::bad_input);
  if (request.length()) co_return {};
  const Bytes last = to_bytes(last_chunk);
  co_return co_await write(std::span<const Bytes>(&last, 1));
}

Task<Result<>> ClientExchange::run(ClientRequest& request) {
  parser_.begin(request.method());
  const Result<> written = co_await write_request(request);
  const bool lost = !written && (written.error() == std::errc::broken_pipe ||
                                 written.error() == std::errc::connection_reset);
  if (!written && !lost) co_return written;
  const Result<> received = co_await read_head();
  if (received || !lost) co_return received;
  co_return fail(received.error() == Errc::cancelled ? received.error()
                                                     : ClientError::connection_lost);
}

/// Reads more bytes into the buffer, until `until` or the deadline of the request.
Task<Result<>> ClientExchange::receive(Instant until, ClientError timed_out) {
  const Duration timeout = time_until(until);
  Result<Buffer> arrived = co_await stream_.read({.timeout = timeout});
  if (arrived) {
    buffer_ = std::move(*arrived);
    co_return {};
  }
  if (arrived.error() == Errc::timed_out) {
    co_return fail(timeout_error(timed_out));
  }
  const bool kept = arrived.error() == Errc::cancelled || arrived.error() == Errc::end_of_stream;
  if (kept) co_return fail(arrived.error());
  co_return fail(ClientError::connection_lost);
}

Task<Result<>> ClientExchange::read_head() {
  const Instant until = after(now(), limits_->head_timeout);
  while (true) {
    const ResponseEvent event = parser_.next(input_);
    if (event.kind == Kind::error) co_return fail(ClientError::bad_response);
    if (event.kind == Kind::head) {
      // The head moves to memory of its own, since the buffer is used for the body.
      head_ = parser_.head();
      status_ = parser_.head().status();
      std::string bytes(input_.substr(0, event.consumed));
      input_.remove_prefix(event.consumed);
      // The rest of the input is the end of the buffer, even if the head arrived in pieces.
      assert(input_.size() <= buffer_.size());
      input_ = buffer_.text().substr(buffer_.size() - input_.size());
      head_text_ = std::move(bytes);
      head_.rebase(head_text_.data());
      co_return {};
    }
    if (event.kind == Kind::interim) {
      input_.remove_prefix(event.consumed);
      continue;
    }
    std::string before(input_);
    const Result<> received = co_await receive(until, ClientError::head_timed_out);
    if (!received) {
      co_return fail(received.error() == Errc::end_of_stream
                         ? make_error_code(ClientError::connection_lost)
                         : received.error());
    }
    head_text_ = std::move(before);
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
      abandon({});
      break;
    }
    if (event.kind == Kind::error) {
      abandon(ClientError::bad_response);
      break;
    }
    const Instant until = after(now(), limits_->body_timeout);
    const Result<> received = co_await receive(until, ClientError::body_timed_out);
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
