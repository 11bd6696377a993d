// Policies of bounded queues that are full and of readers that are too slow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

/// The SlowReaderPolicy applies to a reader that has not read the oldest value when the ring
/// overwrites it. Publishers never wait for the reader, and it costs the other readers nothing.
enum class SlowReaderPolicy : std::uint8_t {
  /// The next receive() fails once with Errc::limit_reached, and missed() returns the number of
  /// lost values. The receive() after that continues with the oldest value that is left.
  lag,
  /// The reader continues with the oldest value that is left; only missed() shows the loss.
  drop_oldest,
  /// The subscription ends: its next receive() and all later ones fail with Errc::limit_reached.
  /// Its own receive() is what detects this. A subscriber that never calls receive() again is
  /// counted until it unsubscribes, and the last values are kept until then.
  disconnect,
};

/// BroadcastOptions sets the capacity of a Broadcast and its policy for slow readers.
struct BroadcastOptions {
  std::size_t capacity = 256;  ///< values that are kept for readers; at least 1
  SlowReaderPolicy slow_reader_policy = SlowReaderPolicy::lag;
};

/// The OverflowPolicy of a bounded queue decides what happens to an item that finds it full.
enum class OverflowPolicy : std::uint8_t {
  reject,  ///< fails with Errc::limit_reached
  wait,    ///< the sender waits for room, in the order of arrival
};

}  // namespace weir
