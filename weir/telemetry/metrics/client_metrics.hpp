// The metrics of the requests of HTTP clients, under the names of OpenTelemetry.
#pragma once

#include <cstddef>
#include <memory>

#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/telemetry/metrics/metrics.hpp"

namespace weir::telemetry {

struct ClientMetricsOptions {
  /// Limit of sets of label values; see MetricOptions. It should be at least the number of servers
  /// times the number of outcomes.
  std::size_t label_sets_max = 500;
  /// Also counts in exponential buckets; see HistogramOptions.
  bool native = true;
  /// Another observer of the same requests, such as TraceClient; nullptr: there is none.
  http::ClientObserver* next = nullptr;
};

/// Measures the requests of clients as http.client.request.duration, from send() to the head of the
/// response, and the handshakes of their WebSockets. The labels are http.request.method,
/// server.address, server.port, http.response.status_code, network.protocol.version and error.type.
/// The last label is the status from 400 on, or the error. ClientOptions::observer of any number of
/// clients refers to the object. The other metrics of clients are exported without it.
/// Threads: any.
/// Lifetime: outlives the clients; ClientMetricsOptions::next outlives it.
class ClientMetrics final : public http::ClientObserver {
 public:
  /// Errors: throws std::invalid_argument if another ClientMetrics has other native buckets;
  /// std::bad_alloc.
  explicit ClientMetrics(const ClientMetricsOptions& options = {});

  std::unique_ptr<Call> begin(http::ClientRequest& request) override;

 private:
  Histogram durations_;
  http::ClientObserver* next_;
};

}  // namespace weir::telemetry
