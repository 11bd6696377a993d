// The wall clock of the current loop, for the expiry of cookies.
#pragma once

#include <cassert>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http::detail {

/// Returns the wall time of the platform of the current loop.
/// Threads: a loop's.
inline WallTime wall_time() {
  assert(Loop::current() != nullptr);
  return Loop::current()->platform().wall_time();
}

}  // namespace weir::http::detail
