// What a failed accept(2) means, the same for every backend.
#pragma once

#include <chrono>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir {

enum class AcceptFailure : std::uint8_t {
  nobody_waits,     ///< there is no connection now
  connection_gone,  ///< that one is over, or a network is in trouble; the listener is well
  exhausted,        ///< descriptors or memory ran out: it would fail again at once
  broken,           ///< the listener itself
};

/// Of an errno that is not 0.
AcceptFailure classify_accept(int error) noexcept;

/// How long accepting rests while it is exhausted: doubled each time in a row, between these.
constexpr Duration accept_pause_min = std::chrono::milliseconds(10);
constexpr Duration accept_pause_max = std::chrono::milliseconds(160);

/// The pause after one of `last`, which is zero when none came before.
Duration next_accept_pause(Duration last) noexcept;

}  // namespace weir
