#include "weir/os/detail/machine/io_uring.hpp"

#include <linux/capability.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/proc_files.hpp"

namespace weir::os {
namespace {

/// Returns the reason for EPERM; nullopt if the setting does not forbid io_uring.
std::optional<IoUringRefusal> explain_setting(const std::string& root) {
  const auto disabled = read_number(root + "/proc/sys/kernel/io_uring_disabled");
  if (!disabled || *disabled == 0) return std::nullopt;
  IoUringRefusal refusal;
  refusal.reason = "kernel.io_uring_disabled is " + std::to_string(*disabled);
  refusal.remedy = "sysctl -w kernel.io_uring_disabled=0";
  if (*disabled == 1) {
    if (has_capability(CAP_SYS_ADMIN, root)) return std::nullopt;
    const auto group = read_number(root + "/proc/sys/kernel/io_uring_group").value_or(-1);
    if (group >= 0) {
      refusal.reason += " and this process is not in group " + std::to_string(group);
      refusal.remedy += ", or SupplementaryGroups=" + std::to_string(group) + " in its unit";
    } else {
      refusal.reason += " and this process lacks CAP_SYS_ADMIN";
    }
  }
  return refusal;
}

std::optional<IoUringRefusal> explain_seccomp(const std::string& root) {
  if (read_status_field("Seccomp", root).value_or("0") == "0") return std::nullopt;
  return IoUringRefusal{
      "a seccomp filter refuses it, such as a container's profile",
      std::string("add to \"syscalls\" of the profile: ") + io_uring_seccomp_rule};
}

std::string kernel_release(const std::string& root) {
  return read_text_file(root + "/proc/sys/kernel/osrelease").value_or("of unknown version");
}

}  // namespace

Result<> probe_io_uring() {
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const auto made = ::syscall(SYS_io_uring_setup, 8, &parameters);
  if (made < 0) {
    return errno == EINVAL ? fail(Errc::unsupported) : fail(system_error(errno));
  }
  const Fd ring(static_cast<int>(made));
  // A seccomp filter may allow the first call and refuse the second.
  if (::syscall(SYS_io_uring_enter, ring.get(), 0, 0, 0, nullptr, 0) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

IoUringRefusal explain_io_uring_error(std::error_code error, const std::string& root) {
  if (error == Errc::unsupported) {
    return {"Linux " + kernel_release(root) + " is too old", "use Linux 6.1 or newer"};
  }
  const bool refused = error == system_error(EPERM) || error == system_error(EACCES);
  if (refused || error == system_error(ENOSYS)) {
    if (refused) {
      if (auto setting = explain_setting(root)) return *setting;
    }
    if (auto filter = explain_seccomp(root)) return *filter;
    if (!refused) return {"this kernel is built without io_uring, or a sandbox hides it", {}};
    return {error.message() + ": perhaps a security module such as SELinux", {}};
  }
  if (error == system_error(ENOMEM)) {
    const auto locked = read_limit("Max locked memory", root);
    if (locked && locked->hard != unlimited) {
      return {
          "not enough locked memory: RLIMIT_MEMLOCK is " + std::to_string(locked->hard) + " bytes",
          "ulimit -l unlimited, or LimitMEMLOCK=infinity in its unit"};
    }
  }
  if (error == system_error(EMFILE) || error == system_error(ENFILE)) {
    return {error.message(), "ulimit -n 1024, or LimitNOFILE= in its unit"};
  }
  return {error.message(), {}};
}

}  // namespace weir::os
