// The servers between a client and a handler, for each carrier.
#pragma once

#include <memory>
#include <optional>

#include "tests/messages/carrier.hpp"
#include "tests/messages/message.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::tests::messages {

/// What the servers of a test have in common, whatever the carrier.
struct DeploymentOptions {
  http::Limits limits = {};              ///< of both servers
  http::ReverseProxyOptions proxy = {};  ///< its client's carrier is set by the Deployment
};

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
  /// Sends the request from a client to the first server; see exchange_http1(), exchange_http2().
  /// Returns: the response; its status is 0 if none has come within 20 s.
  Task<ReceivedResponse> exchange(const SentRequest& request);

  /// Returns the server of the handlers.
  http::ServerState& origin() noexcept { return origin_; }
  /// Returns the server of the client: the proxy, or origin().
  http::ServerState& front() noexcept { return proxy_ ? *proxy_ : origin_; }

 private:
  Task<Result<>> open(Scope& scope, http::ServerState& server, os::Address& address);
  Task<ReceivedResponse> exchange_now(const SentRequest& request);

  Loop& loop_;
  Carrier carrier_;
  DeploymentOptions options_;
  http::ServerState origin_;
  http::Router proxy_routes_;
  std::optional<http::ServerState> proxy_;
  os::Address address_;  // of front()
};

}  // namespace weir::tests::messages
