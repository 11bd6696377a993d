// Tests that a system call that fails is an error of the function that made it. Each test denies
// one call to a child process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/scarce_descriptors.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::denied_calls_test {
namespace {

template <class T>
std::error_code error_of(const Result<T>& result) {
  return result ? std::error_code() : result.error();
}

/// Stands for the descriptor that the kernel uses next, as the first argument of a denied call.
constexpr int next_descriptor = std::numeric_limits<int>::max();

DeniedCall denied(long number, std::uint32_t argument, int value) {
  return {static_cast<std::uint32_t>(number), argument, static_cast<std::uint32_t>(value)};
}

/// Ends this (child) process with 0 if `call` returns the error of the denied system calls, and
/// leaves no descriptor open.
[[noreturn]] void fail_in(const std::vector<DeniedCall>& calls,
                          const std::function<std::error_code()>& call) {
  const int free = lowest_free_descriptor();
  for (DeniedCall each : calls) {
    if (each.value == next_descriptor) each.value = static_cast<std::uint32_t>(free);
    if (!deny(each, EIO)) ::_exit(2);
  }
  if (call() != system_error(EIO)) ::_exit(3);
  ::_exit(lowest_free_descriptor() == free ? 0 : 4);
}

void expect_failure(const std::vector<DeniedCall>& calls,
                    const std::function<std::error_code()>& call) {
  EXPECT_EXIT(fail_in(calls, call), testing::ExitedWithCode(0), "") << calls.front().number;
}

TEST(DeniedCallsDeathTest, SettingFlagsFails) {
  const Fd event = open_event().value();
  expect_failure({denied(SYS_fcntl, 1, F_SETFD)},
                 [&] { return error_of(set_on_exec(event.get(), OnExec::close)); });
  expect_failure({denied(SYS_fcntl, 1, F_SETFD)},
                 [&] { return error_of(set_on_exec(event.get(), OnExec::keep)); });
  expect_failure({denied(SYS_fcntl, 1, F_SETFL)},
                 [&] { return error_of(set_nonblocking(event.get())); });
}

TEST(DeniedCallsDeathTest, OpeningAFileFails) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const auto open = [&] { return error_of(open_file(tree.path("f"), {})); };
  expect_failure({denied(SYS_fcntl, 1, F_GETFL)}, open);
  expect_failure({denied(SYS_fcntl, 1, F_SETFL)}, open);
  // The C library uses one of two calls.
  expect_failure(
      {denied(SYS_newfstatat, 0, next_descriptor), denied(SYS_fstat, 0, next_descriptor)}, open);
}

// A list that ends early must not look complete.
TEST(DeniedCallsDeathTest, ListingADirectoryFails) {
  const TemporaryTree tree;
  tree.write("f", "text");
  expect_failure({denied(SYS_getdents64, 0, next_descriptor)},
                 [&] { return error_of(list_directory(tree.root(), 10)); });
}

TEST(DeniedCallsDeathTest, ReadingAndWritingFail) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const Fd file = open_file(tree.path("f"), {.mode = FileMode::read_write}).value();
  const std::array<std::byte, 1> byte{};
  std::array<std::byte, 1> room{};
  expect_failure({denied(SYS_fsync, 0, file.get())},
                 [&] { return error_of(sync_file(file.get())); });
  expect_failure({denied(SYS_ftruncate, 0, file.get())},
                 [&] { return error_of(resize_file(file.get(), 1)); });
  expect_failure({denied(SYS_pwrite64, 0, file.get())},
                 [&] { return error_of(write_at(file.get(), byte, 0)); });
  expect_failure({denied(SYS_pread64, 0, file.get())},
                 [&] { return error_of(read_at(file.get(), room, 0)); });
  expect_failure({denied(SYS_fsync, 0, next_descriptor)},
                 [&] { return error_of(sync_directory(tree.root())); });
}

TEST(DeniedCallsDeathTest, ListeningFails) {
  const TemporaryTree tree;
  const Address path = Address::local(tree.path("a.sock")).value();
  for (const Address& address : {Address::loopback(0), Address::any(0), path}) {
    expect_failure({denied(SYS_listen, 1, 7)},
                   [&] { return error_of(open_listener(address, {.backlog = 7})); });
    std::filesystem::remove(tree.path("a.sock"));
  }
}

// The stale file is replaced only if it is the reason of the failure.
TEST(DeniedCallsDeathTest, BindingFailsAndKeepsAStaleFile) {
  const TemporaryTree tree;
  const Address path = Address::local(tree.path("a.sock")).value();
  {
    const Fd stale = open_listener(path).value();
  }
  expect_failure({denied(SYS_bind, 2, static_cast<int>(path.size()))},
                 [&] { return error_of(open_listener(path)); });
  EXPECT_TRUE(std::filesystem::exists(tree.path("a.sock")));
}

TEST(DeniedCallsDeathTest, RefusingNewHandshakesFails) {
  const TemporaryTree tree;
  const Fd local = open_listener(Address::local(tree.path("a.sock")).value()).value();
  const Fd four = open_listener(Address::loopback(0)).value();
  expect_failure({denied(SYS_shutdown, 1, SHUT_RD)},
                 [&] { return error_of(refuse_new_handshakes(local.get())); });
  expect_failure({denied(SYS_setsockopt, 2, IP_MINTTL)},
                 [&] { return error_of(refuse_new_handshakes(four.get(), RefuseMethod::ttl)); });
  expect_failure({denied(SYS_setsockopt, 2, IP_MINTTL)},
                 [&] { return error_of(clear_inherited_refusal(four.get())); });
  // Only a filter that is not permitted is replaced.
  expect_failure({denied(SYS_setsockopt, 2, SO_ATTACH_FILTER)},
                 [&] { return error_of(refuse_new_handshakes(four.get())); });
  const auto six = open_listener(Address::parse("[::1]:0").value());
  if (!six) GTEST_SKIP() << "no IPv6 here";
  for (const int option : {IPV6_MINHOPCOUNT, IP_MINTTL}) {
    expect_failure({denied(SYS_setsockopt, 2, option)},
                   [&] { return error_of(refuse_new_handshakes(six->get(), RefuseMethod::ttl)); });
    expect_failure({denied(SYS_setsockopt, 2, option)},
                   [&] { return error_of(clear_inherited_refusal(six->get())); });
  }
}

TEST(DeniedCallsDeathTest, ARendezvousFails) {
  const TemporaryTree tree;
  const Address place = Address::local(tree.path("meet")).value();
  const auto meet = [&] { return error_of(connect_or_listen(place)); };
  expect_failure({denied(SYS_flock, 1, LOCK_EX | LOCK_NB)}, meet);
  std::filesystem::remove(tree.path("meet.lock"));
  // Other users could connect if the mode of the file was not set.
  expect_failure({denied(SYS_fchmod, 1, 0600)}, meet);
  EXPECT_FALSE(std::filesystem::exists(tree.path("meet")));
  expect_failure({denied(SYS_listen, 1, 64)}, meet);
  EXPECT_FALSE(std::filesystem::exists(tree.path("meet.lock")));
}

/// Ends this (child) process with 0 if a rendezvous at `place` times out and leaves no descriptor
/// open. The filter denies the pauses between the attempts, which would take five seconds.
[[noreturn]] void time_out_at(const Address& place) {
  const int free = lowest_free_descriptor();
#ifdef SYS_poll
  if (!deny(denied(SYS_poll, 1, 0), EIO)) ::_exit(2);
#endif
  if (!deny(denied(SYS_ppoll, 1, 0), EIO)) ::_exit(2);
  if (error_of(connect_or_listen(place)) != std::errc::timed_out) ::_exit(3);
  ::_exit(lowest_free_descriptor() == free ? 0 : 4);
}

TEST(DeniedCallsDeathTest, ARendezvousTimesOutWhileItsFileIsLocked) {
  const TemporaryTree tree;
  const Address place = Address::local(tree.path("meet")).value();
  const Fd lock(::open(tree.path("meet.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  EXPECT_EXIT(time_out_at(place), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(std::filesystem::exists(tree.path("meet.lock"))) << "its holder removes the lock";
  EXPECT_FALSE(std::filesystem::exists(tree.path("meet")));
}

}  // namespace
}  // namespace weir::os::denied_calls_test
