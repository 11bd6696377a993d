// Parses TOML 1.0 with the library toml++, which only the source file includes.
#pragma once

#include <expected>
#include <string_view>

#include "weir/config/source/detail/raw_value.hpp"
#include "weir/config/source/error.hpp"

namespace weir::config {

/// Parses a whole text as a table, whose items have the order of the text.
/// Errors: the first error only, with its position in `source`.
std::expected<RawValue, Error> parse_toml(std::string_view text, std::string_view source);

/// Parses a single array or inline table, such as `["a", "b"]`. The values have no position.
/// Errors: a description of the error.
std::expected<RawValue, std::string> parse_toml_value(std::string_view text);

/// Returns `server.toml:12:8`, or `source` alone if the value is not in a file.
std::string format_location(std::string_view source, Position position);

}  // namespace weir::config
