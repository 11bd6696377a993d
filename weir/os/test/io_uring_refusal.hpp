// Asks the kernel for io_uring without Weir's own code, so that a broken backend fails its tests
// instead of skipping them.
#pragma once

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

/// Returns the reason why the kernel refuses io_uring to this process. The text is empty if the
/// kernel has all features that Weir needs (Linux 6.1).
inline std::string io_uring_refusal() {
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const Fd ring(static_cast<int>(::syscall(SYS_io_uring_setup, 8, &parameters)));
  // A seccomp filter may allow the first call and refuse the second.
  if (!ring || ::syscall(SYS_io_uring_enter, ring.get(), 0, 0, 0, nullptr, 0) < 0)
    return "this kernel refuses io_uring: " + std::generic_category().message(errno);
  return {};
}

}  // namespace weir::os
