// Classification of accept(2) errors, the same for every backend.
#pragma once

#include <chrono>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::loop {

enum class AcceptFailure : std::uint8_t {
  no_connection,    ///< no connection is waiting
  connection_gone,  ///< the connection has ended or its network failed; the listener works
  exhausted,        ///< descriptors or memory ran out; an immediate retry would fail again
  broken,           ///< the listener itself failed
};

/// Returns the class of `error`, an errno that is not 0.
AcceptFailure classify_accept(int error) noexcept;

/// Limits of the pause while accepting is exhausted. The pause doubles with each failure in a row.
constexpr Duration accept_pause_min = std::chrono::milliseconds(10);
constexpr Duration accept_pause_max = std::chrono::milliseconds(160);

/// Returns the pause that follows a pause of `last`. `last` is zero for the first failure.
Duration next_accept_pause(Duration last) noexcept;

}  // namespace weir::loop
