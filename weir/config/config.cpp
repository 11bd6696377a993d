// Fills a configuration from all sources, and ends the program with help or errors.
#include "weir/config/config.hpp"

#include <cstdio>
#include <cstdlib>

#include "weir/config/source/detail/toml.hpp"

namespace weir::config::detail {

Errors fill(const SectionType& section, void* value, const FileText& file, const Sources& sources) {
  Errors errors;
  if (auto error = error_of(file)) errors.add(std::move(*error));
  if (file.text) {
    if (const auto table = parse_toml(*file.text, file.path)) {
      FillContext context(errors, file.path);
      section.fill(*table, value, context);
    } else {
      errors.add(table.error());
    }
  }
  fill_from_environment(section, value, sources, errors);
  fill_from_arguments(section, value, sources, errors);
  return errors;
}

void exit_with_help(const std::string& help) {
  std::fputs(help.c_str(), stdout);
  std::exit(0);
}

void exit_with_errors(const Errors& errors, const Sources& sources) {
  std::fprintf(stderr, "%s\n", errors.message().c_str());
  std::fprintf(stderr, "%s: the configuration cannot be used (--help shows the keys)\n",
               sources.program.c_str());
  std::exit(2);
}

}  // namespace weir::config::detail
