// The report of the loops of one runtime, read by code that runs on one of them.
#pragma once

#include "weir/runtime/report.hpp"

namespace weir {

/// Returns the report of all loops that run together with `loop`. The members `up` and `cpu` are
/// not set, because only the Runtime knows them.
/// Threads: any, while the loops exist.
RuntimeReport report_on_group(Loop& loop);

}  // namespace weir
