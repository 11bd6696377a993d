// What becomes of what comes when there is no room for it.
#pragma once

#include <cstdint>

namespace weir {

/// The answer of a bounded queue that is full.
enum class WhenFull : std::uint8_t {
  reject,  ///< Errc::limit_reached
  wait,    ///< whoever brought it waits for room, in the order of coming
};

}  // namespace weir
