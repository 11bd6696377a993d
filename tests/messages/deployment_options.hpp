// What the servers of a case need in addition to its routes.
#pragma once

#include <functional>

#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::tests::messages {

/// What the servers of a test have in common, whatever the carrier.
struct DeploymentOptions {
  http::Limits limits = {};              ///< of both servers
  http::ReverseProxyOptions proxy = {};  ///< its client's carrier is set by the Deployment
  /// Adds middleware to the routes of the proxy, if there is one.
  std::function<void(http::Router& routes)> before_proxy = {};
};

}  // namespace weir::tests::messages
