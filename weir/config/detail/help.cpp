// Prints the page of --help from the fields of the struct.
#include <algorithm>
#include <string>
#include <utility>

#include "weir/config/detail/command_line.hpp"

namespace weir::config {
namespace {

constexpr std::size_t left_columns_max = 38;

struct Line {
  std::string left;
  std::string right;
};

std::string description(const Option& option, const void* value) {
  std::string text(option.help);
  if (!text.empty()) text += "; ";
  text += option.type->expected() + " (default: ";
  if (value == nullptr) {
    text += "none";
  } else {
    option.type->write(text, value);
  }
  return text + ")";
}

void add_lines(const SectionType& section, const void* value, const std::string& prefix,
               std::vector<Line>& lines) {
  const auto fields = section.fields();
  for (std::size_t index = 0; index < fields.size(); ++index) {
    const Field& field = fields[index];
    const Type& type = field.type();
    const void* const member = value == nullptr ? nullptr : section.member(value, index);
    const std::string key = prefix + std::string(field.name);
    if (const SectionType* const inner = type.section()) {
      add_lines(*inner, member == nullptr ? nullptr : type.unwrap_optional(member), key + ".",
                lines);
      continue;
    }
    Line line{"--" + key, description({{}, &type, field.help}, member)};
    const MapType* const map = type.map();
    if (map != nullptr && map->value_type().section() == nullptr) {
      line.left += ".NAME " + map->value_type().placeholder();
    } else {
      line.left += " " + type.placeholder();
    }
    lines.push_back(std::move(line));
  }
}

std::string config_option_help(const Sources& sources) {
  std::string text = "a TOML file with these keys";
  if (!sources.prefix.empty()) text += ", also " + to_variable_name(sources.prefix) + "_CONFIG";
  return text + " (default: " + (sources.file.empty() ? "none" : sources.file) + ")";
}

}  // namespace

std::string help_text(const SectionType& section, const void* defaults, const Sources& sources) {
  std::vector<Line> lines;
  add_lines(section, defaults, "", lines);
  lines.push_back({"--config FILE", config_option_help(sources)});
  lines.push_back({"--help", "shows this help"});
  std::size_t width = 0;
  for (const Line& line : lines) {
    if (line.left.size() <= left_columns_max) width = std::max(width, line.left.size());
  }
  std::string text = "usage: " + (sources.program.empty() ? "PROGRAM" : sources.program) +
                     " [--KEY VALUE | --KEY=VALUE]...\n\n";
  for (const Line& line : lines) {
    text.append("  ").append(line.left);
    if (line.left.size() > width) {
      text.append("\n").append(width + 4, ' ');
    } else {
      text.append(width - line.left.size() + 2, ' ');
    }
    text.append(line.right).append("\n");
  }
  text += "\nThe command line overrides the environment";
  if (!sources.prefix.empty()) {
    text += " (" + to_variable_name(sources.prefix) + "_SECTION_KEY)";
  }
  return text + ", which overrides the file.\n";
}

}  // namespace weir::config
