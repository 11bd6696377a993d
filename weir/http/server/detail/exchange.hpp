// One request and its response, on any carrier.
#pragma once

#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/detail/request_owner.hpp"
#include "weir/http/server/detail/call.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/http/server/detail/interim_sender.hpp"
#include "weir/http/server/detail/request_body.hpp"
#include "weir/http/server/detail/request_scope.hpp"
#include "weir/http/server/detail/response_body.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The rules of one request and its response, whatever protocol carries them: when the handler is
/// called, what becomes of a body that it does not read, and what the client gets. It is used for
/// one request after another.
///
/// A carrier fills head(), and calls begin() or reject_head(). It then calls run(), unless the
/// result is `finish` or `upgraded`. It calls finish() after `finish`. If response().failed() is
/// false and body() has not ended, the carrier drops the rest: by drop_rest(), or by limits of its
/// own. During all of this, it calls body().count(), body().fail() and on_peer_gone().
/// Threads: its loop's.
/// Lifetime: the server and the carrier outlive it. No task runs under it when it is destroyed.
class Exchange final : detail::RequestOwner {
 public:
  /// The next step of a request.
  enum class Next : std::uint8_t {
    start,     ///< start() calls the handler, which is a task; run() does so if it was not called
    wait,      ///< run() waits for something
    finish,    ///< finish() ends it: the response was sent, or is cut off
    send_on,   ///< the carrier still sends a part of the response; run() would wait for it
    upgraded,  ///< Carrier::open_websocket() was called; the exchange has ended without finish()
  };

  /// `context` is the context of the task that carries the exchange.
  Exchange(ServerState& server, Carrier& carrier, const Context& context) noexcept
      : server_(server),
        carrier_(carrier),
        context_(context),
        interim_(carrier, server.loop()),
        body_(carrier, interim_, server.loop(), server.limits()),
        call_(server, body_, context, *this),
        response_(call_, carrier) {}

  /// Returns the head of the present request. The carrier fills it before begin(), with the
  /// HeadParser, which reads the text of a head of HTTP/1.1. The text stays valid until finish(),
  /// or until the request has to wait: see Call::hold().
  RequestHead& head() noexcept { return call_.head(); }
  Call& call() noexcept { return call_; }
  const Call& call() const noexcept { return call_; }
  RequestBody& body() noexcept { return body_; }
  const RequestBody& body() const noexcept { return body_; }
  const ResponseBody& response() const noexcept { return response_; }

  /// Begins the request of a complete head. `length` is what the framing says of its body; it is
  /// not concluded from the head.
  Next begin(BodyLength length);
  /// Begins a request whose head is rejected, and answers it.
  Next reject_head(ParseError error);
  Next reject_head(Status status);
  /// Calls a handler that is a task.
  Next start();
  /// Waits for what the request needs, answers it, and ends the tasks of its scope. It follows any
  /// other Next than `finish` and `upgraded`.
  /// Returns: finish or upgraded.
  /// Errors: throws std::bad_alloc.
  /// Cancel: passed on to the handler.
  Task<Next> run();
  /// Reads and drops the rest of a body behind a response that did not wait for it.
  /// Errors: those of RequestBody::discard().
  /// Cancel: that of RequestBody::discard().
  Task<Result<>> drop_rest();
  /// Returns true if the peer can still receive a response after this error of its body.
  static bool may_answer(std::error_code error) noexcept;
  /// The carrier has sent the rest of the response, after Next::send_on.
  void on_rest_sent() noexcept { response_.on_rest_sent(); }
  /// The peer has left, or the connection is lost. The running handler is cancelled. The carrier
  /// calls body().fail() before, and wakes its own waits.
  void on_peer_gone() noexcept;
  /// Cancels what still runs after the exception `why` has interrupted the carrier. It allocates
  /// nothing, because the exception may mean that there is no memory.
  void abandon(std::exception_ptr why) noexcept;
  /// Returns the scope of the request, or nullptr if the handler has used none. Its tasks may run
  /// after the call.
  Scope* scope_in_use() noexcept { return scope_ == nullptr ? nullptr : &scope_->scope; }
  /// Reports the end, and ends the use of the route. Call it once after Next::finish.
  void finish() noexcept;

 private:
  class ScopeEnd;

  Scope& scope() override;
  Task<Result<>> send_interim(Status status, const Headers& headers) override;
  Next choose();
  Next answer();
  Next answer_late();
  void take_response(const std::exception_ptr& thrown);
  Next upgrade();
  Next reject(ParseError error);
  bool is_duplex() const noexcept;
  bool reads_on() const noexcept;
  bool answers_early() const;
  Task<> settle_body();
  void reject_body();
  void count_body_error() noexcept;

  ServerState& server_;
  Carrier& carrier_;
  Context context_;
  InterimSender interim_;
  RequestBody body_;
  Call call_;
  ResponseBody response_;
  BlockPtr<RequestScope> scope_;
  bool began_in_drain_ = false;
  bool body_error_counted_ = false;
};

}  // namespace weir::http
