// What a service logs with: a name, a level that may change at any time, and fields that every
// record has.
//
//   log.info("request done", field("path", path), field("status", 200));
//   const Logger mine = log.with(field("user", user));   // goes on as a parameter
//
// Whatever a task logs that works for an HTTP request, directly or not, on whichever core or in
// which pool, has that request's id as the field `request`, by itself: see WorkUnit.
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

#include "weir/config/type/units.hpp"
#include "weir/app/log_level.hpp"
#include "weir/log/detail/record.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/os/address.hpp"

namespace weir {

class Logs;

namespace detail {

/// What the loggers of one name share.
struct LogChannel {
  constexpr LogChannel(Logs* its_logs, LogLevel its_level) noexcept
      : logs(its_logs), level(its_level) {}
  Logs* const logs;
  std::string_view name;  // set before any logger has it
  std::atomic<LogLevel> level;
};

/// Of loggers that belong to no Logs.
inline constinit LogChannel silent_channel{nullptr, LogLevel::off};

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

/// A LogValue, or a std::string to which one will point.
template <class T>
auto logged(const T& value) {
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
    return config::to_text(std::chrono::duration_cast<Duration>(value));
  } else if constexpr (std::is_same_v<T, ByteSize>) {
    return config::to_text(value);
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
      return logged<Returned>(value());
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

/// `field("path", path)`: a part of a record. The value is a number, a text, an enum, a duration, a
/// size, a std::error_code, an Endpoint, or a function without parameters that returns one of them,
/// which is called only if the record is written. Lifetime: of the expression that it stands in.
template <class T>
detail::BoundField<T> field(std::string_view key, const T& value) noexcept {
  return {key, value};
}

/// Copied at the price of a reference count, if it has fields. Records of one core keep their
/// order. Threads: any. Lifetime: its Logs outlives it; one made without a Logs logs nothing.
class Logger {
 public:
  Logger() noexcept : channel_(&detail::silent_channel) {}
  /// For Logs.
  explicit Logger(detail::LogChannel& channel) noexcept : channel_(&channel) {}

  std::string_view name() const noexcept { return channel_->name; }
  /// Costs a load and a comparison.
  bool enabled(LogLevel level) const noexcept {
    // relaxed: a new level need not count at once.
    return level >= channel_->level.load(std::memory_order_relaxed);
  }

  /// Writes a record, if the level of this name lets it. It never waits: where its core has no room
  /// for it the record is dropped and counted. Otherwise nothing is made or formatted.
  template <class... T>
  void log(LogLevel level, std::string_view message, const detail::BoundField<T>&... fields) const {
    if (enabled(level)) [[unlikely]] {
      write(level, message,
            {LogField(fields.key(), detail::as_value(detail::logged(fields.value())))...});
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

  /// A logger of the same name whose records have these fields too, before their own. Fields of
  /// more than 2 KiB together are left out.
  template <class... T>
  Logger with(const detail::BoundField<T>&... fields) const {
    return bound({LogField(fields.key(), detail::as_value(detail::logged(fields.value())))...});
  }
  /// The same with an id that no other call has given in this Logs: short, and quickly made. For
  /// work that is no request: those have one.
  Logger with_id(std::string_view key = "request") const;

 private:
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const noexcept;
  Logger bound(std::initializer_list<LogField> fields) const;

  detail::LogChannel* channel_;
  std::shared_ptr<const std::string> fields_;  // encoded; nullptr: none
};

}  // namespace weir
