// Reads a configuration from arguments and the environment.
#include "weir/config/detail/command_line.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "weir/config/source/detail/secret.hpp"

namespace weir::config {
namespace {

constexpr std::string_view option_prefix = "--";

void add_options(const SectionType& section, const std::vector<std::string>& prefix,
                 std::vector<Option>& all) {
  for (const Field& field : section.fields()) {
    Option option{prefix, &field.type(), field.help};
    option.path.emplace_back(field.name);
    if (const SectionType* const inner = option.type->section()) {
      add_options(*inner, option.path, all);
    } else {
      all.push_back(std::move(option));
    }
  }
}

/// Finds what `rest` names in the type of `option`, and extends the option's path.
/// Returns: true if `rest` names an option.
bool descend(Option& option, std::string_view rest) {
  if (const SectionType* const section = option.type->section()) {
    for (const Field& field : section->fields()) {
      if (!rest.starts_with(field.name)) continue;
      const std::string_view remainder = rest.substr(field.name.size());
      if (!remainder.empty() && remainder.front() != '.') continue;
      option.path.emplace_back(field.name);
      option.type = &field.type();
      option.help = field.help;
      if (remainder.empty()) return option.type->section() == nullptr;
      return descend(option, remainder.substr(1));
    }
    return false;
  }
  const MapType* const map = option.type->map();
  if (map == nullptr || rest.empty()) return false;
  option.type = &map->value_type();
  // The keys of plain values may contain dots; the keys of structs may not.
  if (option.type->section() == nullptr) {
    option.path.emplace_back(rest);
    return true;
  }
  const std::size_t dot = rest.find('.');
  if (dot == rest.npos) return false;
  option.path.emplace_back(rest.substr(0, dot));
  return descend(option, rest.substr(dot + 1));
}

/// The values that the command line gives to one option.
struct ParsedOption {
  Option option;
  RawValue raw;
};

/// Adds the elements of one more `--list value`.
bool add_elements(RawValue& to, std::string_view text) {
  if (to.kind == RawValue::Kind::untyped) {
    auto list = ListType::split(to.text);
    if (!list) return true;  // the error is reported when the list is filled
    to = std::move(*list);
  }
  auto more = ListType::split(text);
  if (!more) return false;
  std::ranges::move(more->items, std::back_inserter(to.items));
  return true;
}

/// Parses the arguments in order.
class ArgumentParser {
 public:
  ArgumentParser(const SectionType& section, const Sources& sources, Errors& errors)
      : section_(section), arguments_(sources.arguments), errors_(errors) {}

  const std::vector<ParsedOption>& parsed() const noexcept { return parsed_; }

  void parse() {
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_++];
      if (!argument.starts_with(option_prefix) || argument == option_prefix) {
        errors_.add({"argument " + quote(argument), "", "expected an option that begins with --"});
      } else if (argument != "--help") {
        parse_option(argument.substr(option_prefix.size()));
      }
    }
  }

 private:
  void parse_option(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != argument.npos) {
      value = argument.substr(equals + 1);
    } else if (next_ < arguments_.size() && !arguments_[next_].starts_with(option_prefix)) {
      value = arguments_[next_++];
    }
    if (key == "config") {
      if (!value) fail(key, "expected a path");
      return;
    }
    const auto option = find_option(section_, key);
    if (!option) return fail_unknown(key);
    if (!value && option->type->is_flag()) value = "true";
    if (!value) return fail(key, "expected " + option->type->expected() + ", found nothing");
    record(*option, *value);
  }

  void record(const Option& option, std::string_view value) {
    const auto before = std::ranges::find_if(
        parsed_, [&](const ParsedOption& each) { return each.option.path == option.path; });
    if (before == parsed_.end()) {
      parsed_.push_back({option, RawValue::untyped(value)});
    } else if (!option.type->is_list()) {
      fail(option.key(), "given twice");
    } else if (!add_elements(before->raw, value)) {
      fail(option.key(), "expected " + option.type->expected() + ", found " +
                             without_secrets(option.key(), quote(value)));
    }
  }

  void fail_unknown(std::string_view key) {
    const std::vector<Option> options = options_of(section_);
    std::vector<std::string> keys;
    for (const Option& each : options) keys.push_back(each.key());
    keys.insert(keys.end(), {"config", "help"});
    const std::vector<std::string_view> known(keys.begin(), keys.end());
    fail(key, unknown_name_message(key, known, option_prefix));
  }

  void fail(std::string_view key, std::string what) {
    const std::string name = quote_unless_plain(key);
    errors_.add({"argument --" + name, name, std::move(what)});
  }

  const SectionType& section_;
  const std::vector<std::string>& arguments_;
  Errors& errors_;
  std::size_t next_ = 0;
  std::vector<ParsedOption> parsed_;
};

}  // namespace

std::string Option::key() const {
  std::string key;
  for (const std::string& name : path) {
    if (!key.empty()) key += '.';
    key += name;
  }
  return key;
}

std::string Option::variable(std::string_view prefix) const {
  std::string variable(prefix);
  for (const std::string& name : path) variable.append("_").append(name);
  return to_variable_name(variable);
}

std::vector<Option> options_of(const SectionType& section) {
  std::vector<Option> all;
  add_options(section, {}, all);
  return all;
}

std::optional<Option> find_option(const SectionType& section, std::string_view key) {
  Option option{{}, &section, {}};
  if (!descend(option, key)) return std::nullopt;
  return option;
}

void fill_from_environment(const SectionType& section, void* value, const Sources& sources,
                           Errors& errors) {
  if (sources.prefix.empty()) return;
  std::map<std::string, Option, std::less<>> options;
  for (Option& each : options_of(section)) {
    std::string variable = each.variable(sources.prefix);
    std::string key = each.key();
    const auto [other, added] = options.try_emplace(std::move(variable), std::move(each));
    if (added) continue;
    errors.add({"environment " + other->first, std::move(key),
                "also the variable of " + other->second.key() + " (rename one of the fields)"});
  }
  std::vector<std::string_view> known;
  for (const auto& [variable, option] : options) known.push_back(variable);
  const std::string beginning = to_variable_name(sources.prefix) + "_";
  for (const std::string_view each : sources.environment) {
    const std::size_t equals = each.find('=');
    if (!each.starts_with(beginning) || equals == each.npos) continue;
    const std::string_view variable = each.substr(0, equals);
    if (variable == beginning + "CONFIG") continue;
    const auto option = options.find(variable);
    const std::string source = "environment " + quote_unless_plain(variable);
    if (option == options.end()) {
      errors.add({source, "", unknown_name_message(variable, known)});
      continue;
    }
    FillContext context(errors, source);
    section.fill(RawValue::nested(option->second.path, RawValue::untyped(each.substr(equals + 1))),
                 value, context);
  }
}

void fill_from_arguments(const SectionType& section, void* value, const Sources& sources,
                         Errors& errors) {
  ArgumentParser parser(section, sources, errors);
  parser.parse();
  for (const ParsedOption& each : parser.parsed()) {
    const std::string source = "argument --" + quote_unless_plain(each.option.key());
    FillContext context(errors, source);
    section.fill(RawValue::nested(each.option.path, each.raw), value, context);
  }
}

}  // namespace weir::config
