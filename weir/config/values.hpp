// The values of a configuration with their origins, for people. Secrets are hidden.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/config/config.hpp"
#include "weir/config/source/sources.hpp"
#include "weir/config/type/detail/type.hpp"

namespace weir::config {

/// A value of a configuration as a text.
struct ShownValue {
  std::string key = {};     ///< "server.port"
  std::string value = {};   ///< as in TOML; "(hidden)" for a secret
  std::string origin = {};  ///< "default", "shop.toml:12", "SHOP_SERVER_PORT" or "--server.port"
  bool is_secret = false;
};

/// Returns true if the name of a value says that it is a secret. A word of the key is then one of:
/// apikey, auth, authorization, credential, credentials, key, keys, pass, passphrase, passwd,
/// password, pin, private, pwd, secret, secrets, token, tokens. Dots, underscores, hyphens and
/// capital letters separate words.
bool is_secret_name(std::string_view key) noexcept;

namespace detail {
std::vector<ShownValue> shown_values(const SectionType& section, const void* value,
                                     const FileText& file, const Sources& sources,
                                     const std::vector<std::string>& secrets);
}  // namespace detail

/// Returns all values of `configuration`, which load() has filled from `file` and `sources`. Values
/// with the keys in `secrets`, and those with the names of is_secret_name(), are hidden. So are
/// lists, maps and texts with such a name before a "=". In other values, the user and the password
/// of a URL are hidden.
/// Threads: any.
template <class T>
std::vector<ShownValue> shown_values(const T& configuration, const FileText& file,
                                     const Sources& sources,
                                     const std::vector<std::string>& secrets = {}) {
  return detail::shown_values(detail::root_type<T>(), &configuration, file, sources, secrets);
}

}  // namespace weir::config
