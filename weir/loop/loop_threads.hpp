// Running loops, each on a thread of its own, while the calling thread looks after signals.
#pragma once

#include <span>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// Host::run() for an operating system; OsHost tells about threads and signals. `host` is for
/// telling the operator what a thread was refused.
Result<> run_on_threads(Host& host, std::span<const LoopPlace> places, RunControl* control);

}  // namespace weir
