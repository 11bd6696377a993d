// Real time: two system calls, and what stands in their way.
#include "weir/os/real_time.hpp"

#include <linux/capability.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "weir/os/detail/machine/cgroup.hpp"
#include "weir/os/detail/io/text_file.hpp"

namespace weir::os {
namespace {

/// Whether the calling thread has a capability; false where /proc does not tell.
bool has_capability(int number, const std::string& root) {
  const auto status = read_text_file(root + "/proc/thread-self/status");
  if (!status) return false;
  constexpr std::string_view name = "\nCapEff:\t";
  const auto start = status->find(name);
  if (start == std::string::npos) return false;
  const char* const digits = status->data() + start + name.size();
  std::uint64_t set = 0;
  std::from_chars(digits, status->data() + status->size(), set, 16);
  return (set >> number & 1) != 0;
}

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit;
}

/// Takes what the hard limit allows; the soft one is only its default.
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

Result<> run_fifo(int priority) {
  raise_soft_limit(RLIMIT_RTPRIO);
  const sched_param wanted{.sched_priority = priority};
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) < 0) {
    return fail(system_error(errno));
  }
  return {};
}

std::string explain_fifo_refusal(std::error_code error, int priority, const std::string& root) {
  if (error != system_error(EPERM)) return error.message();
  const std::string wanted = std::to_string(priority);
  const rlim_t allowed = limit_of(RLIMIT_RTPRIO).rlim_cur;
  if (!has_capability(CAP_SYS_NICE, root) && allowed < static_cast<rlim_t>(priority)) {
    return with_reason(error, "RLIMIT_RTPRIO is " + std::to_string(allowed) +
                                  ": it takes ulimit -r " + wanted + ", LimitRTPRIO=" + wanted +
                                  " in a systemd unit, or the capability CAP_SYS_NICE");
  }
  if (read_cgroup_limits(root).real_time_us == 0) {
    return with_reason(error,
                       "cpu.rt_runtime_us of its cgroup is 0: it takes a share there, or a cgroup "
                       "that has one");
  }
  return with_reason(error,
                     "its privileges suffice: a seccomp profile, or a kernel that allows real time "
                     "in the root cgroup alone?");
}

Result<> lock_memory() {
  raise_soft_limit(RLIMIT_MEMLOCK);
  const bool limited = limit_of(RLIMIT_MEMLOCK).rlim_cur != RLIM_INFINITY;
  if (limited && !has_capability(CAP_IPC_LOCK, {})) return fail(system_error(EPERM));
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) < 0) return fail(system_error(errno));
  ::mallopt(M_TRIM_THRESHOLD, -1);
  return {};
}

std::string explain_lock_refusal(std::error_code error, const std::string& root) {
  const rlim_t allowed = limit_of(RLIMIT_MEMLOCK).rlim_cur;
  if (has_capability(CAP_IPC_LOCK, root) || allowed == RLIM_INFINITY) {
    return error == system_error(ENOMEM) ? with_reason(error, "there is too little of it")
                                         : error.message();
  }
  return with_reason(error, "RLIMIT_MEMLOCK is " + std::to_string(allowed) +
                                " bytes: it takes ulimit -l unlimited, LimitMEMLOCK=infinity in a "
                                "systemd unit, or the capability CAP_IPC_LOCK");
}

}  // namespace weir::os
