// Records a profile of all loops of a runtime.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/profiler.hpp"
#include "weir/profile/detail/stack_collection.hpp"
#include "weir/task/task.hpp"

namespace weir::profile {

struct RecordingOptions {
  Duration length = std::chrono::seconds(10);
  unsigned hertz = 99;
  std::string route = {};  ///< records only this route; empty: everything
};

using Recorded = std::expected<Profile, loop::ProfileError>;

/// Records a profile of all loops that run together with the loop of the task. It waits for at most
/// a second until all of them have begun. A drain ends it early. A thread of the shared pool looks
/// up the names.
/// Errors: those of PlatformProfiler::start_cpu_profile(), Errc::unsupported if the platform takes
/// no profiles, those of BlockingPool::run(), Errc::cancelled.
/// Cancel: ends the profile and returns Errc::cancelled within 100 ms.
Task<Recorded> record(RecordingOptions options);

}  // namespace weir::profile
