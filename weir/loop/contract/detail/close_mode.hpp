// The way in which a stream is closed: an end that is complete, or one that is visibly not.
#pragma once

#include <cstdint>

namespace weir {

/// What the peer of a stream sees when the stream is closed.
enum class CloseMode : std::uint8_t {
  orderly,  ///< the end of the stream, behind all bytes that were sent
  /// A reset, which no peer takes for the end of a message. Bytes that the kernel has not sent yet
  /// are lost.
  reset,
};

}  // namespace weir
