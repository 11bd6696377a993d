// The settings of the peer (RFC 9113 §6.5), and when those of a session take effect.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "weir/http/detail/h2/session.hpp"

namespace weir::http {

bool H2Session::on_setting(const FrameEvent& frame, H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  switch (frame.setting) {
    case SettingId::header_table_size:
      peer_.header_table_size = frame.value;
      peer_.header_table_size_min = std::min(peer_.header_table_size_min, frame.value);
      return false;
    case SettingId::enable_push:
      // A server must not allow a client to push.
      if (frame.value <= (role_ == H2Role::server ? 1U : 0U)) return false;
      break;
    case SettingId::max_concurrent_streams:
      peer_.max_concurrent_streams = frame.value;
      return false;
    case SettingId::initial_window_size:
      return set_initial_window(frame.value, event);
    case SettingId::max_frame_size:  // Weir sends no frame that is larger than the least value
      if (frame.value >= frame_payload_default && frame.value <= frame_payload_max) return false;
      break;
    case SettingId::max_header_list_size:
      peer_.max_header_list_size = frame.value;
      return false;
    case SettingId::enable_connect_protocol:
      if (frame.value > 1 || (frame.value == 0 && peer_.connect_protocol)) break;
      peer_.connect_protocol = frame.value == 1;
      return false;
    case SettingId::no_rfc7540_priorities:
      if (frame.value > 1) break;  // later SETTINGS must not change it (RFC 9218 §2.1)
      if (settings_received_ && peer_.no_rfc7540_priorities != (frame.value == 1)) break;
      peer_.no_rfc7540_priorities = frame.value == 1;
      return false;
    default:
      return false;
  }
  return fail_with(H2Error::protocol_error, event);
}

/// Changes the windows of all open streams by the difference (RFC 9113 §6.9.2).
bool H2Session::set_initial_window(std::uint32_t value, H2Event& event) {
  if (value > window_max) return fail_with(H2Error::flow_control_error, event);
  work_.spend_on_frames(static_cast<std::int32_t>(open_ / WorkUnits::streams_per_frame));
  const std::int64_t change = std::int64_t{value} - std::exchange(peer_.initial_window_size, value);
  for (H2Stream* each : buckets()) {
    for (; each != nullptr; each = each->next_in_bucket_) {
      const std::int64_t window = each->send_window_ + change;
      if (window > window_max) return fail_with(H2Error::flow_control_error, event);
      each->send_window_ = static_cast<std::int32_t>(window);
      link_sender(*each);
    }
  }
  return false;
}

bool H2Session::on_settings_end(H2Event& event) {
  work_.spend_on_frames(WorkUnits::frame);
  settings_received_ = true;
  send_settings_ack();
  event.kind = H2Event::Kind::settings;
  return true;
}

/// Gives all open streams the window that the peer knows from now on.
void H2Session::on_settings_ack() noexcept {
  work_.spend_on_frames(WorkUnits::frame);
  if (std::exchange(settings_acked_, true)) return;
  const auto change =
      static_cast<std::int32_t>(std::int64_t{limits_.stream_window} - std::int64_t{window_default});
  for (H2Stream* each : buckets()) {
    for (; each != nullptr; each = each->next_in_bucket_) {
      each->receive_window_ += change;
    }
  }
}

}  // namespace weir::http
