// Reads and raises resource limits and explains the result.
#include "weir/os/detail/machine/limits.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/detail/machine/cgroup.hpp"

namespace weir::os {
namespace {

static_assert(RLIM_INFINITY == std::numeric_limits<rlim_t>::max());

template <class T>
std::optional<T> read_number(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return std::nullopt;
  T value{};
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

std::string print(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

std::string reason(int error) {
  return std::system_category().message(error);
}

Limit raise(__rlimit_resource resource, const std::string& name, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) < 0) return {0, 0, name + ": unknown, " + reason(errno)};
  const rlim_t before = limit.rlim_cur;
  std::string refused;
  if (limit.rlim_max < wanted) {
    const rlimit higher{wanted, wanted};
    if (::setrlimit(resource, &higher) == 0) {
      limit = higher;
    } else {
      refused = "cannot raise to " + print(wanted) + ": " + reason(errno);
    }
  }
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit soft{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(resource, &soft) == 0) {
      limit = soft;
    } else {
      refused = "cannot raise to " + print(limit.rlim_max) + ": " + reason(errno);
    }
  }
  std::string comment = limit.rlim_cur > before ? "raised from " + print(before) : "";
  if (!refused.empty()) comment += (comment.empty() ? "" : "; ") + refused;
  std::string text = name + ": " + print(limit.rlim_cur);
  if (!comment.empty()) text += " (" + comment + ")";
  return {before, limit.rlim_cur, std::move(text)};
}

}  // namespace

Limit raise_descriptor_limit(std::uint64_t wanted) {
  const auto nr_open = read_number<std::int64_t>("/proc/sys/fs/nr_open");
  if (nr_open) wanted = std::min(wanted, static_cast<std::uint64_t>(*nr_open));
  return raise(RLIMIT_NOFILE, "open files", wanted);
}

std::size_t free_descriptors(std::size_t enough) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return enough;
  std::size_t free = 0;
  for (rlim_t number = 0; number < limit.rlim_cur && free < enough; ++number) {
    if (::fcntl(static_cast<int>(number), F_GETFD) < 0) ++free;
  }
  return free;
}

int listen_backlog_max(const std::string& root) {
  constexpr int kernel_default = 4096;
  return read_number<int>(root + "/proc/sys/net/core/somaxconn").value_or(kernel_default);
}

ThreadLimit read_thread_limit(const std::string& root, std::uint64_t stack_bytes) {
  const std::uint64_t thread_bytes = thread_overhead_bytes + stack_bytes;
  ThreadLimit least{std::numeric_limits<std::uint64_t>::max(), {}};
  const auto limit = [&least](std::uint64_t threads, const char* by) {
    if (threads < least.threads_max) least = {threads, by};
  };
  const CgroupLimits groups = read_cgroup_limits(root);
  if (const auto all = read_number<std::int64_t>(root + "/proc/sys/kernel/threads-max")) {
    limit(static_cast<std::uint64_t>(*all) / 2, "half of the kernel's threads-max");
  }
  rlimit user{};
  if (::getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY) {
    limit(user.rlim_cur / 2, "half of RLIMIT_NPROC");
  }
  if (groups.tasks_left) {
    limit(static_cast<std::uint64_t>(*groups.tasks_left) / 2,
          "half of the tasks that pids.max still allows");
  }
  if (groups.memory_bytes) {
    limit(static_cast<std::uint64_t>(*groups.memory_bytes) / 4 / thread_bytes,
          "a quarter of the cgroup's memory");
  }
  least.threads_max = std::max<std::uint64_t>(least.threads_max, 1);
  least.explanation = std::to_string(least.threads_max) + " threads: " + least.explanation;
  return least;
}

}  // namespace weir::os
