// The servers between a client and a handler, for each carrier.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/deployment_options.hpp"
#include "tests/messages/message.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// A Deployment is the server of the handlers, and the reverse proxy before it if the carrier has
/// one. All of them run on one loop and have ports of their own.
/// Threads: the loop's.
/// Lifetime: the routes outlive it, and it outlives the scope of open().
class Deployment {
 public:
  Deployment(Loop& loop, const Carrier& carrier, const http::Router& routes,
             const DeploymentOptions& options);

  /// Listens, and serves until `scope` is cancelled.
  /// Errors: those of http::open_listener().
  Task<Result<>> open(Scope& scope);
  /// Sends the request from a new client to the first server; see exchange_http1(),
  /// exchange_http2(), exchange_memory(). On HTTP/2 and in memory, the client sends `before` first,
  /// whose responses are not read.
  /// Returns: the response; its status is 0 if none has come within 20 s.
  /// Cancel: the client resets its connection.
  Task<ReceivedResponse> exchange(const SentRequest& request,
                                  const std::vector<SentRequest>& before);

  /// Returns the server of the handlers.
  http::ServerState& origin() noexcept { return origin_; }
  /// Returns the server of the client: the proxy, or origin().
  http::ServerState& front() noexcept { return proxy_ ? *proxy_ : origin_; }

 private:
  Task<Result<>> open(Scope& scope, http::ServerState& server, os::Address& address);
  Task<ReceivedResponse> exchange_now(const SentRequest& request,
                                      const std::vector<SentRequest>& before);

  Loop& loop_;
  Carrier carrier_;
  DeploymentOptions options_;
  http::ServerState origin_;
  http::Router proxy_routes_;
  std::optional<http::ServerState> proxy_;
  os::Address address_;     // of front()
  Scope* scope_ = nullptr;  // of open()
};

}  // namespace weir::tests::messages
