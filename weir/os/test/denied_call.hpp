// Makes system calls fail in a child process of a test, as on a machine that does not support them.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace weir::os {

/// A system call with one certain argument.
struct DeniedCall {
  std::uint32_t number;
  std::uint32_t argument;  ///< the index of the argument that is compared
  std::uint32_t value;     ///< the value of the argument; only its low half is compared
};

/// Makes `call` fail with `error` in the calling thread from now on. This cannot be undone, so only
/// child processes of tests call it.
/// Returns: false if this machine has no seccomp(2).
inline bool deny(const DeniedCall& call, int error) {
  const auto number_at = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  const auto argument_at =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * call.argument);
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Makes fork(2) fail with EAGAIN in this (child) process, as deny() does.
/// Returns: false if this machine cannot do that.
inline bool deny_fork() {
  constexpr std::uint32_t flags = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD;
  if (!deny({SYS_clone, 0, flags}, EAGAIN)) return false;
  const pid_t forked = ::fork();
  if (forked == 0) ::_exit(0);
  return forked < 0;
}

}  // namespace weir::os
