// Tests of the reasons for which io_uring is not available, by invented files and by real refusals.
#include "weir/os/detail/machine/io_uring.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/io_uring_refusal.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::io_uring_test {
namespace {

constexpr const char* plain_process = "Name:\tweir\nCapEff:\t0000000000000000\nSeccomp:\t0\n";
constexpr const char* filtered = "Name:\tweir\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n";

struct Case {
  std::error_code error;
  const char* disabled;  ///< kernel.io_uring_disabled
  const char* status;    ///< /proc/thread-self/status
  const char* reason;
  const char* remedy;
};

TEST(IoUring, ExplainsEachRefusal) {
  const std::error_code eperm = system_error(EPERM);
  const Case cases[] = {
      {eperm, "2", filtered, "kernel.io_uring_disabled is 2",
       "sysctl -w kernel.io_uring_disabled=0"},
      {eperm, "1", plain_process,
       "kernel.io_uring_disabled is 1 and this process is not in group 997",
       "sysctl -w kernel.io_uring_disabled=0, or SupplementaryGroups=997 in its unit"},
      {eperm, "1", filtered, "a seccomp filter refuses it, such as a container's profile",
       "add to \"syscalls\" of the profile: {\"names\": [\"io_uring_setup\", \"io_uring_enter\", "
       "\"io_uring_register\"], \"action\": \"SCMP_ACT_ALLOW\"}"},
      {system_error(ENOSYS), "0", filtered,
       "a seccomp filter refuses it, such as a container's profile", nullptr},
      {system_error(ENOSYS), "0", plain_process,
       "this kernel is built without io_uring, or a sandbox hides it", ""},
      {eperm, "0", plain_process,
       "Operation not permitted: perhaps a security module such as SELinux", ""},
      {make_error_code(Errc::unsupported), "0", plain_process, "Linux 5.10.0-28 is too old",
       "use Linux 6.1 or newer"},
      {system_error(ENOMEM), "0", plain_process,
       "not enough locked memory: RLIMIT_MEMLOCK is 65536 bytes",
       "ulimit -l unlimited, or LimitMEMLOCK=infinity in its unit"},
      {system_error(EMFILE), "0", plain_process, "Too many open files", nullptr},
  };
  for (const Case& each : cases) {
    const TemporaryTree tree;
    tree.write("proc/sys/kernel/io_uring_disabled", std::string(each.disabled) + "\n");
    tree.write("proc/sys/kernel/io_uring_group", "997\n");
    tree.write("proc/sys/kernel/osrelease", "5.10.0-28\n");
    tree.write("proc/thread-self/status", each.status);
    tree.write("proc/self/limits",
               "Limit                     Soft Limit           Hard Limit           Units\n"
               "Max locked memory         65536                65536                bytes\n");
    const IoUringRefusal refusal = explain_io_uring_error(each.error, tree.root());
    EXPECT_EQ(refusal.reason, each.reason);
    if (each.remedy != nullptr) {
      EXPECT_EQ(refusal.remedy, each.remedy);
    }
  }
}

TEST(IoUring, IsProbedLikeTheKernelAnswers) {
  EXPECT_EQ(probe_io_uring().has_value(), io_uring_refusal().empty()) << io_uring_refusal();
}

[[noreturn]] void probe_without(std::uint32_t number, std::uint32_t argument, std::uint32_t value,
                                int error) {
  if (!deny({number, argument, value}, error)) ::_exit(2);
  const auto probed = probe_io_uring();
  if (probed) ::_exit(1);
  std::fprintf(stderr, "%s\n", explain_io_uring_error(probed.error()).reason.c_str());
  ::_exit(0);
}

TEST(IoUringDeathTest, IsRefusedBySeccompAtEitherCall) {
  if (const std::string reason = io_uring_refusal(); !reason.empty()) GTEST_SKIP() << reason;
  for (const int error : {EPERM, ENOSYS}) {
    EXPECT_EXIT(probe_without(SYS_io_uring_setup, 0, 8, error), testing::ExitedWithCode(0),
                "^a seccomp filter refuses it");
    EXPECT_EXIT(probe_without(SYS_io_uring_enter, 1, 0, error), testing::ExitedWithCode(0),
                "^a seccomp filter refuses it");
  }
}

}  // namespace
}  // namespace weir::os::io_uring_test
