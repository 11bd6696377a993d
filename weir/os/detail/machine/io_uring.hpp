// Why the kernel refuses io_uring to this process, and what would allow it.
#pragma once

#include <string>
#include <system_error>

#include "weir/base/result.hpp"

namespace weir::os {

/// Makes a small ring with the settings that Weir needs, enters it and closes it.
/// Errors: Errc::unsupported for a kernel before 6.1; those of io_uring_setup(2) and
/// io_uring_enter(2).
Result<> probe_io_uring();

struct IoUringRefusal {
  std::string reason;  ///< "kernel.io_uring_disabled is 2"
  std::string remedy;  ///< "sysctl -w kernel.io_uring_disabled=0"; empty if none is known
};

/// Returns the reason for `error`, an error of probe_io_uring(). It is exact where the kernel
/// tells: the setting kernel.io_uring_disabled, a seccomp filter, the version, the limit of locked
/// memory or of descriptors. `root` is a prefix of /proc.
IoUringRefusal explain_io_uring_error(std::error_code error, const std::string& root = {});

/// The rule that allows io_uring in a seccomp profile of Docker, Podman or containerd (OCI).
inline constexpr const char* io_uring_seccomp_rule =
    R"({"names": ["io_uring_setup", "io_uring_enter", "io_uring_register"], )"
    R"("action": "SCMP_ACT_ALLOW"})";

}  // namespace weir::os
