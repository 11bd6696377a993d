#include "weir/os/detail/process/child_process.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

namespace weir::os {
namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER
#endif

// The number of the thread sanitizer's own threads, which it starts again in a child.
#ifdef WEIR_THREAD_SANITIZER
constexpr std::size_t tool_threads = 1;
#else
constexpr std::size_t tool_threads = 0;
#endif

/// Resets an inherited setting that ignores SIGCHLD, with which the kernel would discard the exit
/// statuses of children.
void keep_exit_statuses() noexcept {
  struct sigaction now{};
  if (::sigaction(SIGCHLD, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) return;
  ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

std::string ExitStatus::to_string() const {
  if (reason == Reason::unknown) return "exit status unknown";
  if (reason == Reason::exited) return "exit status " + std::to_string(code);
  const char* const name = ::sigdescr_np(code);
  return "killed by signal " + std::to_string(code) +
         (name == nullptr ? std::string() : " (" + std::string(name) + ")");
}

void ChildProcess::signal(int number) const noexcept {
  ::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0);
}

ExitStatus ChildProcess::wait() noexcept {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  fd_.close();
  if (ended < 0) return {ExitStatus::Reason::unknown, 0};
  if (WIFSIGNALED(status)) return {ExitStatus::Reason::killed, WTERMSIG(status)};
  return {ExitStatus::Reason::exited, WEXITSTATUS(status)};
}

Result<std::optional<ChildProcess>> fork_child() {
  // Both processes would otherwise write the content of the buffers.
  std::fflush(nullptr);
  keep_exit_statuses();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before prctl().
    if (::getppid() != parent) ::_exit(1);
    return std::optional<ChildProcess>();
  }
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return fail(system_error(error));
  }
  return std::optional<ChildProcess>(ChildProcess(pid, std::move(fd)));
}

std::size_t count_threads() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  if (error) return 0;
  const auto all = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  return all > tool_threads ? all - tool_threads : all;
}

Result<SharedInt> SharedInt::make() {
  void* const memory = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(system_error(errno));
  static_assert(std::atomic<int>::is_always_lock_free);
  return SharedInt(::new (memory) std::atomic<int>(0));
}

SharedInt::~SharedInt() {
  if (value_ != nullptr) ::munmap(value_, sizeof(std::atomic<int>));
}

}  // namespace weir::os
