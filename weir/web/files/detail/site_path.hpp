// Paths of a folder that is served, and patterns for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

enum class Dotfiles : std::uint8_t { hidden, served };

/// Decodes the path of a request below a folder, once. The result has no segment that is empty, "."
/// or "..", or contains '/', '\' or a zero byte; only the last one may be empty. Hidden dotfiles
/// are names that begin with a dot.
/// Returns: nullopt for any other path. The view refers to `raw`, or to `storage` if `raw` has
/// escapes.
std::optional<std::string_view> decode_site_path(std::string_view raw, Dotfiles dotfiles,
                                                 std::string& storage);

/// Returns true if the pattern of a CacheRule matches the path of a file.
bool matches_pattern(std::string_view pattern, std::string_view path) noexcept;

}  // namespace weir::http
