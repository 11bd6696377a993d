// Requests of HTTP/2 as raw frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "weir/http/detail/h2/frame.hpp"

namespace weir::check {

/// The flags of HEADERS that are a whole request.
inline constexpr std::uint8_t h2_whole = http::FrameFlag::end_headers | http::FrameFlag::end_stream;

/// Returns the fields of a GET of the target's path: method, scheme, authority, path.
std::vector<H2Field> h2_get_fields(const CheckTarget& target);
/// Returns a GET of the target's path.
std::string h2_get(const CheckTarget& target, std::uint32_t stream);
/// Returns the head of a POST to the target's `post_path`. Its stream stays open.
std::string h2_post(const CheckTarget& target, std::uint32_t stream,
                    const std::vector<H2Field>& more = {});
std::string h2_number(std::uint32_t value);
std::string h2_repeated(std::string_view text, std::size_t count);
/// Returns SETTINGS with one entry.
std::string h2_setting(http::SettingId id, std::uint32_t value);
std::string h2_window_update(std::uint32_t stream, std::uint32_t increment);
std::string h2_rst_stream(std::uint32_t stream);
std::string h2_ping(std::string_view opaque = h2_last_ping);

}  // namespace weir::check
