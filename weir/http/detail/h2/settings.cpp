#include "weir/http/detail/h2/settings.hpp"

#include <algorithm>
#include <utility>

namespace weir::http {

OwnSettings::OwnSettings(H2Role role, const H2Limits& limits) noexcept {
  add(SettingId::initial_window_size, limits.stream_window);
  add(SettingId::max_header_list_size, limits.field_list_max);
  if (role == H2Role::client) {
    add(SettingId::enable_push, 0);
  } else {
    add(SettingId::max_concurrent_streams, limits.streams_max);
    add(SettingId::no_rfc7540_priorities, 1);
    if (limits.connect_protocol) add(SettingId::enable_connect_protocol, 1);
  }
}

H2Settings::Applied H2Settings::apply(H2Role role, SettingId id, std::uint32_t value) noexcept {
  constexpr Applied invalid{.error = H2Error::protocol_error, .window_change = 0};
  switch (id) {
    case SettingId::header_table_size:
      peer_.header_table_size = value;
      peer_.header_table_size_min = std::min(peer_.header_table_size_min, value);
      return {};
    case SettingId::enable_push:
      // A server must not allow a client to push.
      return value <= (role == H2Role::server ? 1U : 0U) ? Applied() : invalid;
    case SettingId::max_concurrent_streams:
      peer_.max_concurrent_streams = value;
      return {};
    case SettingId::initial_window_size: {
      if (value > window_max) return {.error = H2Error::flow_control_error, .window_change = 0};
      const std::uint32_t before = std::exchange(peer_.initial_window_size, value);
      return {.error = H2Error::no_error, .window_change = std::int64_t{value} - before};
    }
    case SettingId::max_frame_size:  // Weir sends no frame that is larger than the least value
      return value >= frame_payload_default && value <= frame_payload_max ? Applied() : invalid;
    case SettingId::max_header_list_size:
      peer_.max_header_list_size = value;
      return {};
    case SettingId::enable_connect_protocol:
      if (value > 1 || (value == 0 && peer_.connect_protocol)) return invalid;
      peer_.connect_protocol = value == 1;
      return {};
    case SettingId::no_rfc7540_priorities:
      if (value > 1) return invalid;
      // Later SETTINGS must not change it (RFC 9218 §2.1).
      if (received_ && peer_.no_rfc7540_priorities != (value == 1)) return invalid;
      peer_.no_rfc7540_priorities = value == 1;
      return {};
    default:
      return {};
  }
}

bool H2Settings::on_acknowledged() noexcept {
  return !std::exchange(acknowledged_, true);
}

}  // namespace weir::http
