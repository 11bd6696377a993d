// Runs the rounds of a measurement between two loops, on the first loop.
#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// One round of a measurement. Prints one line.
using Round = Task<> (*)(Loop& loop);

namespace detail {

inline Task<> serve_rounds(Scope& scope, Runtime& runtime, Round round, unsigned long rounds) {
  if (scope.loop().core() != 0) {
    std::ignore = co_await sleep(std::chrono::hours(24));
    co_return;
  }
  for (unsigned long done = 0; done < rounds; ++done) co_await round(scope.loop());
  runtime.stop();
}

}  // namespace detail

/// The main function of `PROGRAM [ROUNDS [uring|epoll|poll]]`.
/// Returns: the exit status.
inline int measure_on_two_cores(int argc, char** argv, Round round) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  RuntimeOptions options;
  options.cores = 2;
  options.announce = options.handle_signals = false;
  const std::string_view backend = argc > 2 ? argv[2] : "uring";
  if (backend == "epoll") options.backend = BackendChoice::epoll;
  if (backend == "poll") options.backend = BackendChoice::poll;
  Runtime runtime(options);
  return runtime.run_on_each_core(detail::serve_rounds, std::ref(runtime), round, rounds);
}

}  // namespace weir
