// Which values are secrets, and must be in no page, message or log.
#pragma once

#include <string>
#include <string_view>

namespace weir::config {

/// Returns true if the key of a value says that it is a secret; see is_secret_name().
bool is_secret(std::string_view key) noexcept;

/// Returns true if a value has a part with the name of a secret, such as the element of a list
/// `{user = "a", password = "b"}` or the argument of a URL `?token=a`.
bool has_secret_part(std::string_view text) noexcept;

/// Returns the text of the value of `key` as it may be shown: "(hidden)" for a secret and for a
/// text with such a part. In other texts, the user and the password of URLs are hidden.
std::string without_secrets(std::string_view key, std::string text);

}  // namespace weir::config
