// One request and its response on one HTTP/1.1 connection of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/response_source.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/detail/turn_uses.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// An H1ClientExchange sends one request over HTTP/1.1 and reads its response. It has the lease of
/// the connection. It gives the connection back when the response has ended, and closes it
/// otherwise. Threads: one core's. Lifetime: no operation is pending when it is destroyed
/// (asserted).
class H1ClientExchange final : public ResponseSource {
 public:
  /// `deadline` is the end of ClientLimits::total_timeout. `lease` has a connection. `limits`
  /// outlive the object.
  H1ClientExchange(ClientPool::Lease lease, const ClientLimits& limits, Instant deadline) noexcept;

  /// Sends the request, then waits for the head of the final response. A server may answer before
  /// it has read the whole body, so a write of the body that has failed or timed out is no error if
  /// a head arrives. A long or streamed body ends early if ends_request() says so. With a scope, a
  /// task of that scope sends such a body, also after the return.
  /// Errors: those of Client::send() that concern one connection.
  /// Cancel: the connection can only be closed.
  /// Lifetime: `head`, the result of request_head(), lives until the return.
  Task<Result<>> run(ClientRequest& request, std::string_view head, Scope* scope);
  /// Takes the final response to a request that was sent without run(). `received` has its head and
  /// the bytes that have come behind it.
  /// Errors: ClientError::bad_response.
  Result<> take_response(Method method, std::string received);
  /// Returns true if the request may be sent again after the connection was lost: no byte of a
  /// response has come, the body can be sent again, and a repetition has no other effect. The
  /// request is idempotent, or it has an Idempotency-Key, or the kernel took none of its bytes.
  bool may_repeat(const ClientRequest& request) const noexcept;
  ClientPool::Lease take_lease() noexcept { return std::move(lease_); }

  const ReceivedResponseHead& head() const noexcept override { return parser_.head(); }
  BodyLength length() const noexcept override { return parser_.body_length(); }
  const Headers& trailers() const noexcept override { return parser_.trailers(); }
  bool is_http2() const noexcept override { return false; }
  Task<Result<Bytes>> read() override;
  void abandon(std::error_code error) noexcept override;

 private:
  class Reading;
  class Sink;
  class Writing;
  /// A request that a task of a scope sends.
  struct Sending {
    Body body;
    std::string head;
    CancelSource* cancel = nullptr;  ///< that of the task; nullptr if it does not run
    ManualResetEvent ended;
    bool stopped = false;        ///< true if the exchange itself cancelled the task
    std::error_code error = {};  ///< why the request is incomplete, unless it was stopped
  };

  /// Gives the connection back if the rest of the response has arrived already.
  ~H1ClientExchange() override;

  Instant now() const;
  /// Returns `timeout`, or the time until the deadline if that is earlier.
  Duration limited(Duration timeout) const;
  bool late() const override;
  /// Returns `error`, or ClientError::timed_out after the deadline.
  std::error_code timeout_error(ClientError error) const;
  Task<Result<>> write_request(Body& body, std::string_view head);
  Task<Result<>> write_stream(Body& body);
  /// Writes the request until the deadline.
  Task<Result<>> write_in_time(Body& body, std::string_view head);
  /// Writes pieces like Stream::write(), and counts the bytes that the kernel took, also if it
  /// fails. An error is that of a ClientResponse.
  Writing write(std::span<const Bytes> pieces);
  Task<Result<>> write_while_reading(Body& body, std::string_view head);
  Task<Result<>> write_then_cancel(Body& body, std::string_view head, CancelSource& reading);
  Task<Result<>> read_then_cancel(CancelSource& writing);
  /// The body of a response that has arrived while the request was being sent.
  struct EarlyBody {
    Buffer bytes;                ///< what no read has returned yet
    Buffer lent;                 ///< what the last read has returned
    bool ended = false;          ///< true if nothing follows the bytes
    std::error_code error = {};  ///< why the body is incomplete, if it has ended
  };
  Task<bool> read_early();
  bool take_early();
  Task<bool> server_stalls();
  bool is_sending() const noexcept override {
    return sending_ != nullptr && sending_->cancel != nullptr;
  }
  Task<Result<>> read_head_beside(Scope& scope, ClientRequest& request, std::string_view head);
  Task<Result<>> read_head_while_sending();
  Task<> send_beside();
  void stop_sending() noexcept;
  void end_sending(const Result<>& sent) noexcept;
  Task<Result<>> read_head(Duration timeout);
  /// Reads more bytes into the buffer. It fails with `timed_out` after the timeout.
  Reading receive(Duration timeout, ClientError timed_out);
  void keep_head();
  void finish() noexcept;
  void release_connection() noexcept;

  ClientPool::Lease lease_;
  Loop& loop_;
  const ClientLimits* limits_;
  Instant deadline_;
  ResponseParser parser_;
  Buffer buffer_;           ///< the bytes that arrived last
  std::string head_text_;   ///< bytes of the head, unless one buffer has the whole response
  std::string_view input_;  ///< the bytes in either that the parser has not consumed
  std::uint64_t sent_ = 0;  ///< bytes of the request that the kernel took
  std::unique_ptr<EarlyBody> early_;
  bool writing_ = false;  ///< true while a write waits
  bool has_head_ = false;
  bool received_ = false;       ///< true if a byte of a response has come
  bool lost_ = false;           ///< true if a write has failed
  bool stream_called_ = false;  ///< true if the body's function was called
  bool request_complete_ = false;
  bool ended_ = false;
  bool abandoned_ = false;
  weir::detail::TurnUses reads_;
  std::unique_ptr<Sending> sending_;
  std::error_code error_;  ///< that of the body, for later reads
};

}  // namespace weir::http
