// Selects and reads the file of a configuration.
#include "weir/config/source/sources.hpp"

#include <algorithm>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/config/source/detail/raw_value.hpp"

namespace weir::config {
namespace {

constexpr std::string_view file_option = "--config";

std::vector<std::string> to_strings(char* const* null_terminated) {
  std::vector<std::string> all;
  for (; *null_terminated != nullptr; ++null_terminated) all.emplace_back(*null_terminated);
  return all;
}

Result<std::string> read_all(loop::FileSystem& files, const std::string& path,
                             std::size_t bytes_max) {
  WEIR_TRY(const auto file, files.open(path, {}));
  std::string text;
  for (;;) {
    constexpr std::size_t chunk_bytes = 16 * 1024;
    const std::size_t before = text.size();
    text.resize(before + chunk_bytes);
    const MutableBytes room(reinterpret_cast<std::byte*>(text.data()) + before, chunk_bytes);
    WEIR_TRY(const auto count, files.read_at(file.value(), room, before));
    text.resize(before + count);
    if (count == 0) return text;
    if (text.size() > bytes_max) return fail(Errc::limit_reached);
  }
}

}  // namespace

Sources Sources::from_main(char* const* arguments, char* const* environment) {
  Sources sources;
  sources.arguments = to_strings(arguments);
  if (!sources.arguments.empty()) {
    sources.program = std::move(sources.arguments.front());
    sources.arguments.erase(sources.arguments.begin());
  }
  sources.environment = to_strings(environment);
  return sources;
}

bool is_help_requested(const Sources& sources) noexcept {
  return std::ranges::find(sources.arguments, "--help") != sources.arguments.end();
}

FileChoice choose_file(const Sources& sources) {
  const std::string option_with_value = std::string(file_option) + "=";
  for (std::size_t index = 0; index < sources.arguments.size(); ++index) {
    const std::string& argument = sources.arguments[index];
    if (argument.starts_with(option_with_value)) {
      return {argument.substr(option_with_value.size()), true};
    }
    if (argument != file_option || index + 1 == sources.arguments.size()) continue;
    return {sources.arguments[index + 1], true};
  }
  if (!sources.prefix.empty()) {
    const std::string variable = to_variable_name(sources.prefix) + "_CONFIG=";
    for (const std::string& each : sources.environment) {
      if (each.starts_with(variable)) return {each.substr(variable.size()), true};
    }
  }
  return {sources.file, false};
}

FileText read_file(loop::FileSystem& files, const Sources& sources) {
  FileChoice choice = choose_file(sources);
  FileText file;
  if (choice.path.empty() && !choice.required) return file;
  file.path = std::move(choice.path);
  auto text = read_all(files, file.path, sources.file_bytes_max);
  if (text) {
    file.text = std::move(*text);
  } else if (choice.required || text.error() != std::errc::no_such_file_or_directory) {
    file.error = text.error();
  }
  return file;
}

std::optional<Error> error_of(const FileText& file) {
  if (!file.error) return std::nullopt;
  const std::string path = file.path.empty() ? "the file" : file.path;
  return Error{path, "", "cannot be read: " + file.error.message()};
}

}  // namespace weir::config
