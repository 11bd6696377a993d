// A LogSink writes log records to their destination, as text or JSON.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "weir/json/detail/shape.hpp"
#include "weir/log/detail/record.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// The format in which a sink writes records.
enum class LogFormat : std::uint8_t {
  text,  ///< `2026-11-22T05:51:12.123456Z info [3] http: request done path=/x status=200`
  json,  ///< One object per record: time, level, logger, core, message, and the fields.
};

}  // namespace weir

template <>
inline constexpr std::array weir::json::enumerators<weir::LogFormat>{
    weir::json::Named{weir::LogFormat::text, "text"},
    weir::json::Named{weir::LogFormat::json, "json"}};

namespace weir {

/// Appends the record as one line without a line end. The text format quotes values that are not
/// plain words as in JSON. No value can begin a new line or control a terminal. The JSON format
/// appends underscores to a field's name until no earlier name of the record is equal.
void append_line(std::string& out, const LogRecord& record, LogFormat format);

/// Appends only the message and the fields as text, for sinks that write time, level, core and
/// logger themselves.
void append_message(std::string& out, const LogRecord& record);

/// Appends the time as `2026-11-22T05:51:12.123456Z`.
void append_time(std::string& out, WallTime time);

/// A LogSink receives the records of a LogService. A sink may block; the only effect on the cores
/// is that records are dropped. Exceptions of write() and flush() are counted in
/// LogReport::failed. The first one is reported in the platform's log.
/// Threads: one at a time, and never a thread that runs a loop.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogRecord& record) = 0;
  /// Called after the last available record.
  virtual void flush() {}
};

/// Returns a sink that writes one line per record to the platform's log, which usually is standard
/// error.
/// Lifetime: the platform outlives the sink.
std::unique_ptr<LogSink> platform_log_sink(loop::PlatformLog& platform,
                                           LogFormat format = LogFormat::text);

}  // namespace weir
