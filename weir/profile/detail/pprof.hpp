// Profiles in the format of pprof.
#pragma once

#include <string>

#include "weir/profile/detail/stack_collection.hpp"

namespace weir::profile {

/// Returns a message perftools.profiles.Profile, not compressed
/// (https://github.com/google/pprof/blob/main/proto/profile.proto). Its values are numbers of
/// samples and nanoseconds of CPU time. The labels of a sample are `core`, `route` and `coroutine`,
/// which is the function that the loop has called or resumed.
/// Errors: throws std::bad_alloc.
std::string to_pprof(const Profile& profile);

}  // namespace weir::profile
