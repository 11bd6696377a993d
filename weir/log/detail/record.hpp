// A log record, and its encoding between the core that logs it and the thread that writes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"
#include "weir/json/detail/shape.hpp"

namespace weir {

// The severity of a log record.

enum class LogLevel : std::uint8_t {
  trace,
  debug,
  info,
  warning,
  error,
  off,  ///< A logger's level that writes nothing; no record has this level.
};

}  // namespace weir

template <>
inline constexpr std::array weir::json::enumerators<weir::LogLevel>{
    weir::json::Named{weir::LogLevel::trace, "trace"},
    weir::json::Named{weir::LogLevel::debug, "debug"},
    weir::json::Named{weir::LogLevel::info, "info"},
    weir::json::Named{weir::LogLevel::warning, "warning"},
    weir::json::Named{weir::LogLevel::error, "error"},
    weir::json::Named{weir::LogLevel::off, "off"}};

namespace weir {

constexpr std::string_view name_of(LogLevel level) noexcept {
  return json::enumerators<LogLevel>[static_cast<std::size_t>(level)].name;
}

/// Returns the level of this name, if there is one.
constexpr std::optional<LogLevel> parse_log_level(std::string_view name) noexcept {
  for (const auto& each : json::enumerators<LogLevel>) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

using LogValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view>;

struct LogField {
  LogField(std::string_view its_key, LogValue its_value) noexcept
      : key(its_key), value(its_value) {}
  std::string_view key;
  LogValue value;
};

/// A LogRecord is the record that a sink receives.
/// Lifetime: the views are valid during the call of the sink.
struct LogRecord {
  static constexpr unsigned no_core = ~0U;

  WallTime time;
  LogLevel level = LogLevel::info;
  /// The core that logged the record; no_core if the thread has no loop.
  unsigned core = no_core;
  bool truncated = false;  ///< True if the message or a value was cut, or a field was left out.
  std::string_view logger;
  std::string_view message;
  std::vector<LogField> fields;

  /// The maximum size of an encoded record; the rest is cut.
  static constexpr std::size_t bytes_max = 4096;
};

/// A LogRecordWriter encodes a record. Data that does not fit is cut: texts are shortened and
/// fields are left out. The object is large, so it belongs on a function's stack and not in a
/// coroutine's frame.
/// Threads: one.
class LogRecordWriter {
 public:
  LogRecordWriter(WallTime time, LogLevel level, unsigned core, std::string_view logger,
                  std::string_view message) noexcept;
  void add(const LogField& field) noexcept;
  /// Adds fields that encode() has encoded.
  void add_encoded(std::string_view fields) noexcept;
  /// Returns the encoded record; nothing may be added afterwards.
  Bytes finish() noexcept;

  /// Returns `before`, which encode() has returned, with the encoded `fields` appended. The result
  /// may be added to any number of records.
  static std::string encode(std::string_view before, std::span<const LogField> fields);

 private:
  LogRecordWriter() noexcept = default;
  std::size_t free_bytes() const noexcept { return bytes_.size() - size_; }
  void append(const void* data, std::size_t size) noexcept;

  std::size_t size_ = 0;
  bool truncated_ = false;
  std::array<std::byte, LogRecord::bytes_max> bytes_;  // the first size_ are used
};

/// Returns true if the encoded fields contain a field of this name.
bool has_log_field(std::string_view encoded, std::string_view key) noexcept;

/// The number of bytes at the start of an encoded record that contain the record's size.
inline constexpr std::size_t log_size_bytes = sizeof(std::uint32_t);
/// Returns the size of the encoded record that starts with `beginning`, which has at least
/// log_size_bytes.
std::size_t log_record_size(Bytes beginning) noexcept;
/// Returns the time at which the record was logged.
WallTime log_record_time(Bytes record) noexcept;

/// Decodes `bytes` into `record`, whose views point into `bytes`. The memory of `record` is
/// reused.
void read_log_record(Bytes bytes, LogRecord& record);

}  // namespace weir
