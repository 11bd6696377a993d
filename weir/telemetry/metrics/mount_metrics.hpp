// The page of metrics that Prometheus scrapes.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/router.hpp"

namespace weir::telemetry {

struct MetricsPageOptions {
  /// True to export the metrics of Weir itself: cores, servers, pool and other components.
  bool runtime = true;
  /// The http::MemoryBound::total() of the server, exported as weir_memory_bound_bytes; 0: none.
  std::uint64_t memory_bound = 0;
};

/// The handler of the page of metrics. It answers in the text format 0.0.4 of Prometheus, in
/// OpenMetrics 1.0, or in protobuf with native histograms, as the Accept header of the client asks.
/// It reads counters that the cores write, without stopping them. It writes the page in pieces, one
/// for each loop turn.
/// Threads: any.
class MetricsPage {
 public:
  explicit MetricsPage(const MetricsPageOptions& options = {}) noexcept : options_(options) {}
  http::Response operator()(http::Request& request) const;

 private:
  MetricsPageOptions options_;
};

/// Adds the page of metrics to a router. The page shows the names of all routes, so it belongs to a
/// listener that only the operator reaches.
/// Returns: the id of the route.
/// Errors: a PatternError of `path`, Errc::conflict for a second route with this path.
Result<http::RouteId> mount_metrics(http::Router& router, std::string_view path = "/metrics",
                                    const MetricsPageOptions& options = {});

}  // namespace weir::telemetry
