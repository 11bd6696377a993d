#include "weir/http/detail/h2/limits.hpp"

#include <algorithm>

#include "weir/http/detail/h2/frame.hpp"

namespace weir::http {

// The least number of control bytes leaves room for the first SETTINGS and some answers. The least
// burst is enough for the frames with which usual clients begin.
H2Limits in_range(const H2Limits& limits) noexcept {
  constexpr std::uint32_t largest_window = window_max;
  constexpr std::uint32_t fields_max = 16 * 1024 * 1024;  // also the largest number of HeadLimits
  H2Limits out = limits;
  out.streams_max = std::clamp(out.streams_max, 1U, 1U << 30U);
  out.stream_window = std::clamp(out.stream_window, 1U, largest_window);
  out.connection_window = std::clamp(out.connection_window, window_default, largest_window);
  out.field_list_max = std::min(out.field_list_max, fields_max);
  // A peer may send what field_list_max announces. Its block is shorter, in frames of full length.
  out.block_bytes_max =
      std::clamp(std::max(out.block_bytes_max, out.field_list_max), 1024U, fields_max);
  constexpr std::uint32_t frames_max = 0xFFFE;  // block_frames_ has 16 bits
  const std::uint32_t frames = out.block_bytes_max / frame_payload_default + 1;
  out.block_frames_max = std::clamp(std::max(out.block_frames_max, frames), 1U, frames_max);
  out.control_bytes_max = std::max(out.control_bytes_max, 256U);
  out.output_max = std::max(out.output_max, 1U);
  out.work.burst = std::clamp(out.work.burst, 100, 1'000'000'000);
  out.work.refill_per_second = std::max(out.work.refill_per_second, 1);
  return out;
}

}  // namespace weir::http
