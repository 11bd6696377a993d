// Describes the sources of a configuration and reads its file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/config/source/error.hpp"
#include "weir/loop/contract/detail/file_system.hpp"

namespace weir::config {

/// Sources of a configuration: the struct's initialisers, the file, the environment and the
/// command line. A later source overrides an earlier one. Sources is a plain value.
struct Sources {
  std::string program;  ///< The program's name, for messages.
  /// The path of a TOML file, which may be missing. `--config FILE` and PREFIX_CONFIG name another
  /// file, which must exist.
  std::string file;
  /// The prefix of the environment variables: `server.port` is PREFIX_SERVER_PORT, in upper case
  /// for every prefix. If the prefix is empty, the environment is not read.
  std::string prefix;
  std::vector<std::string> environment;  ///< The variables as `NAME=value`, as in environ(7).
  std::vector<std::string> arguments;    ///< The arguments without the program's name.
  std::size_t file_bytes_max = std::size_t{1} << 20;

  /// Returns the sources that main() was given; the caller then sets `file` and `prefix`.
  static Sources from_main(char* const* arguments, char* const* environment);
};

/// Returns true if `--help` is one of the arguments.
bool is_help_requested(const Sources& sources) noexcept;

/// The file to read. `required` is true if the user named it for this run, so that it must exist.
/// The path is empty if there is no file.
struct FileChoice {
  std::string path;
  bool required = false;
};
FileChoice choose_file(const Sources& sources);

/// The content of the file, or the reason why there is none.
struct FileText {
  std::string path;                 ///< The path, for messages.
  std::optional<std::string> text;  ///< The content; nullopt if there is no file.
  std::error_code error;            ///< The reason why the file could not be read.
};

/// Reads the file that choose_file() selects. The call blocks.
FileText read_file(loop::FileSystem& files, const Sources& sources);

/// Returns the error of a file that could not be read; nullopt if there is none.
std::optional<Error> error_of(const FileText& file);

}  // namespace weir::config
