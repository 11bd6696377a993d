// System calls for scheduling policies and locked memory, and explanations of their errors.
#include "weir/os/detail/process/scheduling.hpp"

#include <linux/capability.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "weir/os/detail/machine/cgroup.hpp"
#include "weir/os/detail/machine/proc_files.hpp"

namespace weir::os {
namespace {

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit;
}

/// Raises the soft limit to the hard limit.
void raise_soft_limit(__rlimit_resource resource) {
  rlimit limit = limit_of(resource);
  if (limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(resource, &limit);
}

std::string with_reason(std::error_code error, const std::string& reason) {
  return error.message() + " (" + reason + ")";
}

}  // namespace

Result<> set_fifo_priority(int priority) {
  raise_soft_limit(RLIMIT_RTPRIO);
  const sched_param wanted{.sched_priority = priority};
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

std::string explain_fifo_error(std::error_code error, int priority, const std::string& root) {
  if (error != system_error(EPERM)) return error.message();
  const std::string wanted = std::to_string(priority);
  const rlim_t allowed = limit_of(RLIMIT_RTPRIO).rlim_cur;
  if (!has_capability(CAP_SYS_NICE, root) && allowed < static_cast<rlim_t>(priority)) {
    return with_reason(error, "RLIMIT_RTPRIO is " + std::to_string(allowed) + ": use ulimit -r " +
                                  wanted + ", LimitRTPRIO=" + wanted +
                                  " in a systemd unit, or the capability CAP_SYS_NICE");
  }
  if (read_cgroup_limits(root).real_time_us == 0) {
    return with_reason(error,
                       "cpu.rt_runtime_us of its cgroup is 0: raise it or use another cgroup");
  }
  return with_reason(error,
                     "the privileges are sufficient: check for a seccomp profile, or for a kernel "
                     "that allows real time only in the root cgroup");
}

Result<> lock_memory() {
  raise_soft_limit(RLIMIT_MEMLOCK);
  const bool limited = limit_of(RLIMIT_MEMLOCK).rlim_cur != RLIM_INFINITY;
  if (limited && !has_capability(CAP_IPC_LOCK, {})) return fail(system_error(EPERM));
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) < 0) return fail(system_error(errno));
  ::mallopt(M_TRIM_THRESHOLD, -1);
  return {};
}

std::string explain_lock_error(std::error_code error, const std::string& root) {
  const rlim_t allowed = limit_of(RLIMIT_MEMLOCK).rlim_cur;
  if (has_capability(CAP_IPC_LOCK, root) || allowed == RLIM_INFINITY) {
    return error == system_error(ENOMEM) ? with_reason(error, "not enough memory")
                                         : error.message();
  }
  return with_reason(error, "RLIMIT_MEMLOCK is " + std::to_string(allowed) +
                                " bytes: use ulimit -l unlimited, LimitMEMLOCK=infinity in a "
                                "systemd unit, or the capability CAP_IPC_LOCK");
}

namespace {

constexpr int niceness_max = 19;
constexpr std::uint64_t slice_ns = 5'000'000;  // other threads: at most 2.8 ms by default

/// The argument of sched_setattr(2) in its first version. The C library defines it since glibc
/// 2.41.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t niceness = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // slice of a normal policy; older kernels ignore it
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

Result<> set_background_priority() {
  // The niceness of the process's first thread, because this thread may have been started by one
  // that already has background priority. A failure returns -1 too, which is harmless as a base.
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  SchedulingAttributes wanted;
  wanted.policy = SCHED_BATCH;
  wanted.niceness = std::min(own + background_nice_increment, niceness_max);
  wanted.runtime = slice_ns;
  if (::syscall(SYS_sched_setattr, 0, &wanted, 0) < 0) return fail(system_error(errno));
  return {};
}

}  // namespace weir::os
