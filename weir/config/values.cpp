#include "weir/config/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "weir/config/source/detail/toml.hpp"

namespace weir::config {
namespace {

constexpr std::array<std::string_view, 27> secret_words{
    "accesskey", "apikey", "auth",      "authorization", "cookie", "credential", "credentials",
    "dsn",       "jwt",    "key",       "keys",          "pass",   "passphrase", "passwd",
    "password",  "pin",    "private",   "privatekey",    "pwd",    "secret",     "secretkey",
    "secrets",   "sig",    "signature", "signingkey",    "token",  "tokens"};
// A word that ends with one of these is secret too, such as "dbpassword".
constexpr std::array<std::string_view, 7> secret_endings{
    "apikey", "credentials", "passphrase", "passwd", "password", "secret", "token"};

bool is_upper(char each) noexcept {
  return each >= 'A' && each <= 'Z';
}
bool is_of_name(char each) noexcept {
  return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == '-';
}

/// Returns true if `text` in lower case is `lower`.
bool equal_lower(std::string_view text, std::string_view lower) noexcept {
  return std::ranges::equal(text, lower, [](char one, char other) {
    return std::tolower(static_cast<unsigned char>(one)) == other;
  });
}

/// Returns the size of the first word of a name: "db" of "db.key", "dbKey" and "db_key".
std::size_t first_word_size(std::string_view name) noexcept {
  for (std::size_t at = 1; at < name.size(); ++at) {
    if (!is_of_name(name[at]) || name[at] == '_' || name[at] == '-') return at;
    if (is_upper(name[at]) && !is_upper(name[at - 1])) return at;
  }
  return name.size();
}

/// Returns true if a value has a part with the name of a secret, such as the element of a list
/// `{user = "a", password = "b"}` or the argument of a URL `?token=a`.
bool has_secret_part(std::string_view text) noexcept {
  for (std::size_t at = text.find('='); at != text.npos; at = text.find('=', at + 1)) {
    std::size_t end = at;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"')) --end;
    std::size_t begin = end;
    while (begin > 0 && is_of_name(text[begin - 1])) --begin;
    if (is_secret_name(text.substr(begin, end - begin))) return true;
  }
  return false;
}

/// Hides `USER:PASSWORD@` behind the scheme of each URL in a text. A password may have characters
/// that belong to a path, because people forget to encode them.
std::string without_credentials(std::string text) {
  for (std::size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3)) {
    const std::size_t begin = at + 3;
    std::size_t end = std::min(text.find_first_of("/?#\"' ", begin), text.size());
    const std::string_view authority = std::string_view(text).substr(begin, end - begin);
    if (authority.contains(':') && !authority.contains('@')) {
      end = std::min(text.find_first_of("\"' ", begin), text.size());
    }
    const std::size_t sign = text.rfind('@', end == 0 ? 0 : end - 1);
    if (sign == text.npos || sign < begin) continue;
    text.replace(begin, sign - begin, "(hidden)");
  }
  return text;
}

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
    shown.is_secret = is_secret_name(key) || std::ranges::find(secrets_, key) != secrets_.end();
    if (shown.is_secret) {
      shown.value = "(hidden)";
    } else if (member != nullptr) {
      shown.value.clear();
      type.write(shown.value, member);
      shown.is_secret = has_secret_part(shown.value);
      shown.value = shown.is_secret ? "(hidden)" : without_credentials(std::move(shown.value));
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
  while (!key.empty()) {
    const std::string_view word = key.substr(0, first_word_size(key));
    const auto is_word = [word](std::string_view secret) { return equal_lower(word, secret); };
    const auto ends_with = [word](std::string_view secret) {
      return word.size() > secret.size() &&
             equal_lower(word.substr(word.size() - secret.size()), secret);
    };
    if (std::ranges::any_of(secret_words, is_word)) return true;
    if (std::ranges::any_of(secret_endings, ends_with)) return true;
    key.remove_prefix(word.size());
    while (!key.empty() && (key[0] == '.' || key[0] == '_' || key[0] == '-')) key.remove_prefix(1);
  }
  return false;
}

std::vector<ShownValue> detail::shown_values(const SectionType& section, const void* value,
                                             const FileText& file, const Sources& sources,
                                             const std::vector<std::string>& secrets) {
  return ValueList(file, sources, secrets).take(section, value);
}

}  // namespace weir::config
