// Configuration: a plain struct, filled from its own initialisers, a TOML file, the environment and
// the command line, in this order; the later wins.
//
//   struct Server { Endpoint listen = Endpoint::any(8080); Duration idle_timeout = 30s; };
//   struct Settings { std::string name = "weir"; Server server; std::vector<Endpoint> peers; };
//
//   int main(int, char** argv, char** environment) {
//     auto sources = config::Sources::of_main(argv, environment);
//     sources.file = "weir.toml";
//     sources.prefix = "WEIR";
//     OsHost host;
//     const auto settings = config::load_or_exit<Settings>(host.files(), sources);
//
// `server.idle_timeout` is then a key of [server] in the file, WEIR_SERVER_IDLE_TIMEOUT in the
// environment, and --server.idle_timeout on the command line. What a C++ type is:
//
//   a struct with public fields only  a section, also in std::optional (then it may be missing)
//   bool                              true or false
//   integers, float, double           numbers; what does not fit exactly is an error
//   std::string                       a string
//   enums                             the names of json::enumerators
//   std::chrono durations             "250ms", "5s", "1h30min"; never rounded
//   ByteSize                          "64KiB", "1.5MiB", 1000
//   Endpoint                          "127.0.0.1:8080", "[::1]:80", "unix:/run/a.sock"
//   std::optional                     what is in it, or empty where nobody says anything
//   std::vector                       an array; elsewhere `a,b,c`, or as in TOML, `["a", "b"]`
//   std::map from std::string         a table with keys of the user's choice
//
// A struct is as json.hpp has it: at most 32 fields, names from json::renames. config::notes add to
// the help. Everything that is wrong is told at once, with file, line and key; what nobody knows is
// wrong too, and the nearest name is told. Nothing here reads the environment by itself: main()
// hands it over. For a file that changes while the program runs see config_live.hpp.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/config/source/detail/error.hpp"
#include "weir/config/detail/command_line.hpp"
#include "weir/config/source/detail/sources.hpp"
#include "weir/config/type/detail/type_of.hpp"

namespace weir::config {

/// A T, or all that was wrong.
template <class T>
class [[nodiscard]] Loaded : public std::expected<T, Errors> {
 public:
  using Base = std::expected<T, Errors>;
  using Base::Base;
  Loaded(Base base) : Base(std::move(base)) {}
};

namespace detail {

/// Fills `value` and says what was wrong.
Errors fill(const SectionType& section, void* value, const FileText& file, const Sources& sources);
[[noreturn]] void exit_with_help(const std::string& help);
[[noreturn]] void exit_with_errors(const Errors& errors, const Sources& sources);

/// The type of a whole configuration.
template <class T>
const SectionType& root_type() noexcept {
  const SectionType* const section = type_of<T>().section();
  static_assert(std::is_base_of_v<SectionType, typename TypeOf<T>::type>,
                "weir::config: a configuration is a struct");
  static_assert(std::ranges::none_of(
                    json::detail::names<T>,
                    [](std::string_view name) { return name == "config" || name == "help"; }),
                "weir::config: --config and --help are taken");
  return *section;
}

}  // namespace detail

/// A T made of its own initialisers, this file and what the sources say beside it.
template <class T>
Loaded<T> load(const FileText& file, const Sources& sources) {
  Loaded<T> loaded{T{}};
  Errors errors = detail::fill(detail::root_type<T>(), &*loaded, file, sources);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return loaded;
}

/// The same with the file that the sources name. Blocks as long as reading it does: for main(),
/// before loops run. `--help` is left to the caller; see asks_for_help().
template <class T>
Loaded<T> load(FileSystem& files, const Sources& sources) {
  return load<T>(read_file(files, sources), sources);
}

/// What `--help` prints for a T.
template <class T>
std::string help(const Sources& sources) {
  const T defaults{};
  return help_text(detail::root_type<T>(), &defaults, sources);
}

/// For main(): prints the help and exits with 0 for `--help`; prints all errors and exits with 2
/// if there are any.
template <class T>
T load_or_exit(FileSystem& files, const Sources& sources) {
  if (asks_for_help(sources)) detail::exit_with_help(help<T>(sources));
  auto loaded = load<T>(files, sources);
  if (!loaded) detail::exit_with_errors(loaded.error(), sources);
  return std::move(*loaded);
}

}  // namespace weir::config
