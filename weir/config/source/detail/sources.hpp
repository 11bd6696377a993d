// Where a configuration comes from, and the files' part of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/config/source/detail/error.hpp"
#include "weir/loop/contract/detail/file_system.hpp"

namespace weir::config {

/// What counts, and in which order: what the struct was made with, the file, the environment, the
/// command line; the later wins. A plain value.
struct Sources {
  std::string program;  ///< its name, for messages
  /// The path of a TOML file, which may be missing; `--config FILE` and PREFIX_CONFIG name another,
  /// which may not.
  std::string file;
  /// Of the variables that count: `server.port` is PREFIX_SERVER_PORT. Empty: none.
  std::string prefix;
  std::vector<std::string> environment;  ///< `NAME=value`, as environ(7) has them
  std::vector<std::string> arguments;    ///< without the program's name
  std::size_t file_bytes_max = std::size_t{1} << 20;

  /// What main() was given; file and prefix are still to be named.
  static Sources of_main(char* const* arguments, char* const* environment);
};

/// Whether `--help` is among them.
bool asks_for_help(const Sources& sources) noexcept;

/// The file that counts, and whether somebody has named it for this run, so that it must be there.
/// An empty path: there is none.
struct FileChoice {
  std::string path;
  bool named = false;
};
FileChoice choose_file(const Sources& sources);

/// What was in the file.
struct FileText {
  std::string path;                 ///< for messages
  std::optional<std::string> text;  ///< nullopt: there is none
  std::error_code error;            ///< why it could not be read
};

/// Reads the file that counts. Blocks as long as that takes.
FileText read_file(FileSystem& files, const Sources& sources);

/// What is wrong about a file that could not be read; nullopt where nothing is.
std::optional<Error> error_of(const FileText& file);

}  // namespace weir::config
