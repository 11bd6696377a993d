// Log records as lines for people and as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "weir/log/detail/record.hpp"
#include "weir/json/detail/shape.hpp"

namespace weir {

enum class LogFormat : std::uint8_t {
  text,  ///< `2026-11-22T05:51:12.123456Z info [3] http: request done path=/x status=200`
  json,  ///< one object each: time, level, logger, core, message, and the fields
};

}  // namespace weir

template <>
inline constexpr std::array weir::json::enumerators<weir::LogFormat>{
    weir::json::Named{weir::LogFormat::text, "text"},
    weir::json::Named{weir::LogFormat::json, "json"}};

namespace weir {

/// Appends the record as one line, without its end. In a text, values that are not plain words are
/// quoted as in JSON; nothing in a line can begin another or control a terminal. In JSON, a field
/// whose name is taken has an underscore behind it.
void append_line(std::string& out, const LogRecord& record, LogFormat format);

/// The same without time, level, core and logger, for what writes those by itself.
void append_message(std::string& out, const LogRecord& record);

/// `2026-11-22T05:51:12.123456Z`.
void append_time(std::string& out, WallTime time);

}  // namespace weir
