// The HTTP/1 side of a connection: it turns bytes into requests, in order, and responses into
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/server/detail/call.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/exchange.hpp"
#include "weir/http/server/detail/h1/h1_carrier.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Handles the requests of a connection, one after another, in order. A connection creates it when
/// bytes arrive and destroys it when all are answered. Responses are collected in output(), so that
/// a batch of pipelined requests costs one write.
/// Threads: its loop's.
class H1Connection : public ConnectionIo {
 public:
  /// The next action of the connection.
  enum class Action : std::uint8_t {
    idle,       ///< no input left; send the output and wait for the next request
    read_more,  ///< incomplete head; send the output and read on
    next_turn,  ///< enough requests for this turn; send the output and go on in the next one
    finish,     ///< a request that has to wait; see Exchange::run()
    http2,      ///< the input begins with the preface of HTTP/2
    websocket,  ///< the response accepts a WebSocket; send the output, then take_websocket()
    close,      ///< end; send the output, then close after the peer has had time to read it
    close_now,  ///< end; send the output and stop reading, because the peer sends no more
    abort,      ///< broken connection; close it
  };

  /// `input` is not empty. `context` is that of the task that serves the connection.
  H1Connection(ServerState& server, Connection& connection, const Context& context,
               Buffer input) noexcept;

  /// Allows the first bytes of the input to be the preface of HTTP/2.
  void allow_http2() noexcept { http2_allowed_ = true; }
  /// Answers requests until one of them has to wait, or until they have used the share of this
  /// turn; see TurnShare.
  /// Returns: the next action.
  Action advance();
  /// Performs `action` and the actions that follow, until the input is used up.
  /// Returns: idle, or the way to close. The output is sent, unless the connection is broken.
  /// Cancel: passed on to the handler; the connection closes.
  Task<Action> run(Action action);

  /// Returns the present request, or the last one.
  const Call& call() const noexcept { return exchange_.call(); }
  /// Returns what the peer may still send after Action::close.
  LateInput late_input() const noexcept { return late_input_; }
  /// Returns the WebSocket that the connection becomes, after Action::websocket.
  BlockPtr<ServedWebSocket> take_websocket() noexcept { return std::move(carrier_.websocket()); }

  /// Cancels what still runs after the exception `why` has interrupted a request; see
  /// Exchange::abandon().
  void abandon(std::exception_ptr why) noexcept { exchange_.abandon(std::move(why)); }
  /// Waits until the call is not busy.
  /// Cancel: not affected.
  class TaskEndAwaiter : public Call::NotBusyAwaiter {
   public:
    explicit TaskEndAwaiter(H1Connection& http1) noexcept
        : NotBusyAwaiter(http1.exchange_.call()), http1_(http1) {}
    void await_resume() const noexcept { http1_.carrier_.watch_peer(false); }

   private:
    H1Connection& http1_;
  };
  /// Waits until no task of the call runs: `co_await call_ended()`. It allocates nothing.
  /// Cancel: not affected.
  TaskEndAwaiter call_ended() noexcept { return TaskEndAwaiter(*this); }
  /// Returns the scope of a request that was abandoned, or nullptr.
  Scope* scope_in_use() noexcept { return exchange_.scope_in_use(); }
  /// Throws the exception of abandon(), if there is one.
  void throw_if_abandoned() { exchange_.call().throw_if_abandoned(); }

  /// Returns when the first bytes of the head that is being read have arrived.
  Instant head_started() const noexcept { return head_started_; }

 private:
  Instant head_deadline() noexcept;
  Action take_next(Exchange::Next next);
  Action end_request();
  Action end_unproven() noexcept;
  Action end_evicted();
  Action reject_head(ParseError error);
  bool peer_sends_no_more() const noexcept;
  Task<Action> finish();
  Task<Action> discard_body();
  void expect_rest_of_body() noexcept;

  ServerState& server_;
  Context context_;
  HeadParser parser_;
  H1Carrier carrier_;
  Exchange exchange_;
  Instant head_started_ = never;  // when a part of a head had arrived; `never` between heads
  bool http2_allowed_ = false;    // true until the first head if the preface may come instead
  LateInput late_input_ = LateInput::none;
};
static_assert(sizeof(H1Connection) <= 4096, "a larger object takes a block of twice the size");

}  // namespace weir::http
