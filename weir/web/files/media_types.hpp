// The media types of files by the extension of their names.
#pragma once

#include <string_view>

#include "weir/http/message/body.hpp"

namespace weir::http {

/// The media type of files whose extension is unknown.
inline constexpr MediaType unknown_media_type = "application/octet-stream";

/// Returns the media type of a file by the last extension of its name, in any letter case. Texts
/// have the charset UTF-8.
/// Returns: unknown_media_type for an unknown extension, and for a name without one.
MediaType media_type_of(std::string_view name) noexcept;

/// Returns the part of a name behind its last dot; empty for a name such as ".profile".
std::string_view extension_of(std::string_view name) noexcept;

}  // namespace weir::http
