// Reads a configuration from arguments and the environment: `--server.port`, APP_SERVER_PORT.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/source/error.hpp"
#include "weir/config/source/sources.hpp"
#include "weir/config/type/detail/type.hpp"

namespace weir::config {

/// An Option is a value that can be given alone, thus every field that is not a struct.
struct Option {
  std::vector<std::string> path;  ///< The names from the outermost struct inwards.
  const Type* type = nullptr;
  std::string_view help;

  /// Returns the key, such as `server.port`.
  std::string key() const;
  /// Returns the variable's name, such as APP_SERVER_PORT for the prefix APP.
  std::string variable(std::string_view prefix) const;
};

/// Returns all options of `section`, in the order of declaration.
std::vector<Option> options_of(const SectionType& section);

/// Returns the option that `key` names, if any. A part of `key` may be a user's name in a map.
std::optional<Option> find_option(const SectionType& section, std::string_view key);

/// Fills `value` from the environment variables that have the prefix; an unknown one is an error.
void fill_from_environment(const SectionType& section, void* value, const Sources& sources,
                           Errors& errors);

/// Fills `value` from the arguments, `--key value` or `--key=value`. A bool's `--flag` without a
/// value is true. A list's option may be given several times. A value that begins with two hyphens
/// needs the `=`.
void fill_from_arguments(const SectionType& section, void* value, const Sources& sources,
                         Errors& errors);

/// Returns the text of `--help`: every option with its type, its help and its default. The
/// defaults are taken from `defaults`, a value of the section's type.
std::string help_text(const SectionType& section, const void* defaults, const Sources& sources);

}  // namespace weir::config
