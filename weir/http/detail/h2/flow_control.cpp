#include "weir/http/detail/h2/flow_control.hpp"

namespace weir::http {

// A client returns less at a time, because few streams share its window.
FlowControl::FlowControl(H2Role role, const H2Limits& limits) noexcept
    : worth_(std::max(limits.connection_window, window_default) / 2),
      growth_left_(limits.connection_window / 2) {
  if (role == H2Role::client) worth_ = std::min(worth_, std::max(limits.stream_window / 2, 1U));
}

std::uint32_t FlowControl::open(const H2Limits& limits) noexcept {
  if (limits.connection_window <= window_default) return 0;
  const std::uint32_t increment = limits.connection_window - window_default;
  receive_ += static_cast<std::int32_t>(increment);
  return increment;
}

void FlowControl::grow(StreamWindows& stream, std::size_t count, std::uint64_t body_left) noexcept {
  const std::uint32_t window = stream.receive_full_;
  if (stream.returned_ + count < window / 2 || body_left <= window) return;
  constexpr auto largest = static_cast<std::uint32_t>(window_max);
  const std::uint32_t more = std::min({window, growth_left_, largest - window});
  growth_left_ -= more;
  stream.grown_ += more;
  stream.receive_full_ += more;
  stream.returned_ += more;
}

}  // namespace weir::http
