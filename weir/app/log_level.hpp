// How important a log record is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/json/detail/shape.hpp"

namespace weir {

enum class LogLevel : std::uint8_t {
  trace,
  debug,
  info,
  warning,
  error,
  off,  ///< as a logger's level: nothing; no record has it
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

/// The level of this name, if there is one.
constexpr std::optional<LogLevel> log_level(std::string_view name) noexcept {
  for (const auto& each : json::enumerators<LogLevel>) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

}  // namespace weir
