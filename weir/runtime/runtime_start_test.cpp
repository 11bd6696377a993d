// Tests of the log lines at the start of a runtime on a machine that gives too little. A child
// process lowers its limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "weir/loop/detail/listen/listener_registry.hpp"
#include "weir/loop/loop.hpp"
#include "weir/os/address.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::runtime_start_test {
namespace {

/// Leaves `count` free descriptors to this (child) process for ever.
void leave_descriptors(std::size_t count) {
  std::vector<int> taken;
  while (taken.size() <= count) taken.push_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  const rlimit fewer{static_cast<rlim_t>(taken.back()), static_cast<rlim_t>(taken.back())};
  for (const int each : taken) ::close(each);
  // A process with CAP_SYS_RESOURCE would raise the limit again.
  if (::setrlimit(RLIMIT_NOFILE, &fewer) != 0) ::_exit(2);
  if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(3);
}

/// Listens on one core, ends, and exits with the status of the run.
[[noreturn]] void listen_with(std::size_t free_descriptors) {
  leave_descriptors(free_descriptors);
  Runtime runtime(RuntimeOptions{.cores = 1, .pin = false});
  const auto listen = [](Scope& scope) -> Task<Result<>> {
    Loop& loop = scope.loop();
    auto listener =
        loop.group().listener_registry().listen(loop.platform(), os::Address::loopback(0), {});
    if (!listener) co_return fail(listener.error());
    co_return {};
  };
  ::_exit(runtime.run_on_each_core(listen));
}

// Two of the loop, two of the shared pool, signals, the end of the loops, a listener.
constexpr std::size_t descriptors_of_a_server = 7;

TEST(RuntimeStartDeathTest, NamesADescriptorLimitThatLeavesNoConnection) {
  EXPECT_EXIT(listen_with(descriptors_of_a_server), testing::ExitedWithCode(0),
              "weir: descriptors: at most [0-9]+ open files \\(RLIMIT_NOFILE\\), wanted [0-9]+ for "
              "1 connection: the server listens, but answers no client \\(ulimit -n 1024");
}

TEST(RuntimeStartDeathTest, SaysNothingIfThereIsADescriptorForAConnection) {
  EXPECT_EXIT(listen_with(descriptors_of_a_server + 1), testing::ExitedWithCode(0),
              "listening on 127.0.0.1:[0-9]+\n[^:]*$");
}

}  // namespace
}  // namespace weir::runtime_start_test
