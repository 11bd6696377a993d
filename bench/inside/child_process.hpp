// Runs a measurement in a fresh process, so that no earlier measurement influences it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <type_traits>

namespace weir {

/// Aborts the program if `holds` is false.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Runs `measure(arguments...)` in a child process and returns its result.
/// Threads: the caller's process must have only one thread.
template <class Results, class... Args>
Results run_in_child_process(Results (*measure)(Args...), std::type_identity_t<Args>... arguments) {
  static_assert(std::is_trivially_copyable_v<Results>);
  std::array<int, 2> ends{};
  require(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  require(child >= 0);
  if (child == 0) {
    const Results results = measure(arguments...);
    ::_exit(::write(ends[1], &results, sizeof results) == sizeof results ? 0 : 1);
  }
  Results results;
  ::close(ends[1]);
  require(::read(ends[0], &results, sizeof results) == sizeof results);
  ::close(ends[0]);
  int status = 0;
  require(::waitpid(child, &status, 0) == child && status == 0);
  return results;
}

}  // namespace weir
