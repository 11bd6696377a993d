#include "weir/os/detail/process/thread_probe.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

ThreadProbe ThreadProbe::of_this_thread() noexcept {
  clockid_t clock{};
  // The call cannot fail for a running thread.
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return {::gettid(), clock};
}

Duration ThreadProbe::cpu_time() const noexcept {
  timespec time{};
  if (::clock_gettime(clock_, &time) < 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

ThreadState ThreadProbe::state(std::string_view root) const {
  const std::string path = std::string(root) + "/proc/self/task/" + std::to_string(id_) + "/stat";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ThreadState::unknown;
  std::array<char, 128> text;  // the third field, after a name of at most 15 bytes
  ssize_t count = 0;
  do {
    count = ::read(file.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ThreadState::unknown;  // ESRCH: the thread has just ended
  return parse_thread_state({text.data(), static_cast<std::size_t>(count)});
}

ThreadState parse_thread_state(std::string_view stat) noexcept {
  // The format is "42 (a name) S ...". The name may contain parentheses and blanks. It is followed
  // by a letter and numbers within the first 128 bytes.
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) {
    return ThreadState::unknown;
  }
  switch (stat[name_end + 2]) {
    case 'R':
      return ThreadState::running;
    case 'Z':
    case 'X':
    case 'x':
      return ThreadState::unknown;
    default:  // S, D and I: asleep; T and t: stopped
      return ThreadState::blocked;
  }
}

}  // namespace weir::os
