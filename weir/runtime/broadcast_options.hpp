// What can be chosen about a broadcast, with the defaults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

/// What becomes of a reader who has not read the oldest value when it must make room. Nobody waits
/// for it in any case, and it costs the others nothing.
enum class WhenSlow : std::uint8_t {
  /// Its next receive() fails once with Errc::limit_reached, and missed() tells how many values it
  /// has lost; the one after that goes on with the oldest value that is left.
  lag,
  /// It goes on with the oldest value that is left, and only missed() tells.
  drop_oldest,
  /// It is no reader any more: from its next receive() on, all fail with Errc::limit_reached.
  /// Nobody
  /// looks after it but itself: one that never receives again is counted as long as it subscribes,
  /// and as long the last values are kept.
  disconnect,
};

struct BroadcastOptions {
  std::size_t capacity = 256;  ///< values that are kept for readers; at least 1
  WhenSlow when_slow = WhenSlow::lag;
};

}  // namespace weir
