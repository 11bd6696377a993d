// Random bytes for secrets, also in a simulation.
#pragma once

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// Fills `target` with bytes from OpenSSL's random generator, that of the kernel without OpenSSL,
/// or the RandomSource of a simulation. Returns: false if the generator failed, in which case the
/// caller must not use the bytes. Threads: any.
[[nodiscard]] bool fill_random(MutableBytes target) noexcept;

/// Makes OpenSSL take its random numbers from the simulation of each thread that has one; see
/// RandomSource. Call it before a function of OpenSSL that makes keys, names or contexts. It has no
/// effect on a thread without a simulation, and sets nothing in a process without one.
/// Threads: any.
void use_simulated_random() noexcept;
/// Returns true if this thread runs a simulation.
bool in_simulation() noexcept;

}  // namespace weir::tls::detail
