// The uses of one turn of a loop by one connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::detail {

/// TurnUses counts what one connection does in one turn. Operations that finish immediately never
/// wait, so a fast peer could otherwise fill a turn.
/// Threads: the loop's.
class TurnUses {
 public:
  /// Counts one use, unless this turn has had `uses_max`, at most 255.
  /// Returns: true if the use is allowed; false if it must wait for the next turn.
  bool allow(const Loop& loop, std::uint8_t uses_max) noexcept {
    begin_turn(loop);
    if (uses_ >= uses_max) return false;
    ++uses_;
    return true;
  }
  /// Counts uses. Returns the number of uses of this turn, at most 255.
  std::uint8_t count(const Loop& loop, std::uint8_t uses) noexcept {
    begin_turn(loop);
    uses_ = static_cast<std::uint8_t>(std::min(uses_ + uses, 255));
    return uses_;
  }

 private:
  void begin_turn(const Loop& loop) noexcept {
    // The turn's number is cut to 16 bits. Two turns with one number cost only an unneeded wait.
    const auto turn = static_cast<std::uint16_t>(loop.counters().turns.value());
    if (std::exchange(turn_, turn) != turn) uses_ = 0;
  }

  std::uint16_t turn_ = 0;
  std::uint8_t uses_ = 0;
};

}  // namespace weir::detail
