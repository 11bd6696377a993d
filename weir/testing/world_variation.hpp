// How much the runs of a World differ from each other.
#pragma once

#include <cstddef>

#include "weir/base/time.hpp"

namespace weir {

/// What is drawn for each run, within the contracts of Backend, Host and TCP. Rates are between 0
/// (never) and 1 (always). The order in which cores have their turns is always drawn.
struct WorldVariation {
  double deferred = 0.3;    ///< operations that finish later although they could at once
  double partial = 0.25;    ///< receives and sends that move a part of what they could
  double cancelled = 0.5;   ///< of the operations that could finish as they are cancelled: those
                            ///< that do not
  double crowding = 0;      ///< connections that all go to one of those who share an address
  double late_turn = 0.01;  ///< turns before which a core rests, as if others had its CPU,
  Duration late_turn_max = std::chrono::milliseconds(20);  ///< for so long
  Duration delay_min = std::chrono::microseconds(20);      ///< of what travels between hosts
  Duration delay_max = std::chrono::milliseconds(2);
  double slow_parcel = 0.02;  ///< parcels that take up to
  Duration slow_parcel_max = std::chrono::milliseconds(400);
  double split = 0.2;                                ///< parcels that are cut somewhere
  std::size_t buffer_bytes_min = 2048;               ///< of a connection; at most those of its host
  Duration step_max = std::chrono::milliseconds(5);  ///< of a function in a blocking pool, and of
                                                     ///< an operation on a file
};

/// Everything happens at once, whole and in order; but parcels still take `delay_min`.
inline constexpr WorldVariation no_variation{
    .deferred = 0,
    .partial = 0,
    .cancelled = 0,
    .crowding = 0,
    .late_turn = 0,
    .late_turn_max = {},
    .delay_min = std::chrono::microseconds(100),
    .delay_max = std::chrono::microseconds(100),
    .slow_parcel = 0,
    .slow_parcel_max = {},
    .split = 0,
    .buffer_bytes_min = 0,
    .step_max = {},
};

}  // namespace weir
