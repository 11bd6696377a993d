#include "weir/config/source/detail/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

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

}  // namespace

bool is_secret(std::string_view key) noexcept {
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

bool has_secret_part(std::string_view text) noexcept {
  for (std::size_t at = text.find('='); at != text.npos; at = text.find('=', at + 1)) {
    std::size_t end = at;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"')) --end;
    std::size_t begin = end;
    while (begin > 0 && is_of_name(text[begin - 1])) --begin;
    if (is_secret(text.substr(begin, end - begin))) return true;
  }
  return false;
}

std::string without_secrets(std::string_view key, std::string text) {
  if (is_secret(key) || has_secret_part(text)) return "(hidden)";
  return without_credentials(std::move(text));
}

}  // namespace weir::config
