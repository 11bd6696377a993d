// The keys of a configuration as they are named outside of files: `--server.port`, APP_SERVER_PORT.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/source/detail/error.hpp"
#include "weir/config/source/detail/sources.hpp"
#include "weir/config/type/detail/type.hpp"

namespace weir::config {

/// A value that can be given on its own: all that is no struct.
struct Option {
  std::vector<std::string> path;  ///< the names from the outermost struct inwards
  const Type* type = nullptr;
  std::string_view note;

  /// `server.port`.
  std::string key() const;
  /// APP_SERVER_PORT for the prefix APP.
  std::string variable(std::string_view prefix) const;
};

/// All of them, in the order of declaration.
std::vector<Option> options_of(const SectionType& section);

/// The one that `key` names; in a map that may be a name of the user's choice.
std::optional<Option> find_option(const SectionType& section, std::string_view key);

/// Gives `value` what each variable with the prefix says; one that means nothing is an error.
void fill_from_environment(const SectionType& section, void* value, const Sources& sources,
                           Errors& errors);

/// The same with `--key value` and `--key=value`. `--flag` alone is true; an option of a list may
/// come several times; a value that begins with two hyphens needs the `=`.
void fill_from_arguments(const SectionType& section, void* value, const Sources& sources,
                         Errors& errors);

/// What `--help` prints: every option with its type, its note and its default, which is taken from
/// `defaults`, a value of the section's type.
std::string help_text(const SectionType& section, const void* defaults, const Sources& sources);

}  // namespace weir::config
