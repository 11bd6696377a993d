// The HTTP service that the traffic of weir/testing/http_traffic asks.
#pragma once

#include "tools/simulate/request_monitor.hpp"
#include "tools/simulate/runtime_monitor.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/router/router.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir::simulate {

/// The resources that HttpAsked names.
void add_routes(http::Router& routes);

struct HttpServiceOptions {
  RuntimeOptions runtime = {};
  http::Limits limits = {};
  Endpoint endpoint = Endpoint::any(80);
  RuntimeWatch* watch = nullptr;     ///< sees its runtime, if there is one
  RequestWatch* requests = nullptr;  ///< the same for its requests
};

/// A main function: serves them until it is told to end.
int serve_http(Host& host, const HttpServiceOptions& options);

}  // namespace weir::simulate
