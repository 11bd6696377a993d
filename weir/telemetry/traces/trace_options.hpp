// The options of a Tracer, from a program or from the variables that OpenTelemetry defines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/json/text/units.hpp"
#include "weir/telemetry/traces/detail/otlp.hpp"
#include "weir/telemetry/traces/sampler.hpp"

namespace weir::telemetry {

/// TraceOptions sets up a Tracer and its exporter.
struct TraceOptions {
  /// False to record and export nothing, and to send no traceparent.
  bool enabled = true;
  /// The attribute service.name of the resource.
  std::string service_name = "unknown_service";
  /// Further attributes of the resource, such as deployment.environment.name.
  std::vector<std::pair<std::string, std::string>> resource = {};
  /// The default records the traces that the caller of this program records, and all others. Set
  /// Sampler::public_edge() for a service whose clients are not trusted.
  Sampler sampler = {};

  /// The URLs of the collector. Spans or log records without a URL are dropped.
  std::string traces_url = "http://localhost:4318/v1/traces";
  std::string logs_url = "http://localhost:4318/v1/logs";
  using Headers = std::vector<std::pair<std::string, std::string>>;
  /// Headers of the requests to the collector, such as Authorization.
  Headers headers = {};
  Headers traces_headers = {};  ///< further headers of requests with spans
  Headers logs_headers = {};    ///< further headers of requests with log records
  OtlpEncoding encoding = OtlpEncoding::protobuf;
  bool gzip = false;  ///< true to compress the requests, if the build has zlib
  Duration export_timeout = std::chrono::seconds(10);  ///< time of one attempt to send a batch

  std::size_t batch_max = 512;  ///< spans, or log records, of a request to the collector
  Duration batch_delay = std::chrono::seconds(5);  ///< time from one batch to the next
  /// Spans, and log records, of each core that are not exported yet. Others are dropped.
  std::size_t queue_capacity = 2048;
  /// Bytes of the spans, and of the log records, of each core that are not exported yet.
  ByteSize queue_bytes_max = 4_MiB;

  /// Attempts to send a batch, if the collector is not there or answers 429, 502, 503 or 504.
  unsigned attempts_max = 5;
  /// The wait before the second attempt. Each later one is twice as long, up to backoff_max. The
  /// waits are shortened at random by up to a half. A Retry-After of the collector is waited for,
  /// up to retry_after_max.
  Duration backoff = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::seconds(30);
  Duration retry_after_max = std::chrono::minutes(1);
  /// The longest time for which a drain waits for the export of the last spans.
  Duration flush_timeout = std::chrono::seconds(5);

  /// Variables that from_variables() has ignored, with the reasons. The program logs them.
  std::vector<std::string> warnings = {};

  using Variables = std::map<std::string, std::string, std::less<>>;
  /// Returns the options that variables of OpenTelemetry's specification set. They are
  /// OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and _ARG,
  /// OTEL_TRACES_EXPORTER and OTEL_LOGS_EXPORTER (otlp or none), OTEL_PROPAGATORS (tracecontext).
  /// The variables OTEL_BSP_SCHEDULE_DELAY, _MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE and
  /// _EXPORT_TIMEOUT hold for log records too. Variables of OTEL_EXPORTER_OTLP are _ENDPOINT and
  /// _HEADERS, also with TRACES_ or LOGS_, and _PROTOCOL, _TIMEOUT and _COMPRESSION, also with
  /// TRACES_. An empty variable is not set. An invalid variable, and any other variable that
  /// begins with OTEL_, has no effect. `warnings` names each of them, except
  /// OTEL_METRICS_EXPORTER=none. The function reads no environment; main()
  /// passes it on with variables_of().
  static TraceOptions from_variables(const Variables& variables);
};

/// Returns the variables of the environment that main() gets. The last element is nullptr.
TraceOptions::Variables variables_of(const char* const* environment);

}  // namespace weir::telemetry
