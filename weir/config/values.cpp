#include "weir/config/values.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/config/source/detail/secret.hpp"
#include "weir/config/source/detail/toml.hpp"

namespace weir::config {
namespace {

const RawValue* item_of(const RawValue* table, std::string_view name) {
  if (table == nullptr) return nullptr;
  const auto found = std::ranges::find(table->items, name, &RawValue::name);
  return found == table->items.end() ? nullptr : &*found;
}

class ValueList {
 public:
  ValueList(const FileText& file, const Sources& sources, const std::vector<std::string>& secrets)
      : file_(file), sources_(sources), secrets_(secrets) {
    if (!file.text) return;
    if (auto table = parse_toml(*file.text, file.path)) table_ = std::move(*table);
  }

  std::vector<ShownValue> take(const SectionType& section, const void* value) {
    add(section, value, "", table_ ? &*table_ : nullptr);
    return std::move(values_);
  }

 private:
  void add(const SectionType& section, const void* value, const std::string& prefix,
           const RawValue* table) {
    const auto fields = section.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Type& type = fields[i].type();
      const void* const member = value == nullptr ? nullptr : section.member(value, i);
      const std::string key = prefix + std::string(fields[i].name);
      const RawValue* const raw = item_of(table, fields[i].name);
      if (const SectionType* const inner = type.section()) {
        add(*inner, member == nullptr ? nullptr : type.unwrap_optional(member), key + ".", raw);
      } else {
        add_value(key, type, member, raw);
      }
    }
  }

  void add_value(const std::string& key, const Type& type, const void* member,
                 const RawValue* raw) {
    ShownValue shown{.key = key, .value = "none", .origin = origin_of(key, raw)};
    shown.is_secret = is_secret(key) || std::ranges::find(secrets_, key) != secrets_.end();
    if (shown.is_secret) {
      shown.value = "(hidden)";
    } else if (member != nullptr) {
      shown.value.clear();
      type.write(shown.value, member);
      shown.is_secret = has_secret_part(shown.value);
      shown.value = without_secrets(key, std::move(shown.value));
    }
    values_.push_back(std::move(shown));
  }

  /// Returns the last source that mentions the key; an entry of a map counts as the map.
  std::string origin_of(const std::string& key, const RawValue* raw) const {
    const std::string option = "--" + key;
    for (const std::string& each : sources_.arguments) {
      if (each == option || each.starts_with(option + "=") || each.starts_with(option + ".")) {
        return option;
      }
    }
    if (!sources_.prefix.empty()) {
      const std::string variable = to_variable_name(sources_.prefix + "_" + key);
      for (const std::string& each : sources_.environment) {
        if (each.starts_with(variable + "=")) return variable;
      }
    }
    if (raw == nullptr) return "default";
    return file_.path + ":" + std::to_string(raw->name_position.line);
  }

  const FileText& file_;
  const Sources& sources_;
  const std::vector<std::string>& secrets_;
  std::optional<RawValue> table_;
  std::vector<ShownValue> values_;
};

}  // namespace

bool is_secret_name(std::string_view key) noexcept {
  return is_secret(key);
}

std::vector<ShownValue> detail::shown_values(const SectionType& section, const void* value,
                                             const FileText& file, const Sources& sources,
                                             const std::vector<std::string>& secrets) {
  return ValueList(file, sources, secrets).take(section, value);
}

}  // namespace weir::config
