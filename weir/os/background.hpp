// Letting a thread stand back behind the others of its process.
#pragma once

#include "weir/base/result.hpp"

namespace weir::os {

/// From now on the calling thread is one that computes in the background: whatever wakes up in the
/// process takes its CPU from it at once, it takes none from others when it wakes up itself, and
/// where it competes with a thread of the process's own niceness it has about a tenth of the CPU.
/// With CPUs to spare nothing changes. It is SCHED_BATCH, `niceness_more` above the process (never
/// below what that has), with slices of 5 ms: from Linux 6.12 on, a thread that wakes up need not
/// wait for the end of a slice that is longer than its own. What such a thread starts is the same.
/// Errors: those of sched_setattr(2), where a sandbox refuses it; then nothing has changed.
Result<> stand_back();

/// For stand_back(): about a factor of 1.25 each.
inline constexpr int niceness_more = 10;

}  // namespace weir::os
