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
#include "weir/http/client/detail/client_exchange.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/task/detail/turn_uses.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// An H1ClientExchange frames a request and its response in HTTP/1.1. It has the lease of the
/// connection. It gives the connection back when the response has ended, and closes it otherwise.
/// Threads: one core's.
/// Lifetime: no operation is pending when it is destroyed (asserted).
class H1ClientExchange final : public ClientExchange {
 public:
  /// `deadline` is the end of ClientLimits::total_timeout. `lease` has a connection. `limits`
  /// outlive the object.
  H1ClientExchange(ClientPool::Lease lease, const ClientLimits& limits, Instant deadline) noexcept;

  /// Sends the request, then waits for the head of the final response. With a scope, a task of that
  /// scope sends a long or streamed body, also after the return.
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

 private:
  class Reading;
  class Writing;
  /// The body of a response that has arrived while the request was being sent.
  struct EarlyBody {
    Buffer bytes;  ///< what no read has returned yet
    Buffer lent;   ///< what the last read has returned
  };
  /// The direction to the server.
  enum class Written : std::uint8_t {
    ready,    ///< no write is in progress
    writing,  ///< a write waits for the server
    failed,   ///< a write has failed; an answer may still have arrived
  };
  /// The body of the response, as far as it was parsed.
  enum class Parsed : std::uint8_t {
    part,    ///< more may follow
    whole,   ///< the end
    broken,  ///< response_error() says why the rest cannot be read
  };

  /// Gives the connection back if the rest of the response has arrived already.
  ~H1ClientExchange() override;

  Task<Result<>> send_piece(Bytes piece, bool last) override;
  Task<Result<>> end_body(std::string_view trailers) override;
  bool output_closed() const noexcept override { return written_ == Written::failed; }
  Output output() const noexcept override;
  Task<Result<>> read_head(Duration timeout) override;
  void interrupt_reader() noexcept override { lease_.stream().cancel_read(); }
  Task<Early> receive_early() override;
  Taken take(Bytes& piece) override;
  std::error_code response_error() const noexcept override { return response_error_; }
  bool needs_more() const noexcept override {
    return input_.empty() && early_ == nullptr && parsed_ == Parsed::part;
  }
  Task<Result<>> wait_for_body() override;
  void drop_input() noexcept override {}
  void release_connection() noexcept override;

  /// Writes pieces like Stream::write(), and counts the bytes that the kernel took, also if it
  /// fails. An error is that of a ClientResponse.
  Writing write(std::span<const Bytes> pieces);
  /// Reads more bytes into the buffer. It fails with `timed_out` after the timeout.
  Reading receive(Duration timeout, ClientError timed_out);
  Taken parse(Bytes& piece);
  Taken break_off(std::error_code error) noexcept;
  bool keep_early();
  void keep_head();

  ClientPool::Lease lease_;
  ResponseParser parser_;
  Buffer buffer_;             ///< the bytes that arrived last
  std::string request_head_;  ///< that of a long body, until the first write
  std::string head_text_;     ///< bytes of the head, unless one buffer has the whole response
  std::string_view input_;    ///< the bytes in either that the parser has not consumed
  std::uint64_t sent_ = 0;    ///< bytes of the request that the kernel took
  std::error_code closed_;    ///< why nothing more arrives
  std::error_code response_error_;
  std::unique_ptr<EarlyBody> early_;
  weir::detail::TurnUses reads_;
  Written written_ = Written::ready;
  Parsed parsed_ = Parsed::part;
  bool chunked_ = false;   ///< the body of the request is sent in chunks
  bool received_ = false;  ///< a byte of a response has come
};

}  // namespace weir::http
