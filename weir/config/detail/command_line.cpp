#include "weir/config/detail/command_line.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace weir::config {
namespace {

constexpr std::string_view hyphens = "--";

void add_options(const SectionType& section, const std::vector<std::string>& above,
                 std::vector<Option>& all) {
  for (const Field& field : section.fields()) {
    Option option{above, &field.type(), field.note};
    option.path.emplace_back(field.name);
    if (const SectionType* const inner = option.type->section()) {
      add_options(*inner, option.path, all);
    } else {
      all.push_back(std::move(option));
    }
  }
}

/// What `rest` names in a type that is reached by the path of `option`, which grows.
bool descend(Option& option, std::string_view rest) {
  if (const SectionType* const section = option.type->section()) {
    for (const Field& field : section->fields()) {
      if (!rest.starts_with(field.name)) continue;
      const std::string_view behind = rest.substr(field.name.size());
      if (!behind.empty() && behind.front() != '.') continue;
      option.path.emplace_back(field.name);
      option.type = &field.type();
      option.note = field.note;
      if (behind.empty()) return option.type->section() == nullptr;
      return descend(option, behind.substr(1));
    }
    return false;
  }
  const MapType* const map = option.type->map();
  if (map == nullptr || rest.empty()) return false;
  option.type = &map->inner();
  // The names of values may have dots in them, those of structs not.
  if (option.type->section() == nullptr) {
    option.path.emplace_back(rest);
    return true;
  }
  const std::size_t dot = rest.find('.');
  if (dot == rest.npos) return false;
  option.path.emplace_back(rest.substr(0, dot));
  return descend(option, rest.substr(dot + 1));
}

/// What the command line has said of one option.
struct Said {
  Option option;
  Given given;
};

/// Adds the elements of one more `--list value`.
bool add_elements(Given& to, std::string_view text) {
  if (to.kind == Given::Kind::bare) {
    auto list = ListType::split(to.text);
    if (!list) return true;  // it is told when the list is filled
    to = std::move(*list);
  }
  auto more = ListType::split(text);
  if (!more) return false;
  std::ranges::move(more->items, std::back_inserter(to.items));
  return true;
}

/// Takes the arguments one after the other.
class Arguments {
 public:
  Arguments(const SectionType& section, const Sources& sources, Errors& errors)
      : section_(section), arguments_(sources.arguments), errors_(errors) {}

  const std::vector<Said>& said() const noexcept { return said_; }

  void take_all() {
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_++];
      if (!argument.starts_with(hyphens) || argument == hyphens) {
        errors_.add({"argument " + shown(argument), "", "expected an option that begins with --"});
      } else if (argument != "--help") {
        take(argument.substr(hyphens.size()));
      }
    }
  }

 private:
  void take(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != argument.npos) {
      value = argument.substr(equals + 1);
    } else if (next_ < arguments_.size() && !arguments_[next_].starts_with(hyphens)) {
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
    note(*option, *value);
  }

  void note(const Option& option, std::string_view value) {
    const auto before = std::ranges::find_if(
        said_, [&](const Said& each) { return each.option.path == option.path; });
    if (before == said_.end()) {
      said_.push_back({option, Given::bare(value)});
    } else if (!option.type->is_list()) {
      fail(option.key(), "given twice");
    } else if (!add_elements(before->given, value)) {
      fail(option.key(), "expected " + option.type->expected() + ", found " + shown(value));
    }
  }

  void fail_unknown(std::string_view key) {
    const std::vector<Option> options = options_of(section_);
    std::vector<std::string> keys;
    for (const Option& each : options) keys.push_back(each.key());
    keys.insert(keys.end(), {"config", "help"});
    const std::vector<std::string_view> known(keys.begin(), keys.end());
    fail(key, unknown(key, known, hyphens));
  }

  void fail(std::string_view key, std::string what) {
    const std::string name = shown_name(key);
    errors_.add({"argument --" + name, name, std::move(what)});
  }

  const SectionType& section_;
  const std::vector<std::string>& arguments_;
  Errors& errors_;
  std::size_t next_ = 0;
  std::vector<Said> said_;
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
  for (char& each : variable) {
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
    const bool plain = (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9');
    if (!plain) each = '_';
  }
  return variable;
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
                "the same name stands for " + other->second.key() + ": rename one of the fields"});
  }
  std::vector<std::string_view> known;
  for (const auto& [variable, option] : options) known.push_back(variable);
  const std::string beginning = sources.prefix + "_";
  for (const std::string_view each : sources.environment) {
    const std::size_t equals = each.find('=');
    if (!each.starts_with(beginning) || equals == each.npos) continue;
    const std::string_view variable = each.substr(0, equals);
    if (variable == beginning + "CONFIG") continue;
    const auto option = options.find(variable);
    const std::string source = "environment " + shown_name(variable);
    if (option == options.end()) {
      errors.add({source, "", unknown(variable, known)});
      continue;
    }
    Filling filling(errors, source);
    section.fill(Given::nested(option->second.path, Given::bare(each.substr(equals + 1))), value,
                 filling);
  }
}

void fill_from_arguments(const SectionType& section, void* value, const Sources& sources,
                         Errors& errors) {
  Arguments arguments(section, sources, errors);
  arguments.take_all();
  for (const Said& each : arguments.said()) {
    const std::string source = "argument --" + shown_name(each.option.key());
    Filling filling(errors, source);
    section.fill(Given::nested(each.option.path, each.given), value, filling);
  }
}

}  // namespace weir::config
