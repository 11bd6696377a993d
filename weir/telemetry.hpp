// Telemetry: what a program reports about itself to other programs.
#pragma once

#include "weir/base/result.hpp"
#include "weir/telemetry/metrics/client_metrics.hpp"
#include "weir/telemetry/metrics/metrics.hpp"
#include "weir/telemetry/metrics/mount_metrics.hpp"
#include "weir/telemetry/metrics/server_metrics.hpp"
#include "weir/telemetry/traces/attributes.hpp"
#include "weir/telemetry/traces/http_spans.hpp"
#include "weir/telemetry/traces/otlp_log_sink.hpp"
#include "weir/telemetry/traces/sampler.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/span_data.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"
#include "weir/telemetry/traces/trace_options.hpp"
#include "weir/telemetry/traces/tracer.hpp"
