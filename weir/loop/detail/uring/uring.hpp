// The io_uring backend, for Linux 6.1 and newer.
#pragma once

#include <memory>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir::loop {

struct UringOptions {
  /// True to use only what Linux 6.1 has, whatever the kernel offers; the name is then
  /// "uring:6.1".
  bool linux_6_1 = false;
};

/// Returns a backend on a ring of its own. The one io_uring_enter(2) of its wait() submits
/// everything that was started during a turn. Receive and accept requests stay armed in the
/// kernel. A wait() also ends when it has called a hang-up observer.
/// Errors: the kernel's if it refuses io_uring (EPERM, ENOSYS, ENOMEM …); Errc::unsupported if it
/// is older than 6.1.
/// Threads: any makes it. The backend belongs to the thread of its first wait(). Another thread
/// may destroy it after that thread has ended or uses it no more.
/// Lifetime: `platform` and `ready` outlive it.
Result<std::unique_ptr<Backend>> make_uring_backend(Platform& platform, RunQueue& ready,
                                                    UringOptions options = {});

}  // namespace weir::loop
