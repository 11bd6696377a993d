// A Logger writes records with a name, a level that may change at any time, and bound fields.
//
//     log.info("request done", field("path", path), field("status", 200));
//     const Logger mine = log.with(field("user", user));   // may be passed on as a parameter
//
// A record that a task writes for an HTTP request automatically has that request's id as its field
// `request`. This also holds for tasks on other cores and for calls in a pool; see TraceContext. If
// the request belongs to a trace that is sampled or that its client began, the record also has the
// fields `trace_id` and `span_id`.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/json/detail/shape.hpp"
#include "weir/json/text/units.hpp"
#include "weir/log/detail/record.hpp"
#include "weir/os/address.hpp"

namespace weir {

class LogService;

namespace detail {

/// The state that all loggers of one name share.
struct LoggerState {
  constexpr LoggerState(LogService* service, LogLevel its_level) noexcept
      : logs(service), level(its_level) {}
  LogService* const logs;
  std::string_view name;  // set before the first logger is made
  std::atomic<LogLevel> level;
};

/// The state of loggers that belong to no LogService.
inline constinit LoggerState disabled_logger{nullptr, LogLevel::off};

template <class T>
class BoundField {
 public:
  BoundField(std::string_view key, const T& value) noexcept : key_(key), value_(value) {}
  std::string_view key() const noexcept { return key_; }
  const T& value() const noexcept { return value_; }

 private:
  std::string_view key_;
  const T& value_;
};

template <class>
inline constexpr bool is_std_duration = false;
template <class Rep, class Period>
inline constexpr bool is_std_duration<std::chrono::duration<Rep, Period>> = true;

/// Returns a LogValue, or a std::string that a LogValue then views.
template <class T>
auto to_log_value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return LogValue(value);
  } else if constexpr (std::is_same_v<T, char>) {
    return std::string(1, value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return LogValue(static_cast<std::string_view>(value));
  } else if constexpr (std::signed_integral<T>) {
    return LogValue(std::int64_t{value});
  } else if constexpr (std::unsigned_integral<T>) {
    return LogValue(std::uint64_t{value});
  } else if constexpr (std::floating_point<T>) {
    return LogValue(static_cast<double>(value));
  } else if constexpr (std::is_same_v<T, std::error_code>) {
    return value.message();
  } else if constexpr (is_std_duration<T>) {
    return json::to_text(std::chrono::duration_cast<Duration>(value));
  } else if constexpr (std::is_same_v<T, ByteSize>) {
    return json::to_text(value);
  } else if constexpr (std::is_same_v<T, os::Address>) {
    return value.to_string();
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& each : json::enumerators<T>) {
      if (each.value == value) return LogValue(each.name);
    }
    return LogValue(static_cast<std::int64_t>(value));
  } else {
    static_assert(std::invocable<const T&>,
                  "weir: a field of a log record is a number, a text, an enum, a duration, an "
                  "error_code, an Endpoint, or a function that returns one of these");
    using Returned = std::remove_cvref_t<std::invoke_result_t<const T&>>;
    if constexpr (std::is_same_v<Returned, std::string>) {
      return std::string(value());
    } else {
      return to_log_value<Returned>(value());
    }
  }
}

inline LogValue as_value(const LogValue& value) noexcept {
  return value;
}
inline LogValue as_value(const std::string& text) noexcept {
  return std::string_view(text);
}

}  // namespace detail

/// Returns a field of a record, as in `field("path", path)`. The value is a number, a text, an
/// enum, a duration, a size, a std::error_code or an Endpoint. It may also be a function without
/// parameters that returns one of these. The logger calls the function only if it writes the
/// record.
/// Lifetime: the full expression that calls field().
template <class T>
detail::BoundField<T> field(std::string_view key, const T& value) noexcept {
  return {key, value};
}

/// A Logger writes records to its LogService. Records of one core keep their order. A copy costs
/// one reference count if the logger has bound fields. A default-constructed Logger writes
/// nothing.
/// Threads: any.
/// Lifetime: its LogService outlives it.
class Logger {
 public:
  Logger() noexcept : state_(&detail::disabled_logger) {}
  /// Used by LogService.
  explicit Logger(detail::LoggerState& state) noexcept : state_(&state) {}

  std::string_view name() const noexcept { return state_->name; }
  /// Returns true if records of this level are written; false for the level `off`. Costs one load
  /// and one comparison if `level` is a constant.
  bool enabled(LogLevel level) const noexcept {
    // relaxed: a new level may take effect a little later.
    return level != LogLevel::off && level >= state_->level.load(std::memory_order_relaxed);
  }

  /// Writes a record if the name's level permits it; otherwise no field is converted or formatted.
  /// A record of level `off` is never written.
  /// The call never waits. If the core's buffer is full, the record is dropped and counted.
  template <class... T>
  void log(LogLevel level, std::string_view message, const detail::BoundField<T>&... fields) const {
    if (enabled(level)) [[unlikely]] {
      write(level, message,
            {LogField(fields.key(), detail::as_value(detail::to_log_value(fields.value())))...});
    }
  }
  template <class... T>
  void trace(std::string_view message, const detail::BoundField<T>&... fields) const {
    log(LogLevel::trace, message, fields...);
  }
  template <class... T>
  void debug(std::string_view message, const detail::BoundField<T>&... fields) const {
    log(LogLevel::debug, message, fields...);
  }
  template <class... T>
  void info(std::string_view message, const detail::BoundField<T>&... fields) const {
    log(LogLevel::info, message, fields...);
  }
  template <class... T>
  void warning(std::string_view message, const detail::BoundField<T>&... fields) const {
    log(LogLevel::warning, message, fields...);
  }
  template <class... T>
  void error(std::string_view message, const detail::BoundField<T>&... fields) const {
    log(LogLevel::error, message, fields...);
  }

  /// Returns a logger of this name that adds these fields to each record, before the record's own
  /// fields. The first field beyond a total of 2 KiB is left out, and so are all fields after it.
  template <class... T>
  Logger with(const detail::BoundField<T>&... fields) const {
    return with_log_fields(
        {LogField(fields.key(), detail::as_value(detail::to_log_value(fields.value())))...});
  }
  /// Returns a logger of this name with one more field: a short id that is unique in this
  /// LogService. It is meant for work that is not an HTTP request, because requests already have
  /// an id.
  Logger with_id(std::string_view key = "request") const;

 private:
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const noexcept;
  Logger with_log_fields(std::initializer_list<LogField> fields) const;

  detail::LoggerState* state_;
  std::shared_ptr<const std::string> fields_;  // encoded; nullptr if there are none
};

}  // namespace weir
