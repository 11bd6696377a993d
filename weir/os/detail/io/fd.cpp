// Thin wrappers of close, fcntl, pipe2 and eventfd.
#include "weir/os/detail/io/fd.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>

namespace weir::os {

void Fd::close() noexcept {
  if (descriptor_ == none) return;
  const int saved = errno;
  [[maybe_unused]] const int result = ::close(release());
  assert((result == 0 || errno != EBADF) && "other code closed this descriptor");
  errno = saved;
}

Result<> set_on_exec(int descriptor, OnExec what) {
  const int flags = ::fcntl(descriptor, F_GETFD);
  if (flags < 0) return fail(system_error(errno));
  const int wanted = what == OnExec::close ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC;
  if (::fcntl(descriptor, F_SETFD, wanted) < 0) return fail(system_error(errno));
  return {};
}

void open_standard_descriptors() noexcept {
  const int saved = errno;
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free number. If it fails, lines of the log are lost.
    if (::fcntl(number, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
    assert(opened < 0 || opened == number);
  }
  errno = saved;
}

Result<> set_nonblocking(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return fail(system_error(errno));
  if (::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return fail(system_error(errno));
  return {};
}

Result<Fd> duplicate(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail(system_error(errno));
  return Fd(copy);
}

Result<Pipe> open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) < 0) return fail(system_error(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Fd> open_event() {
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return fail(system_error(errno));
  return Fd(event);
}

void signal_event(int event) noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
  assert((written == sizeof one || errno == EAGAIN) && "not an eventfd");
  errno = saved;
}

void drain_event(int event) noexcept {
  const int saved = errno;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(event, &count, sizeof count);
  assert((taken == sizeof count || errno == EAGAIN) && "not an eventfd");
  errno = saved;
}

}  // namespace weir::os
