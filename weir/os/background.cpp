#include "weir/os/background.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace weir::os {
namespace {

constexpr int niceness_max = 19;
constexpr std::uint64_t slice_ns = 5'000'000;  // others have at most 2.8 ms, by default

/// sched_setattr(2), in its first version; the C library has it from glibc 2.41 on.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t niceness = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // of a normal policy: the slice; older kernels ignore it
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

Result<> stand_back() {
  // Of the process's first thread: this one may have been started by one that stands back already.
  // A failure is -1 too, which is as good a beginning as any.
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  SchedulingAttributes wanted;
  wanted.policy = SCHED_BATCH;
  wanted.niceness = std::min(own + niceness_more, niceness_max);
  wanted.runtime = slice_ns;
  if (::syscall(SYS_sched_setattr, 0, &wanted, 0) < 0) return fail(system_error(errno));
  return {};
}

}  // namespace weir::os
