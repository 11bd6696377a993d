// Errors of a configuration: all that were found, each with its source and key.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct Error {
  /// The source: `server.toml:12:8`, `environment APP_PORT`, `argument --port`, or a file's path
  /// alone.
  std::string source;
  /// The key, such as `server.port`; empty if the error is about the whole source.
  std::string key;
  /// The description, such as `expected an integer from 0 to 65535, found "http"`. Quoted input is
  /// cut to a bounded length and has no control characters, so it is safe to show and to log.
  std::string what;

  /// Returns the text, such as `server.toml:12:8: server.port: expected …`.
  std::string message() const;
};

/// The errors in the order in which they were found: file, environment, command line.
struct Errors {
  static constexpr std::size_t errors_max = 100;

  std::vector<Error> all;
  std::size_t omitted = 0;  ///< The number of errors beyond errors_max, which are only counted.

  bool empty() const noexcept { return all.empty(); }
  void add(Error error);
  /// Returns one line for each error, without a newline at the end.
  std::string message() const;
};

/// Returns the beginning of `text` in quotes, with escapes for control characters.
std::string quote(std::string_view text);
/// Returns a short name of letters, digits and `_.-` as it is, and any other name as quote() does.
std::string quote_unless_plain(std::string_view name);

/// Returns the name of `known` that is most similar to `wrong`; empty if no name is similar
/// enough. The limit is one letter, or a third of all letters, wrong, missing, added or swapped.
/// Upper and lower case are equal, and so are hyphens and underscores.
std::string_view closest_match(std::string_view wrong, const std::vector<std::string_view>& known);

/// Returns `unknown; did you mean PREFIXserver.port?`, or a list of the known names if there are
/// few.
std::string unknown_name_message(std::string_view wrong, const std::vector<std::string_view>& known,
                                 std::string_view prefix = {});

}  // namespace weir::config
