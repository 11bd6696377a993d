// One request and its response on one connection of a client.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// A ClientExchange sends one request and reads its response. It owns the connection, which it
/// closes when it is destroyed.
/// Threads: one core's.
class ClientExchange {
 public:
  /// `deadline` is the end of ClientLimits::total_timeout. `limits` outlive the object.
  ClientExchange(tcp::Stream stream, Url url, const ClientLimits& limits,
                 Instant deadline) noexcept;
  ClientExchange(const ClientExchange&) = delete;
  ClientExchange& operator=(const ClientExchange&) = delete;

  /// Sends the request, then waits for the head of the final response. A server may answer before
  /// it has read the whole body, so a failed write of the body is no error if a head arrives.
  /// Errors: those of Client::send() that concern one connection.
  /// Cancel: the connection can only be closed.
  Task<Result<>> run(ClientRequest& request);

  /// Returns the next piece of the body; see ClientResponse::read().
  /// Errors: those of ClientResponse::read().
  /// Cancel: no data is lost.
  Task<Result<Bytes>> read();

  const MessageHead& head() const noexcept { return head_; }
  Status status() const noexcept { return status_; }
  const Headers& trailers() const noexcept { return parser_.trailers(); }
  const Url& url() const noexcept { return url_; }
  const ClientLimits& limits() const noexcept { return *limits_; }
  /// Closes the connection and lets later reads fail with `error`.
  void abandon(std::error_code error) noexcept;

 private:
  class ChunkSink;

  Instant now() const;
  /// Returns the time until `end` or the deadline, whichever is earlier.
  Duration time_until(Instant end) const;
  /// Returns `error`, or ClientError::timed_out after the deadline.
  std::error_code timeout_error(ClientError error) const;
  Task<Result<>> write_request(ClientRequest& request);
  Task<Result<>> write_stream(ClientRequest& request);
  Task<Result<>> write(std::span<const Bytes> pieces);
  Task<Result<>> read_head();
  Task<Result<>> receive(Instant until, ClientError timed_out);

  tcp::Stream stream_;
  Url url_;
  const ClientLimits* limits_;
  Instant deadline_;
  ResponseParser parser_;
  ReceivedResponseHead head_;  ///< that of the final response; its bytes are in head_text_
  Status status_{};
  Buffer buffer_;           ///< the bytes that arrived last
  std::string head_text_;   ///< the bytes of a head that arrives in pieces
  std::string_view input_;  ///< the bytes in either that the parser has not consumed
  bool ended_ = false;
  std::error_code error_;  ///< that of the body, for later reads
};

/// Returns the head of the request, with its empty line.
/// Errors: Errc::bad_input for a header that belongs to the client.
Result<std::string> request_head(const ClientRequest& request);

}  // namespace weir::http
