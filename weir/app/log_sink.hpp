// Where log records end.
#pragma once

#include <memory>

#include "weir/log/detail/record.hpp"
#include "weir/log/sink.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// Threads: one at a time, and never a loop's: it may block, and then only records are dropped.
/// What it throws is told in the host's log, and the record counts as failed.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogRecord& record) = 0;
  /// Behind the last record for the time being.
  virtual void flush() {}
};

/// A line for each record in the host's own log: standard error, as a rule. The host outlives it.
std::unique_ptr<LogSink> host_log_sink(Host& host, LogFormat format = LogFormat::text);

}  // namespace weir
