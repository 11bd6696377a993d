// The request loop of a connection: reads a request, calls its handler, writes the response.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/server/detail/body_reader.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/request_trace.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

// The memory of a connection's present response.

/// Holds the response to one request after another. A handler constructs its response in place,
/// because moving one costs more than most handlers do.
/// Threads: one at a time.
class ResponseSlot {
 public:
  ResponseSlot() noexcept {}
  ResponseSlot(const ResponseSlot&) = delete;
  ResponseSlot& operator=(const ResponseSlot&) = delete;
  ~ResponseSlot() { clear(); }

  /// Replaces the response by the result of `make()`. The slot is empty if `make()` throws.
  template <class Make>
  void fill(const Make& make) {
    clear();
    ::new (static_cast<void*>(&response_)) Response(make());
    full_ = true;
  }
  void clear() noexcept {
    if (std::exchange(full_, false)) std::destroy_at(&response_);
  }

  Response* operator->() noexcept { return &value(); }
  const Response* operator->() const noexcept { return &value(); }

 private:
  Response& value() noexcept {
    assert(full_);
    return response_;
  }
  const Response& value() const noexcept {
    assert(full_);
    return response_;
  }

  union {
    Response response_;
  };
  bool full_ = false;
};

/// Handles the requests of a connection, one after another, in order. A connection creates it
/// when bytes arrive and destroys it when all are answered. Responses are collected in the output
/// of the ConnectionIo, so that a batch of pipelined requests costs one send.
/// Threads: its loop's.
class RequestLoop : Continuation, HangupObserver {
 public:
  /// The next action of the connection.
  enum class Action : std::uint8_t {
    idle,       ///< no input left; send the output and wait for the next request
    read_more,  ///< incomplete head; send the output and read on
    finish,     ///< a request that has to wait; co_await finish()
    close,      ///< end; send the output, then close once the peer has had a moment to read it
    close_now,  ///< end; send the output and stop reading, because the peer sends no more
    abort,      ///< broken connection; close it
  };

  RequestLoop(ServerState& server, ConnectionIo& io, const Context& context) noexcept;
  ~RequestLoop();

  /// Answers requests until one of them has to wait.
  /// Returns: the next action.
  Action advance();
  /// Finishes the request that advance() stopped at, which has to wait.
  /// Returns: the next action; the caller calls advance() again after Action::idle.
  /// Cancel: passed on to the handler; the connection closes.
  Task<Action> finish();

  /// Waits until the handler, or the function that streams the body, has finished and no deferred
  /// cancellation is queued.
  /// Cancel: not affected.
  class RunningEndAwaiter {
   public:
    explicit RunningEndAwaiter(RequestLoop& request_loop) noexcept : request_loop_(request_loop) {}
    bool await_ready() const noexcept { return !request_loop_.busy(); }
    void await_suspend(std::coroutine_handle<> handle) noexcept { request_loop_.waiter_ = handle; }
    void await_resume() const { request_loop_.stop_watching(); }

   private:
    RequestLoop& request_loop_;
  };
  /// Cancels what still runs after the exception `why` has interrupted a request. It allocates
  /// nothing, because the exception may mean that there is no memory.
  void abandon(std::exception_ptr why) noexcept;
  /// Waits until nothing runs, then throws the exception of abandon(): `co_await abandoned()`. It
  /// allocates nothing.
  /// Cancel: not affected.
  RunningEndAwaiter abandoned() noexcept { return RunningEndAwaiter(*this); }

  /// Counts `error` and answers the request with its status; the connection closes.
  /// Returns: the next action.
  Action reject(ParseError error);
  /// Returns true if a part of a request's head has been read.
  bool has_partial_head() const noexcept { return parser_.started(); }
  /// Returns the number of complete heads so far.
  std::uint64_t heads() const noexcept { return heads_; }

 private:
  enum class Stage : std::uint8_t { core_handler, read_body, run_handler, send_response };

  Action start_request();
  bool find_core_handler();
  Action dispatch_request();
  Action start_handler();
  void reserve_for_wait();
  void begin_cancel() noexcept;
  template <class Make>
  void respond(const Make& make);
  void call_handler();
  void copy_head();
  template <class T>
  bool run(Task<T>& task);
  void take_response();
  void handle_exception(const std::exception_ptr& exception);
  void handle_stream_error(std::error_code error, bool cut);
  void report_handler_error();
  void log(std::string_view what);
  void respond_with_status(Status status);
  void check_response();
  void check_stall() noexcept;
  void report_stall() noexcept;
  bool head_only() const noexcept;
  void decide_keep_alive();
  ResponseHead make_response_head() const;
  bool is_common() const noexcept;
  bool write_common();
  bool try_write_to_output();
  Action finish_now();
  bool peer_sends_no_more() const noexcept;
  Action finish_request() noexcept;

  Task<> wait_for_core_handler();
  Task<> wait_for_running();
  Task<Result<>> finish_body();
  Task<Action> send_response();
  Task<Action> send_stream(std::size_t output_before);
  bool can_discard_body() const noexcept;
  static std::coroutine_handle<> on_finished(Continuation& self, std::coroutine_handle<>);
  static void on_hangup(HangupObserver& self);

  /// Keeps the route, and with it the handler, while a part of the request waits.
  struct InFlight : InFlightRequest {
    explicit InFlight(RequestLoop& request_loop);
    ~InFlight() { request_loop_.response_.clear(); }  // its stream may be the handler's
    static void stop(InFlightRequest& self);
    RequestLoop& request_loop_;
  };
  /// Cancels the running task from the loop's ready queue.
  struct DeferredCancel : Runnable {
    explicit DeferredCancel(RequestLoop& request_loop) noexcept
        : Runnable(&run), request_loop_(request_loop) {}
    static void run(Runnable& self);
    RequestLoop& request_loop_;
    bool queued = false;
  };
  /// Cancels a handler after the timeout of its route.
  struct HandlerTimeout : Timer {
    explicit HandlerTimeout(RequestLoop& request_loop) noexcept
        : Timer(&expire), request_loop_(request_loop) {}
    static void expire(Timer& self);
    RequestLoop& request_loop_;
    bool expired = false;
  };
  bool busy() const noexcept { return running_ || deferred_cancel_.queued; }
  void stop_watching();

  ServerState& server_;
  ConnectionIo& io_;
  Context context_;
  HeadParser parser_;
  BodyReader body_;
  ResponseSlot response_;
  std::optional<Task<Response>> handler_;
  std::optional<CancelSource> cancel_;
  DeferredCancel deferred_cancel_{*this};
  HandlerTimeout handler_timeout_{*this};
  std::coroutine_handle<> waiter_;
  BlockPtr<char> head_copy_;
  std::uint64_t heads_ = 0;
  Stage stage_ = Stage::send_response;
  bool running_ = false;
  bool peer_gone_ = false;  // true if the peer left while something ran
  bool keep_alive_ = true;
  bool rejected_ = false;  // true if the response is an error without the handler
  bool stopped_ = false;   // true if the request in flight is to end soon
  RouteMatch match_;
  RequestHead head_;
  RequestTrace trace_{server_, head_};
  Request request_{head_, body_, &trace_};
  std::exception_ptr abandoned_;       // the exception of abandon()
  std::optional<InFlight> in_flight_;  // of the waiting request, until its end
};

}  // namespace weir::http
