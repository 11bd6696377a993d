// A platform with the descriptors of the system and a clock that the test sets.
#pragma once

#include <chrono>

#include "weir/base/time.hpp"
#include "weir/loop/os/os_platform.hpp"

namespace weir::loop {

/// A platform with the descriptors of the system, whose time is set by the test.
class StoppedClockPlatform final : public OsPlatform {
 public:
  Instant now() noexcept override { return moment; }
  Instant moment{std::chrono::hours(1)};
};

}  // namespace weir::loop
