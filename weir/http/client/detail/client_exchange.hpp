// The rules of one request of a client and its response, on every protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/detail/response_source.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// A ClientExchange sends one request and reads its response. It has the rules of both directions:
/// when the body of the request ends early, what a slow or silent server means, and what a reader
/// of the response gets. A class of each protocol frames the bytes; see "What a protocol offers"
/// here.
///
/// The end of one direction is an event for the other. A server may answer before it has read the
/// whole body, so a write of the body that has failed is no error if a head arrives. If a task of a
/// scope sends the body, only an error or a redirect ends it early; the request goes on as long as
/// the response exists. Otherwise a whole response ends it too (RFC 9113 §8.1).
/// Threads: one core's.
/// Lifetime: no operation is pending when it is destroyed (asserted). `limits` outlive it.
class ClientExchange : public ResponseSource {
 public:
  void release() noexcept final;
  /// Cancel: no data is lost; see ResponseSource::read().
  Task<Result<Bytes>> read() final;
  void abandon(std::error_code error) noexcept final;
  bool late() const final;

 protected:
  /// The state of the response.
  ///
  /// ```text
  ///   awaited ----> head ----> ended
  ///      |           |           |    (a task still sends the request)
  ///      +-----------+-----------+----> abandoned
  /// ```
  enum class State : std::uint8_t {
    awaited,    ///< no final head was accepted
    head,       ///< a final head was accepted, and the body is read
    ended,      ///< the whole body was read
    abandoned,  ///< nobody reads the rest
  };
  /// `deadline` is the end of ClientLimits::total_timeout.
  ClientExchange(const ClientLimits& limits, Loop& loop, Instant deadline) noexcept;
  ~ClientExchange() override;

  State state() const noexcept { return state_; }
  Loop& loop() const noexcept { return loop_; }
  const ClientLimits& limits() const noexcept { return *limits_; }
  Duration limited(Duration timeout) const;
  /// Sets the function of the request for interim responses, or nullptr, and the context of the
  /// caller, in which it runs.
  /// Lifetime: both live until the head of the final response was read.
  void set_interim_function(InterimFunction* function, const Context& caller) noexcept {
    interim_ = function;
    caller_ = caller.cancel;
  }
  bool wants_interim() const noexcept { return interim_ != nullptr; }
  /// Calls that function, and adds the time that it took to `until`, the end of a wait for a head.
  /// Errors: ClientError::timed_out at the deadline.
  /// Cancel: that of the caller is passed on to the function.
  Task<Result<>> report_interim(const ReceivedResponseHead& head, Instant& until) const;
  /// Returns true after wake_reader(), once. A reader asks before each wait.
  bool take_wake() noexcept { return std::exchange(woken_, false); }
  /// Returns `error`, or ClientError::timed_out after the deadline.
  std::error_code timeout_error(ClientError error) const;
  /// Returns true if all of the request was sent.
  bool request_complete() const noexcept { return progress_ >= Progress::complete; }
  /// Says that the protocol has sent a request without a streamed body.
  void set_request_complete() noexcept { change(Progress::complete); }
  /// Says that the protocol has sent the first bytes of a text.
  void set_text_sent(std::size_t bytes) noexcept { text_sent_ = bytes; }
  /// Returns true if the body can be sent again on another connection.
  bool body_repeats() const noexcept {
    return progress_ == Progress::begun || progress_ == Progress::complete;
  }

  /// Takes the result of read_head(), which ends the wait for the head.
  Result<> accept(Result<> received) noexcept;
  /// Sends the body of a request, and waits for the head of its response. With a scope, a task of
  /// that scope sends the body, also after the return.
  /// Errors: those of Client::send() that concern one connection.
  /// Cancel: the exchange can only be destroyed.
  Task<Result<>> send_body_and_read_head(ClientRequest& request, Scope* scope);
  /// Ends a response that was received completely.
  void finish() noexcept;
  /// Returns true if a task of a scope sends the body.
  bool is_sending() const noexcept { return sending_ != nullptr && sending_->cancel != nullptr; }
  void stop_sending() noexcept;

  // What a protocol offers. Errors of all members are those of a ClientResponse.

  /// Sends a piece of the body behind the head, which waits for the first piece if it was not sent
  /// before. An empty piece sends the head only. `last`: the end of a text follows the piece.
  /// Errors: Errc::cancelled; ClientError (body_timed_out, timed_out, connection_lost).
  /// Cancel: the request is cut off.
  virtual Task<Result<>> send_piece(Bytes piece, bool last) = 0;
  /// Ends a streamed body. `trailers` are header lines.
  /// Errors, Cancel: those of send_piece().
  virtual Task<Result<>> end_body(std::string_view trailers) = 0;
  /// The body has ended early, and the response was accepted.
  virtual void on_body_cut() noexcept {}
  /// Returns true if nothing more of the request can be sent.
  virtual bool output_closed() const noexcept = 0;
  /// What send_piece() does now.
  struct Output {
    bool waits;           ///< a piece waits for the server
    std::uint64_t bytes;  ///< those that were sent; only differences are used
  };
  virtual Output output() const noexcept = 0;

  /// Waits for the head of the final response, for at most `timeout` without the time of the
  /// function for interim responses. Errors: ClientError (head_timed_out, timed_out, bad_response,
  /// connection_lost, not_processed); Errc::cancelled, also after take_wake(). Cancel: no data is
  /// lost.
  virtual Task<Result<>> read_head(Duration timeout) = 0;
  /// Ends the wait of a read_head() or wait_for_body(), which returns Errc::cancelled. Before such
  /// a wait, it returns that if take_wake() says so.
  virtual void interrupt_reader() noexcept = 0;
  /// What receive_early() has found.
  enum class Early : std::uint8_t {
    some,      ///< bytes, and more may follow
    complete,  ///< the end, or an error behind which nothing follows
    full,      ///< nothing more comes unless the response is read
    stopped,   ///< the wait was cancelled, or the time of the whole request has passed
  };
  /// Waits for a part of the body while the request is being sent, and keeps it for take().
  /// Cancel: no data is lost.
  virtual Task<Early> receive_early() = 0;
  /// What take() has found.
  enum class Taken : std::uint8_t { nothing, piece, end, error };
  /// Takes bytes of the body that have arrived.
  /// Lifetime: the piece is valid until release_piece().
  virtual Taken take(Bytes& piece) = 0;
  virtual void release_piece() noexcept {}
  /// Returns the error of take().
  virtual std::error_code response_error() const noexcept = 0;
  /// Returns true if a part of the response has not arrived.
  virtual bool needs_more() const noexcept = 0;
  /// Waits until more of the body, its end or an error has arrived.
  /// Errors: Errc::cancelled; ClientError (body_timed_out, timed_out).
  /// Cancel: no data is lost.
  virtual Task<Result<>> wait_for_body() = 0;
  /// Nobody reads the rest of the response.
  virtual void drop_input() noexcept = 0;
  /// Gives up the connection. Nothing is sent or read any more.
  virtual void release_connection() noexcept = 0;

 private:
  class Sink;
  /// How much of the request was given to the protocol.
  ///
  /// ```text
  ///   begun --+--> complete
  ///           +--> streaming --> streamed
  /// ```
  enum class Progress : std::uint8_t {
    begun,      ///< perhaps the head, and a part of a text
    streaming,  ///< the function of the body was called
    complete,   ///< the head, and all of a text
    streamed,   ///< all that the function has written, and it may write no more
  };
  /// A request that a task of a scope sends.
  struct Sending {
    Body body;
    CancelSource* cancel = nullptr;  ///< that of the task; nullptr if it does not run
    ManualResetEvent ended;
    bool stopped = false;        ///< true if the exchange itself cancelled the task
    std::error_code error = {};  ///< why the request is incomplete, unless it was stopped
  };

  void change(State next) noexcept;
  void change(Progress next) noexcept;
  Task<Result<>> send_body(Body& body);
  Task<Result<>> send_stream(Body& body);
  Task<Result<>> send_in_time(Body& body);
  Task<Result<>> send_beside_reading(Body& body);
  Task<Result<>> send_then_cancel(Body& body, CancelSource& reading);
  Task<Result<>> read_then_cancel(CancelSource& writing);
  bool ends_request(bool complete) const noexcept;
  Task<bool> receive_all_early();
  Task<bool> server_stalls();
  Task<Result<>> read_head_beside(Scope& scope, ClientRequest& request);
  Task<Result<>> read_head_while_sending();
  Task<> send_in_scope();
  void end_sending(const Result<>& sent) noexcept;
  void wake_reader() noexcept {
    woken_ = true;
    interrupt_reader();
  }
  std::error_code stop_error() const noexcept;

  const ClientLimits* limits_;
  Loop& loop_;
  Instant deadline_;
  InterimFunction* interim_ = nullptr;
  CancelSource* caller_ = nullptr;
  std::unique_ptr<Sending> sending_;
  std::error_code error_;      // for reads after abandon()
  std::size_t text_sent_ = 0;  // bytes of a text that were sent before send_body()
  State state_ = State::awaited;
  Progress progress_ = Progress::begun;
  bool released_ = false;
  bool woken_ = false;  // see take_wake()
};

}  // namespace weir::http
