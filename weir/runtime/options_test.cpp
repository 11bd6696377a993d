// Tests of inherited sockets, and of the log lines of a runtime that cannot use its sockets.
#include "weir/runtime/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "weir/os/detail/process/activation.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
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
}  // namespace weir
