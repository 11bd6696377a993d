// Measurements that nothing may be left behind for: each in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <type_traits>

namespace weir {

/// Ends the program where something is not as it must be.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// What `measure(arguments...)` gives, in a child. Before there are other threads.
template <class Figures, class... Args>
Figures in_a_fresh_process(Figures (*measure)(Args...), std::type_identity_t<Args>... arguments) {
  static_assert(std::is_trivially_copyable_v<Figures>);
  std::array<int, 2> ends{};
  require(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  require(child >= 0);
  if (child == 0) {
    const Figures figures = measure(arguments...);
    ::_exit(::write(ends[1], &figures, sizeof figures) == sizeof figures ? 0 : 1);
  }
  Figures figures;
  ::close(ends[1]);
  require(::read(ends[0], &figures, sizeof figures) == sizeof figures);
  ::close(ends[0]);
  int status = 0;
  require(::waitpid(child, &status, 0) == child && status == 0);
  return figures;
}

}  // namespace weir
