// The pages about the configuration and the log levels of a program.
#include "weir/admin/detail/pages/runtime_pages.hpp"

#include <algorithm>

#include "weir/log/detail/record.hpp"

namespace weir::admin {
namespace {

constexpr std::string_view others = "(all others)";

std::vector<std::string> level_names() {
  std::vector<std::string> names;
  for (const auto& each : json::enumerators<LogLevel>) names.emplace_back(each.name);
  return names;
}

}  // namespace

Page configuration_page(const std::vector<config::ShownValue>& values) {
  Page page{.name = "configuration", .title = "Configuration"};
  page.note = "Each value with the last source that mentions it. Secrets are hidden.";
  Section table{.key = "values", .when_empty = "The program has no configuration."};
  table.columns = {{"key", "key"}, {"value", "value"}, {"origin", "origin"}};
  for (const config::ShownValue& each : values) {
    table.rows.push_back({each.key, each.value, each.origin});
  }
  page.sections.push_back(std::move(table));
  return page;
}

Page log_levels_page(const LogService& logs) {
  Page page{.name = "log_levels", .title = "Log levels"};
  const LogReport report = logs.report();
  Section records{.key = "records", .title = "Records"};
  records.facts = {
      {"written", "written", Cell::number(report.written)},
      {"dropped", "dropped",
       Cell::number(report.dropped).with(report.dropped > 0 ? Tone::warning : Tone::plain)},
      {"failed", "failed",
       Cell::number(report.failed).with(report.failed > 0 ? Tone::bad : Tone::plain)}};
  page.sections.push_back(std::move(records));
  Section table{.key = "levels", .title = "Loggers"};
  table.note = "A level holds until the program ends or sets its levels again.";
  table.columns = {{"name", "name"}, {"level", "level"}};
  const std::vector<std::string> names = level_names();
  for (const auto& [name, level] : logs.levels()) {
    table.rows.push_back({name.empty() ? std::string(others) : name, std::string(name_of(level))});
    table.forms.push_back({.action = "log_levels",
                           .hidden = {{"name", name}},
                           .choice = "level",
                           .choices = names,
                           .chosen = std::string(name_of(level)),
                           .label = "Set"});
  }
  page.sections.push_back(std::move(table));
  return page;
}

http::Response set_log_level(LogService& logs, const LevelForm& form) {
  const auto levels = logs.levels();
  const auto is_named = [&](const auto& each) { return each.first == form.name; };
  if (std::ranges::none_of(levels, is_named)) return http::Status::not_found;
  logs.set_level(form.name, form.level);
  return http::redirect("/weir/log_levels");
}

}  // namespace weir::admin
