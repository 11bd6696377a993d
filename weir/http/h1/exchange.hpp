// One exchange of a connection: read a request, let its handler answer, write the answer.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/server/detail/body_reader.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/h1/response_slot.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/h1/writer.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/server/detail/request_trace.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/route_reader.hpp"
#include "weir/http/server_core.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// What a connection needs only while it has bytes to work on; it is made when some arrive and
/// dropped when all are answered. It handles one request after the other, in order. Answers gather
/// in the transport's output, so that a batch of pipelined requests costs one send.
/// Threads: its loop's.
class Exchange : Completion, HangupWatcher {
 public:
  /// What the connection has to do next.
  enum class Next : std::uint8_t {
    idle,       ///< the input is used up: send the output and wait for the next request
    more,       ///< a head is not complete: send the output and read on
    slow,       ///< co_await finish(): something has to wait
    close,      ///< send the output, then close once the peer has had a moment to read it
    close_now,  ///< send the output, then be done: the peer has said that nothing more comes
    abort,      ///< close: the connection is broken
  };

  Exchange(ServerCore& server, Transport& transport, const Context& context) noexcept;
  ~Exchange();

  /// Answers requests as long as nothing has to wait.
  Next advance();
  /// Does what has to wait for the request that advance() stopped at; idle: advance() again.
  /// Cancel: passed on to the handler; the connection closes.
  Task<Next> finish();

  /// Waits until the handler, or the function that streams the body, has finished, and nothing will
  /// cancel it any more. Cancel: not affected.
  class RunningEnd {
   public:
    explicit RunningEnd(Exchange& exchange) noexcept : exchange_(exchange) {}
    bool await_ready() const noexcept { return !exchange_.busy(); }
    void await_suspend(std::coroutine_handle<> handle) noexcept { exchange_.waiting_ = handle; }
    void await_resume() const { exchange_.stop_watching(); }

   private:
    Exchange& exchange_;
  };
  /// An exception has come between a request and its end, `why`: what still runs is cancelled. It
  /// needs no memory, which may be what there is none of.
  void abandon(std::exception_ptr why) noexcept;
  /// `co_await abandoned()`: waits until nothing runs, then throws `why`. It needs no memory.
  RunningEnd abandoned() noexcept { return RunningEnd(*this); }

  /// Answers that the head took too long, and counts it.
  Next refuse(Refusal refusal);
  /// Whether a part of a request's head has been read.
  bool inside_head() const noexcept { return parser_.started(); }
  /// Heads that were complete so far.
  std::uint64_t heads() const noexcept { return heads_; }

 private:
  enum class Stage : std::uint8_t { tenant, body_first, handler, answer };

  Next begin_request();
  bool find_tenant();
  Next take_request();
  Next start_handler();
  void prepare_to_wait();
  void begin_cancel() noexcept;
  template <class Make>
  void answer(const Make& make);
  void call_handler();
  void keep_head();
  template <class T>
  bool run(Task<T>& task);
  void take_response();
  void failed(const std::exception_ptr& exception);
  void stream_failed(std::error_code error, bool cut);
  void handler_error();
  void log(std::string_view what);
  void answer_with(Status status);
  void check_response();
  void look_at_turn() noexcept;
  void blame_route() noexcept;
  bool head_only() const noexcept;
  void decide_keep_alive();
  ResponseHead describe_head() const;
  bool is_usual() const noexcept;
  bool write_usual();
  bool write_small();
  Next answer_now();
  bool peer_is_done() const noexcept;
  Next ended() noexcept;

  Task<> wait_for_tenant();
  Task<> wait_for_running();
  Task<Result<>> settle_body();
  Task<Next> deliver();
  Task<Next> deliver_stream(std::size_t answers_before);
  bool body_is_droppable() const noexcept;
  static std::coroutine_handle<> finished(Completion& self, std::coroutine_handle<>);
  static void peer_gone(HangupWatcher& self);

  /// While something of the request waits: its route stays, and with it the handler.
  struct InUse : RouteUse {
    explicit InUse(Exchange& exchange);
    ~InUse() { exchange_.response_.clear(); }  // what streams it may be the handler's
    static void stop(RouteUse& self);
    Exchange& exchange_;
  };
  /// Cancels what runs in the loop's next round.
  struct CancelLater : Runnable {
    explicit CancelLater(Exchange& exchange) noexcept : Runnable(&run), exchange_(exchange) {}
    static void run(Runnable& self);
    Exchange& exchange_;
    bool queued = false;
  };
  /// Cancels a handler whose route has a deadline.
  struct HandlerDeadline : Timer {
    explicit HandlerDeadline(Exchange& exchange) noexcept : Timer(&expire), exchange_(exchange) {}
    static void expire(Timer& self);
    Exchange& exchange_;
    bool expired = false;
  };
  bool busy() const noexcept { return running_ || cancel_later_.queued; }
  void stop_watching();

  ServerCore& server_;
  Transport& transport_;
  Context context_;
  HeadParser parser_;
  BodyReader body_;
  ResponseSlot response_;
  std::optional<Task<Response>> handler_;
  std::optional<CancelSource> cancel_;
  CancelLater cancel_later_{*this};
  HandlerDeadline deadline_{*this};
  std::coroutine_handle<> waiting_;
  BlockPtr<char> head_copy_;
  std::uint64_t heads_ = 0;
  Stage stage_ = Stage::answer;
  bool running_ = false;
  bool gone_ = false;  // the peer, while something ran
  bool keep_alive_ = true;
  bool refused_ = false;  // the answer is a refusal; the handler is not asked
  RouteMatch match_;
  RequestHead head_;
  RequestUnit unit_{server_, head_};
  Request request_{head_, body_, &unit_};
  std::exception_ptr abandoned_;  // why
  std::optional<InUse> in_use_;   // of what waits, until it is over
};

}  // namespace weir::http
