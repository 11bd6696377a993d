// The metrics of HTTP servers, under the names of OpenTelemetry.
#pragma once

#include <cstddef>
#include <span>

#include "weir/http/server/server_observer.hpp"
#include "weir/telemetry/metrics/metrics.hpp"

namespace weir::telemetry {

struct ServerMetricsOptions {
  /// Number of sets of label values; see MetricOptions. It is at least the number of routes times
  /// the statuses that each of them returns.
  std::size_t label_sets_max = 500;
  /// Also counts in exponential buckets; see HistogramOptions.
  bool native = true;
};

/// Measures the requests of servers as http.server.request.duration, by the labels
/// http.request.method, http.route (the pattern), http.response.status_code,
/// network.protocol.version and error.type ("client_left"). It is an observer of
/// ServeOptions::observer, for any number of servers. Their other metrics are exported without it.
/// Threads: any.
/// Lifetime: outlives the servers.
class ServerMetrics final : public http::ServerObserver {
 public:
  /// Errors: throws std::invalid_argument if another ServerMetrics has other native buckets;
  /// std::bad_alloc.
  explicit ServerMetrics(const ServerMetricsOptions& options = {});

  void on_requests_ended(Loop& loop, Instant end,
                         std::span<const http::EndedRequest> requests) noexcept override;

 private:
  detail::KnownCells::Entry find(detail::KnownCells& known, std::uint64_t key,
                                 const http::EndedRequest& request) noexcept;

  Histogram durations_;
  const detail::HistogramLayout& layout_;
};

}  // namespace weir::telemetry
