// The HTTP service that the traffic of weir/http_testing/detail/http_traffic.hpp uses.
#pragma once

#include "tools/simulate/request_monitor.hpp"
#include "tools/simulate/runtime_monitor.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {

/// Adds the resources that sim::HttpRequest names.
void add_routes(http::Router& routes);

struct HttpServiceOptions {
  RuntimeOptions runtime = {};
  http::Limits limits = {};
  Endpoint endpoint = Endpoint::any(80);
  RuntimeMonitor* watch = nullptr;     ///< monitor of the runtime; nullptr: none
  RequestMonitor* requests = nullptr;  ///< monitor of the requests; nullptr: none
};

/// Serves these resources until the process is told to end. It is a main function.
int serve_http(loop::Platform& host, const HttpServiceOptions& options);

}  // namespace weir::simulate
