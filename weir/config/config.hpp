// Loads a configuration, which is a plain struct, from a TOML file, the environment and arguments.
//
// A struct is filled in this order: its own initialisers, the file, the environment, the command
// line. A later source overrides the values that it mentions, and keeps all others. An array is
// replaced as a whole.
//
//     struct Server { Endpoint listen = Endpoint::any(8080); Duration idle_timeout = 30s; };
//     struct Settings { std::string name = "weir"; Server server; std::vector<Endpoint> peers; };
//
//     int main(int, char** argv, char** environment) {
//       auto sources = config::Sources::from_main(argv, environment);
//       sources.file = "weir.toml";
//       sources.prefix = "WEIR";
//       OsPlatform platform;
//       const auto settings = config::load_or_exit<Settings>(platform.files(), sources);
//
// The key `server.idle_timeout` is then a key of [server] in the file, WEIR_SERVER_IDLE_TIMEOUT in
// the environment, and --server.idle_timeout on the command line. The C++ type of a field defines
// the values that it takes:
//
//     a struct with public fields only  a section, also in std::optional (then it may be missing)
//     bool                              true or false
//     integers, float, double           numbers; an integer that does not fit exactly is an error
//     std::string                       a string
//     enums                             the names of json::enumerators
//     std::chrono durations             "250ms", "5s", "1h30min"; never rounded
//     std::chrono::sys_time             2026-11-25T22:14:43Z, with or without quotes (RFC 3339)
//     std::filesystem::path             a string without NUL
//     ByteSize                          "64KiB", "1.5MiB", 1000
//     Endpoint                          "127.0.0.1:8080", "[::1]:80", "unix:/run/a.sock"
//     std::optional                     the type in it; empty if no source gives a value
//     Checked<T, rule::Range<1, 5>>     a T that satisfies rules: see weir/json/checked.hpp
//     std::vector                       an array; outside of files `a,b,c`, or TOML: `["a", "b"]`
//     std::map from std::string         a table with keys of the user's choice
//
// Each field may be missing in all sources, and then keeps its initialiser. A struct has the limits
// of json.hpp: at most 32 fields, and names from json::renames. The variable config::field_help
// adds help texts. Loading reports all errors together, each with its source, line and key. An
// unknown key is an error too, and its message suggests the nearest known name. Nothing here reads
// the process environment: main() passes it in. See reload.hpp for a file that changes while the
// program runs.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/config/detail/command_line.hpp"
#include "weir/config/source/error.hpp"
#include "weir/config/source/sources.hpp"
#include "weir/config/type/detail/type_of.hpp"

namespace weir::config {

/// A T, or all errors that were found.
template <class T>
class [[nodiscard]] LoadResult : public std::expected<T, Errors> {
 public:
  using Base = std::expected<T, Errors>;
  using Base::Base;
  LoadResult(Base base) : Base(std::move(base)) {}
};

namespace detail {

/// Fills `value` from all sources.
/// Returns: the errors that were found.
Errors fill(const SectionType& section, void* value, const FileText& file, const Sources& sources);
[[noreturn]] void exit_with_help(const std::string& help);
[[noreturn]] void exit_with_errors(const Errors& errors, const Sources& sources);

/// Returns the type of the whole configuration T.
template <class T>
const SectionType& root_type() noexcept {
  const SectionType* const section = type_of<T>().section();
  static_assert(std::is_base_of_v<SectionType, typename TypeOf<T>::type>,
                "weir::config: a configuration is a struct");
  static_assert(std::ranges::none_of(
                    json::detail::names<T>,
                    [](std::string_view name) { return name == "config" || name == "help"; }),
                "weir::config: --config and --help are reserved");
  return *section;
}

}  // namespace detail

/// Loads a T: its own initialisers, then `file`, then the environment and arguments in `sources`.
/// Errors: all errors that were found; the T is then discarded.
template <class T>
LoadResult<T> load(const FileText& file, const Sources& sources) {
  LoadResult<T> loaded{T{}};
  Errors errors = detail::fill(detail::root_type<T>(), &*loaded, file, sources);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return loaded;
}

/// Loads a T from the file that `sources` name, the environment and the arguments. The call blocks
/// while it reads the file, so main() calls it before loops run. The caller handles `--help`; see
/// is_help_requested().
/// Errors: all errors that were found, including a file that cannot be read.
template <class T>
LoadResult<T> load(loop::FileSystem& files, const Sources& sources) {
  return load<T>(read_file(files, sources), sources);
}

/// Returns the text that `--help` prints for a T.
template <class T>
std::string help(const Sources& sources) {
  const T defaults{};
  return help_text(detail::root_type<T>(), &defaults, sources);
}

/// Loads a T in main(). Prints the help and exits with 0 if `--help` is given. Prints all errors
/// and exits with 2 if there are any.
template <class T>
T load_or_exit(loop::FileSystem& files, const Sources& sources) {
  if (is_help_requested(sources)) detail::exit_with_help(help<T>(sources));
  auto loaded = load<T>(files, sources);
  if (!loaded) detail::exit_with_errors(loaded.error(), sources);
  return std::move(*loaded);
}

}  // namespace weir::config
