// Two HTTP services of which the pages change while they are asked for: their routes come and go by
// themselves, or with services that are replaced.
#pragma once

#include <string>

#include "weir/runtime/options.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir::simulate {

/// Main functions, which serve on port 80 until they are told to end. `fault`, which outlives them,
/// says what went wrong, if anything did.

/// Routes are added, replaced and removed, some of which is given up half way. A handler goes when
/// its last request has, before remove() or replace() returns.
int serve_changing_routes(Host& host, const RuntimeOptions& options, std::string& fault);

/// An app whose pages, one instance for each core, require a version that is replaced: from the
/// start on no request may meet 404, and no instance goes before its last request.
int serve_changing_services(Host& host, const RuntimeOptions& options, std::string& fault);

}  // namespace weir::simulate
