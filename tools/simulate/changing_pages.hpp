// Two HTTP services whose pages change while clients request them: their routes change directly,
// or with services that are replaced.
#pragma once

#include "tools/simulate/page_traffic.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/options.hpp"

namespace weir::simulate {

/// The functions are main functions, which serve on port 80 until the process is told to end.
/// The functions keep the state of the pages in `served`, which outlives their calls.

/// Adds, replaces and removes routes, and cancels some of these changes half way. A handler is
/// destroyed after its last request, before remove() or replace() returns.
int serve_changing_routes(loop::Platform& host, const RuntimeOptions& options, ServedPages& served);

/// Runs an app whose pages, one instance per core, depend on a version that is replaced. No
/// request gets 404 after the start, and no instance is destroyed before its last request.
int serve_changing_services(loop::Platform& host, const RuntimeOptions& options,
                            ServedPages& served);

}  // namespace weir::simulate
