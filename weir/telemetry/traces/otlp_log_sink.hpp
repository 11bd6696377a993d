// A sink that exports log records to a collector.
#pragma once

#include "weir/log/sink.hpp"
#include "weir/telemetry/traces/tracer.hpp"

namespace weir::telemetry {

/// A sink of a LogService that exports its records by the exporter of a Tracer. Fields become
/// attributes, and the ids of a trace become those of the record.
///
///     sinks.push_back(std::make_unique<telemetry::OtlpLogSink>(tracer));
///
/// Threads: one at a time.
/// Lifetime: the tracer outlives it.
class OtlpLogSink final : public LogSink {
 public:
  explicit OtlpLogSink(Tracer& tracer) noexcept : tracer_(tracer) {}
  void write(const LogRecord& record) override;

 private:
  Tracer& tracer_;
};

}  // namespace weir::telemetry
