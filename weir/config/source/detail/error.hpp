// What is wrong with a configuration: all of it at once, each with the place to look at.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct Error {
  /// `server.toml:12:8`, `environment APP_PORT`, `argument --port`; or a file alone.
  std::string source;
  /// Such as `server.port`; empty where it is about the whole source.
  std::string key;
  /// Such as `expected an integer from 0 to 65535, found "http"`. What was given is cut to a
  /// bounded length and has no control characters, so that it may be shown and logged.
  std::string what;

  /// `server.toml:12:8: server.port: expected …`.
  std::string message() const;
};

/// In the order in which they were met: file, environment, command line.
struct Errors {
  static constexpr std::size_t errors_max = 100;

  std::vector<Error> all;
  std::size_t more = 0;  ///< beyond errors_max they are only counted

  bool empty() const noexcept { return all.empty(); }
  void add(Error error);
  /// A line for each, without a newline at the end.
  std::string message() const;
};

/// The beginning of `text` in quotes, with escapes for what cannot be seen.
std::string shown(std::string_view text);
/// The same without quotes if it is a short name of letters, digits and `_.-`.
std::string shown_name(std::string_view name);

/// That of `known` which somebody who wrote `wrong` most probably meant: a letter or two are wrong,
/// missing, too many or swapped, or capitals and hyphens differ. Empty where there is none.
std::string_view nearest(std::string_view wrong, const std::vector<std::string_view>& known);

/// `unknown; did you mean PREFIXserver.port?`, or the known ones if they are few.
std::string unknown(std::string_view wrong, const std::vector<std::string_view>& known,
                    std::string_view prefix = {});

}  // namespace weir::config
