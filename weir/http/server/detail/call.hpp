// One request in progress, from its head to its response.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/server/detail/request_trace.hpp"
#include "weir/http/server/detail/response_slot.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ResponseSink;

/// One request in progress: its head, its route, its handler and its response, with its timeout,
/// its cancellation and its trace.  A Call is used for one
/// request after another.
/// Threads: its loop's.
/// Lifetime: the server and the body outlive it. No task runs under it when it is destroyed.
class Call : Continuation {
 public:
  /// The progress of the present request.
  enum class Stage : std::uint8_t {
    routing,   ///< its route waits for a handler on this core; see wait_for_core_handler()
    routed,    ///< it has a route or an answer of the router; the handler was not called
    running,   ///< the task of its handler, or the task that streams its response, runs
    returned,  ///< the task has finished; its result was not taken
    answered,  ///< it has a response
    rejected,  ///< it has a response that replaces that of its handler
  };
  /// The first reason for which the present request was cancelled. The departure of the peer
  /// replaces any other reason.
  enum class CancelReason : std::uint8_t {
    none,
    timeout,    ///< the timeout of its route
    removal,    ///< the removal of its route, which no longer waits for the request
    peer_gone,  ///< no peer is left that could receive the response
  };

  /// `context` is the context of the task that carries the call.
  Call(ServerState& server, BodySource& body, const Context& context,
       detail::RequestOwner& owner) noexcept;
  ~Call();

  /// Returns the head of the present request. The carrier fills it before begin().
  RequestHead& head() noexcept { return head_; }
  const RequestHead& head() const noexcept { return head_; }
  Stage stage() const noexcept { return stage_; }
  /// Returns the time of the turn in which the present request began, whose handler has not
  /// answered; nullopt if it has, or if the server has no observer, for which the time is kept.
  std::optional<Instant> unanswered_since() const noexcept {
    const bool answered = stage_ == Stage::running && !handler_;
    if (answered || server_.recorder() == nullptr) return std::nullopt;
    return end_record_.begin;
  }
  CancelReason cancel_reason() const noexcept { return cancel_reason_; }
  bool peer_gone() const noexcept { return cancel_reason_ == CancelReason::peer_gone; }
  bool rejected() const noexcept { return stage_ == Stage::rejected; }

  /// Begins the request of a complete head: counts it and finds its route. The stage is then
  /// `routed` or `routing`.
  void begin();
  /// Begins a request whose head is rejected, so it has no route. reject() follows.
  void begin_rejected() noexcept {
    match_.clear();
    has_path_ = false;
    begin_record();
  }
  /// Waits for a handler on this core, for at most the wait timeout of the route. The stage is then
  /// `routed`; the route itself answers if there is no handler.
  /// Cancel: ends the wait.
  Task<> wait_for_core_handler();

  /// Returns false if no route matched, so that the router itself answers.
  bool has_route() const noexcept { return match_.found(); }
  /// Returns the options of the route, or the defaults if there is none.
  const RouteOptions& options() const noexcept { return match_.options(); }
  /// Returns the route; nullptr if the router itself answers.
  const Route* route() const noexcept { return match_.route(); }
  /// Returns what becomes of the connection if the response accepts a WebSocket, else nullptr.
  WebSocketUpgrade* upgrade() noexcept {
    return response_.full() ? response_->body().upgrade() : nullptr;
  }
  /// Returns true if the handler is a task; see start(). Any other handler does not wait.
  bool is_async() const noexcept { return match_.is_async(); }
  /// Returns true if the handler waits only for the body; see respond_with().
  bool needs_only_body() const noexcept { return match_.needs_only_body(); }

  /// Calls a handler that does not wait, or makes the router's own response.
  void respond();
  /// Calls a handler that needs only the body.
  void respond_with(std::string_view body);
  /// Starts the task of the handler.
  /// Returns: true if there is a response; false if the task runs, so that the carrier has to wait
  /// for its end and call take_response().
  bool start();
  /// Takes the response of a task that has returned.
  void take_response();
  /// Answers a request without its handler.
  void reject(Status status);

  /// Returns the present response.
  Response& response() noexcept { return *response_; }
  const Response& response() const noexcept { return *response_; }
  /// Returns the head of the response. A body whose length is unknown is framed as chunks.
  ResponseHead response_head() const;
  /// Returns true if ResponseHeads has the head of the response, for a client of HTTP/1.1 or later.
  bool has_common_head() const noexcept;
  /// Replaces a response that cannot be sent by a 500. Describes the error of a response without a
  /// body, and logs the error of the handler that it reports to the client.
  void check_response();
  /// Replaces the response, for an error that was found after the handler returned it.
  void replace_response(Status status);
  /// Destroys the response, whose content may be the handler's, after its head was written.
  void drop_response() noexcept {
    note_response();
    response_.clear();
  }
  /// Returns true if the response to this request has a head only.
  bool head_only() const noexcept;

  /// Makes the task that streams the body of the response to `sink`; see run().
  /// Errors: throws what the function of the response throws.
  /// Cancel: passed on to that function.
  Task<Result<>> stream_to(BodySink& sink);
  /// Starts a task of this call under its cancellation. Returns true if it has finished.
  template <class T>
  bool run(Task<T>& task);
  /// What the client of a streamed response has when the task that streams it ends.
  enum class StreamClient : std::uint8_t {
    waits,           ///< nothing of the response, so that another one can still be sent
    has_head,        ///< the head and perhaps a part of the body
    gone,            ///< nothing: it has left, or nothing can be sent to it
    gone_with_head,  ///< the same after the head
  };
  /// Ends the task that streamed the response to `sink`, with the result of its function or with
  /// the exception `thrown`. A body that has failed, or differs from its length, is replaced by the
  /// response to its error. The failure is counted, and logged, unless the client sees the error in
  /// that response or has caused it.
  /// Returns: true if the whole body was written.
  bool end_stream(const ResponseSink& sink, const Result<>& written,
                  const std::exception_ptr& thrown, StreamClient client);
  /// Makes 500 the response, and logs the exception of a handler.
  void fail_with(const std::exception_ptr& exception);
  /// Counts and logs a failure of the handler.
  void report_failure(std::string_view what);

  /// Returns true while a task of this call runs or a cancellation is queued.
  bool busy() const noexcept { return stage_ == Stage::running || deferred_cancel_.queued; }
  /// Waits until the call is not busy: `co_await call.not_busy()`. It allocates nothing.
  /// Cancel: not affected.
  class NotBusyAwaiter {
   public:
    explicit NotBusyAwaiter(Call& call) noexcept : call_(call) {}
    bool await_ready() const noexcept { return !call_.busy(); }
    void await_suspend(std::coroutine_handle<> handle) noexcept { call_.waiter_ = handle; }
    void await_resume() const noexcept {}

   private:
    Call& call_;
  };
  NotBusyAwaiter not_busy() noexcept { return NotBusyAwaiter(*this); }

  /// Cancels the running task.
  void cancel() noexcept { cancel_->cancel(); }
  /// Cancels the running task from the ready queue of the loop, because its peer has gone.
  void cancel_without_peer() noexcept;
  /// Cancels what still runs after the exception `why` has interrupted the carrier. It allocates
  /// nothing, because the exception may mean that there is no memory.
  void abandon(std::exception_ptr why) noexcept;
  /// Throws the exception of abandon(), if there is one.
  void throw_if_abandoned();
  /// Returns the trace of the present request.
  const TraceContext& trace() const noexcept { return trace_; }

  /// Keeps the head and the route while a part of the request waits. The carrier may then reuse the
  /// memory of the head.
  void hold();
  /// Copies the head into memory of the call, because the carrier will reuse its own memory.
  void keep_head();
  /// Counts a response that was handed over for sending, and calls the functions of
  /// Request::on_end(), if there are any. The route is still in use.
  void report_sent() noexcept {
    server_.counters().responses.add();
    if (!request_.end_observers_.empty()) run_end_observers(true, 0);
  }
  /// Calls these functions for a response that was not sent whole. `unsent` is the number of bytes
  /// at the end of a text that were not sent; a streamed body knows what was.
  void report_cut(std::uint64_t unsent = nothing_sent) noexcept {
    if (!request_.end_observers_.empty()) run_end_observers(false, unsent);
  }
  static constexpr std::uint64_t nothing_sent = static_cast<std::uint64_t>(-1);
  /// Ends a request, whose end was reported.
  void end() noexcept;
  /// Ends hold() and the wait for a handler on this core.
  void release() noexcept {
    in_flight_.reset();
    found_route_.reset();
  }
  /// Ends hold() long before the end of the request. The route is not used any more.
  void leave_route() noexcept {
    release();
    match_.clear();
  }

 private:
  /// Keeps the route, and with it the handler, while a part of the request waits.
  struct InFlight : InFlightRequest {
    explicit InFlight(Call& call);
    ~InFlight() { call_.drop_response(); }  // its stream may be the handler's
    static void stop(InFlightRequest& self, StopReason reason);
    Call& call_;
  };
  /// Passes the end of the request to the observer of the server.
  struct EndRecord : detail::EndObservers::Link {
    explicit EndRecord(Call& of) noexcept;
    Call& call;
    Instant begin{};
    Version version = Version::http_1_1;
  };
  /// Cancels the running task from the loop's ready queue.
  struct DeferredCancel : loop::Runnable {
    explicit DeferredCancel(Call& call) noexcept : loop::Runnable(&run), call_(call) {}
    static void run(loop::Runnable& self);
    Call& call_;
    bool queued = false;
  };
  /// Cancels a handler after the timeout of its route.
  struct HandlerTimeout : loop::Timer {
    explicit HandlerTimeout(Call& call) noexcept : loop::Timer(&expire), call_(call) {}
    static void expire(loop::Timer& self);
    Call& call_;
  };

  static std::coroutine_handle<> on_finished(Continuation& self, std::coroutine_handle<>);
  static std::coroutine_handle<> carrier_of(const Continuation& self) noexcept {
    return static_cast<const Call&>(self).waiter_;
  }
  static constexpr Kind call_kind{&on_finished, &carrier_of, "request"};
  bool find_core_handler();
  template <class Make>
  void fill_response(const Make& make);
  void reserve_for_wait();
  void begin_cancel() noexcept;
  void cancel_for(CancelReason reason) noexcept;
  void begin_record() noexcept {
    if (server_.recorder() != nullptr) start_record();
  }
  void start_record() noexcept;
  void record_end(const SentResponse& sent) noexcept;
  void note_response() noexcept {
    if (!request_.end_observers_.empty()) note_sent_response();
  }
  void note_sent_response() noexcept;
  bool lacks_length() const noexcept;
  void run_end_observers(bool whole, std::uint64_t unsent) noexcept;
  void apply_filters();
  void report_handler_error();
  void render_error();
  void log(std::string_view what);
  void check_stall() noexcept;
  void report_stall() noexcept;

  ServerState& server_;
  Context context_;
  ResponseSlot response_;
  std::optional<Task<Response>> handler_;
  std::optional<CancelSource> cancel_;
  DeferredCancel deferred_cancel_{*this};
  HandlerTimeout handler_timeout_{*this};
  std::coroutine_handle<> waiter_;
  BlockPtr<char> head_copy_;
  Stage stage_ = Stage::answered;
  CancelReason cancel_reason_ = CancelReason::none;
  bool has_path_ = false;  // false for a rejected head, which may be incomplete
  RouteMatch match_;
  RequestHead head_;
  RequestTrace trace_{server_, head_};
  Request request_;
  SentResponse sent_;  // for on_end() of the request
  EndRecord end_record_{*this};
  bool head_streamed_ = false;    // sent_ has the facts of a streamed response, whose head was sent
  std::exception_ptr abandoned_;  // the exception of abandon()
  std::optional<InFlight> in_flight_;  // of the waiting request, until its end
  // Keeps the route that was found, and with it the core handlers, until the answering route is in
  // use (it may be the same route). A removal of the found route waits only for this.
  std::optional<InFlightRequest> found_route_;
};

}  // namespace weir::http
