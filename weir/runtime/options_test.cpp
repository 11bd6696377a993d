// Tests of inherited sockets, and of the log lines of a runtime that cannot use its sockets.
#include "weir/runtime/options.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/process/activation.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::options_test {
namespace {

class Environment {
 public:
  explicit Environment(std::vector<std::string> variables) : variables_(std::move(variables)) {
    for (const std::string& each : variables_) pointers_.push_back(each.c_str());
    pointers_.push_back(nullptr);
  }
  const char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> variables_;
  std::vector<const char*> pointers_;
};

TEST(InheritedSockets, AreNoneWithoutTheVariables) {
  EXPECT_TRUE(inherited_sockets_from_environment(Environment({}).data()).value().empty());
  EXPECT_TRUE(inherited_sockets_from_environment(Environment({"LISTEN_FDS=1"}).data())->empty());
  // The variables are meant for a parent.
  EXPECT_TRUE(
      inherited_sockets_from_environment(Environment({"LISTEN_FDS=1", "LISTEN_PID=1"}).data())
          ->empty());
}

TEST(InheritedSockets, MalformedVariablesAreAnError) {
  const std::string pid = "LISTEN_PID=" + std::to_string(os::process_id());
  const auto with_count = [&](const std::string& count) {
    const Environment environment({"PATH=/bin", pid, "LISTEN_FDS=" + count});
    return inherited_sockets_from_environment(environment.data());
  };
  EXPECT_EQ(with_count("many").error(), Errc::bad_input);
  // That number of descriptors is not open, and any that the test's parent left open is no
  // socket.
  const std::error_code error = with_count("1000000").error();
  EXPECT_TRUE(error == system_error(EBADF) || error == system_error(ENOTSOCK)) << error.message();
}

TEST(InheritedSockets, OtherVariablesAreIgnored) {
  // Each of them would hide the malformed number if it were mistaken for one of the variables.
  const Environment environment({"LISTEN_PID", "SOMETHINGS=1", "LISTEN_PIDS1", "LISTEN_FDSX0",
                                 "LISTEN_PID=" + std::to_string(os::process_id()),
                                 "LISTEN_FDS=many"});
  EXPECT_EQ(inherited_sockets_from_environment(environment.data()).error(), Errc::bad_input);
}

/// Makes `descriptor` available as number `as` too, which programs that are started inherit.
void pass_as(int descriptor, int as) {
  if (::dup2(descriptor, as) != as) ::_exit(100);
}

Result<std::vector<InheritedSocket>> inherit(const std::string& count) {
  const Environment environment({"LISTEN_FDNAMES=web:", "LISTEN_FDS=" + count,
                                 "LISTEN_PID=" + std::to_string(os::process_id())});
  return inherited_sockets_from_environment(environment.data());
}

/// Inherits two listening sockets, in a child process. Exits with 0 if all went well.
[[noreturn]] void inherit_two_sockets() {
  OsPlatform platform;
  const auto one = platform.listen(Endpoint::loopback(0), {});
  const auto two = platform.listen(Endpoint::loopback(0), {});
  if (!one || !two) ::_exit(101);
  const int first = ::fcntl(one->value(), F_DUPFD, 20);
  const int second = ::fcntl(two->value(), F_DUPFD, 20);
  pass_as(first, 3);
  pass_as(second, 4);
  const auto sockets = inherit("2");
  if (!sockets || sockets->size() != 2) ::_exit(1);
  const auto is = [&](std::size_t index, int descriptor, std::string_view name, int original) {
    const InheritedSocket& socket = (*sockets)[index];
    return socket.descriptor == descriptor && socket.name == name &&
           socket.endpoint == platform.local_address(original).value() &&
           (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0;
  };
  ::_exit(is(0, 3, "web", first) && is(1, 4, "unknown", second) ? 0 : 2);
}

TEST(InheritedSocketsDeathTest, ArePassedFromDescriptorThreeOnAndClosedOnExec) {
  EXPECT_EXIT(inherit_two_sockets(), testing::ExitedWithCode(0), "");
}

/// Inherits a descriptor that is no listening stream socket, in a child process. Exits with the
/// number of the error.
[[noreturn]] void inherit_wrong(int descriptor) {
  pass_as(descriptor, 3);
  const auto sockets = inherit("1");
  ::_exit(sockets ? 0 : sockets.error().value());
}

TEST(InheritedSocketsDeathTest, MustBeListeningStreamSockets) {
  EXPECT_EXIT(inherit_wrong(::open("/dev/null", O_RDONLY)), testing::ExitedWithCode(ENOTSOCK), "");
  EXPECT_EXIT(inherit_wrong(::socket(AF_INET, SOCK_DGRAM, 0)), testing::ExitedWithCode(EPROTOTYPE),
              "");
  EXPECT_EXIT(inherit_wrong(::socket(AF_INET, SOCK_STREAM, 0)), testing::ExitedWithCode(EINVAL),
              "");
}

bool logged(const MemoryPlatform& platform, std::string_view text) {
  return std::ranges::any_of(platform.logged(),
                             [&](const std::string& line) { return line.contains(text); });
}

Task<> nothing(Scope&) {
  co_return;
}

TEST(InheritedSockets, AnUnusableSocketIsLogged) {
  MemoryPlatform platform;
  RuntimeOptions options;
  options.inherited.push_back({.descriptor = 3, .name = "web", .endpoint = {}});
  EXPECT_EQ(Runtime(platform, options).run_on_each_core(nothing), 1);
  EXPECT_TRUE(logged(platform, "inherited socket 3 (web) cannot be used"));
}

TEST(HotRestart, AnUnsupportedPlatformIsLogged) {
  MemoryPlatform platform;
  RuntimeOptions options;
  options.hot_restart = HandoverOptions{.path = "meet"};
  EXPECT_EQ(Runtime(platform, options).run_on_each_core(nothing), 1);
  EXPECT_TRUE(logged(platform, "this platform does not support hot restart"));
}

}  // namespace
}  // namespace weir::options_test
