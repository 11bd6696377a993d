// TOML 1.0, read by toml++, which only the source sees.
#pragma once

#include <expected>
#include <string_view>

#include "weir/config/source/detail/error.hpp"
#include "weir/config/source/detail/raw_value.hpp"

namespace weir::config {

/// The whole text as a table, whose items stand in their order in the text. `source` is for the
/// error: what is no TOML is told with its place, the first of it only.
std::expected<Given, Error> parse_toml(std::string_view text, std::string_view source);

/// An array or an inline table on its own, such as `["a", "b"]`. The error says what is wrong.
std::expected<Given, std::string> parse_toml_value(std::string_view text);

/// `server.toml:12:8`, or the source alone for what is in no file.
std::string place(std::string_view source, Position position);

}  // namespace weir::config
