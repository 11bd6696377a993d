// The io_uring backend: Linux 6.1 and newer, completions all the way down.
#pragma once

#include <memory>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

struct UringOptions {
  /// Uses nothing that Linux 6.1 does not have, whatever the kernel offers; "uring:6.1".
  bool linux_6_1 = false;
};

/// A backend on a ring of its own. Everything that is started during a turn is submitted by the one
/// io_uring_enter(2) of its wait(); receiving and accepting stay armed in the kernel.
///
/// Threads: made on any thread; it belongs to the thread of its first wait(). It may be destroyed
/// on another one, when that thread has ended or uses it no more. Lifetime: `host` and `ready`
/// outlive it. Errors: the kernel's when it refuses io_uring (EPERM, ENOSYS, ENOMEM …);
/// Errc::unsupported when it is older than 6.1.
Result<std::unique_ptr<Backend>> make_uring_backend(Host& host, RunQueue& ready,
                                                    UringOptions options = {});

}  // namespace weir
