// One request and its response, or one WebSocket, on one stream of HTTP/2 of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/detail/client_exchange.hpp"
#include "weir/http/client/detail/h2/h2_client_connection.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/ws/detail/h2_tunnel.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// An H2ClientExchange frames a request and its response on a stream of HTTP/2. The stream of an
/// extended CONNECT carries a WebSocket afterwards.
/// Threads: one core's.
/// Lifetime: its connection tells it when it ends. The connection is not used after that.
class H2ClientExchange final : public ClientExchange,
                               public H2Stream,
                               public H2ClientExchangeNode,
                               public H2TunnelCarrier {
 public:
  /// `connection` can carry another request (asserted by run()). `deadline` is the end of
  /// ClientLimits::total_timeout. `limits` outlive the object.
  H2ClientExchange(H2ClientConnection& connection, const ClientLimits& limits, Instant deadline);

  /// Bytes that interim responses may need while they wait for the function of their request.
  static std::uint64_t interim_bytes_max(const ClientLimits& limits) noexcept;

  /// Sends the request, then waits for the head of the final response; see H1ClientExchange::run().
  /// Errors: those of Client::send() that concern one connection.
  /// Cancel: resets the stream.
  /// Lifetime: `head`, the result of request_head(), lives until the return.
  Task<Result<>> run(ClientRequest& request, std::string_view head, Scope* scope);
  /// Waits for the settings of the server, asks for a WebSocket by an extended CONNECT (RFC 8441),
  /// and waits for the head of the final response. `until` is the end of both waits.
  /// Errors: those of run(); Errc::unsupported if the server does not offer WebSockets. Nothing was
  /// sent then.
  /// Cancel: resets the stream.
  /// Lifetime: `head` lives until the return.
  Task<Result<>> connect(std::string_view scheme, std::string_view head, Instant until);
  /// Makes the stream of an exchange after connect() the stream of a WebSocket, which owns it. The
  /// status of the response is below 300.
  static AnyStream tunnel(detail::ExchangePtr exchange);
  /// Returns true if the request may be sent again after run() or connect() has failed. Its body
  /// can be sent again, and the server has provably not processed it: it said so by REFUSED_STREAM
  /// or GOAWAY, or the kernel took none of its bytes. Or the connection was used before, it was
  /// lost before anything of the response came, and a repetition has no other effect
  /// (`repeatable`).
  bool may_repeat(bool repeatable) const noexcept;
  /// Returns true if the connection was lost.
  bool lost() const noexcept { return lost_; }

  const ReceivedResponseHead& head() const noexcept override { return head_; }
  BodyLength length() const noexcept override { return length_; }
  const Headers& trailers() const noexcept override { return trailers_; }
  bool is_http2() const noexcept override { return true; }

  // The tunnel of a WebSocket.

  Result<> finish_writing() override;
  void close_tunnel() noexcept override { release(); }
  Loop& loop() const noexcept override { return ClientExchange::loop(); }
  os::Address peer_address() const override;
  const TlsInfo* tls() const noexcept override;

  // Events of the stream, from the connection.

  /// The settings of the server have arrived.
  void on_settings() {
    if (id() == 0) input_.set();  // connect() waits for them
  }

  /// The place where the connection writes the head of on_head().
  ReceivedResponseHead& received_head() noexcept { return head_; }
  Headers& received_trailers() noexcept { return trailers_; }
  /// A head has arrived. Its texts are valid until the return.
  /// Returns: false if the response is malformed.
  bool on_head(bool end_stream);
  /// Bytes of the body have arrived.
  /// Returns: false if the response is malformed.
  bool on_data(Bytes bytes, bool end_stream);
  /// The response is complete.
  void on_end();
  /// The stream has ended early. If `refused`, the server says that it has not processed the
  /// request: the error is then not_processed instead of `error`.
  void on_reset(std::error_code error, bool refused) noexcept;
  /// The connection has ended, and has released the stream. The kernel has taken at most
  /// `bytes_sent` bytes of the connection.
  void on_detached(std::error_code error, std::uint64_t bytes_sent) noexcept;
  /// Sends a part of what waits; the stream is the next sender.
  void send_part();

 private:
  /// What has arrived of the response.
  ///
  /// ```text
  ///   nothing --> interim --> head --> complete
  ///      |           |         |
  ///      +-----------+         +----> cut
  ///                  +--> failed
  /// ```
  enum class Arrived : std::uint8_t {
    nothing,
    interim,   ///< only 1xx responses
    head,      ///< the final head, and perhaps a part of the body
    complete,  ///< all
    failed,    ///< the stream was reset, or the connection was lost, before the final head
    cut,       ///< the same behind the final head
  };
  /// What the client knows about a request whose stream has failed (RFC 9113 §8.7).
  enum class Fate : std::uint8_t {
    unknown,        ///< the server may have processed it
    not_processed,  ///< the server has not processed it
    unanswered,     ///< the connection was lost before anything of the response came
  };
  /// An interim response that waits for the task that reads the head.
  struct Interim {
    ReceivedResponseHead head;
    std::string bytes;  ///< of the head
  };
  /// Sets an event if nothing else has set it in time.
  struct Alarm : loop::Timer {
    explicit Alarm(ManualResetEvent& waited) noexcept;
    ManualResetEvent& event;
    bool expired = false;
  };

  ~H2ClientExchange() override;

  // What ClientExchange asks for.

  Task<Result<>> send_piece(Bytes piece, bool last) override;
  Task<Result<>> end_body(std::string_view trailers) override;
  void on_body_cut() noexcept override;
  bool output_closed() const noexcept override { return !may_send(); }
  Output output() const noexcept override { return {!pending_.empty(), sent_}; }
  Task<Result<>> read_head(Duration timeout) override;
  void interrupt_reader() noexcept override { input_.set(); }
  Task<Early> receive_early() override;
  Taken take(Bytes& piece) override;
  void release_piece() noexcept override;
  std::error_code response_error() const noexcept override { return error_; }
  bool needs_more() const noexcept override { return arrived_ < Arrived::complete; }
  Task<Result<>> wait_for_body() override;
  void drop_input() noexcept override;
  void release_connection() noexcept override;

  void change(Arrived next) noexcept;
  bool has_head() const noexcept {
    return arrived_ >= Arrived::head && arrived_ != Arrived::failed;
  }
  void keep_interim();
  void send_head(std::string_view scheme, std::string_view head, bool ends);
  bool send_now(bool ends);
  std::error_code output_error() const noexcept;
  /// Waits for an event. It fails with `timed_out` after the timeout.
  Task<Result<>> wait(ManualResetEvent& event, Alarm& alarm, Duration timeout,
                      ClientError timed_out);
  Task<Result<>> wait_for_input(Duration timeout, ClientError timed_out);

  // What H2TunnelCarrier asks for.

  bool has_input() const noexcept override { return !body_.empty(); }
  Buffer take_input() override;
  std::error_code input_error() const noexcept override;
  /// Input that has arrived is read first, and so is the end of the stream.
  bool is_gone() const noexcept override { return error_ && body_.empty(); }
  bool may_send() const noexcept override { return connection_ != nullptr && !local_ended(); }
  bool send_piece_now(Bytes piece) override;
  void drop_piece() noexcept override;
  void tell_tunnel() noexcept;

  H2ClientConnection* connection_;  // nullptr when the stream is released
  // The request.
  Bytes pending_;            // bytes that wait to be sent
  ManualResetEvent output_;  // the pending bytes have been sent
  Alarm output_alarm_{output_};
  std::uint64_t begins_at_ = 0;  // bytes of the connection before the request
  std::uint64_t sent_ = 0;       // bytes of the body
  Method method_ = Method::get;
  bool is_tunnel_ = false;  // the stream carries a WebSocket
  bool pending_ends_ = false;
  bool reused_;
  bool lost_ = false;
  // The response.
  Arrived arrived_ = Arrived::nothing;
  Fate fate_ = Fate::unknown;
  std::uint32_t interim_count_ = 0;
  std::vector<std::unique_ptr<Interim>> interims_;
  ReceivedResponseHead head_;
  BodyLength length_;
  Buffer head_bytes_;
  Buffer lent_;  // the last piece of read()
  Buffer body_;  // the bytes behind it
  Headers trailers_;
  ManualResetEvent input_;  // something has arrived
  Alarm input_alarm_{input_};
  std::error_code error_;  // of a stream that has failed
};

}  // namespace weir::http
