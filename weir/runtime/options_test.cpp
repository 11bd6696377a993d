// Sockets from the environment, and what a runtime says where they cannot be had.
#include "weir/runtime/inherited_sockets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "weir/runtime/runtime.hpp"
#include "weir/os/activation.hpp"
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

TEST(InheritedSockets, NoneWithoutTheVariables) {
  EXPECT_TRUE(inherited_sockets_from_environment(Environment({}).data()).value().empty());
  EXPECT_TRUE(inherited_sockets_from_environment(Environment({"LISTEN_FDS=1"}).data())->empty());
  // Meant for a parent.
  EXPECT_TRUE(
      inherited_sockets_from_environment(Environment({"LISTEN_FDS=1", "LISTEN_PID=1"}).data())
          ->empty());
}

TEST(InheritedSockets, NonsenseIsAnError) {
  const std::string pid = "LISTEN_PID=" + std::to_string(os::own_process());
  const auto with_count = [&](const std::string& count) {
    const Environment environment({"PATH=/bin", pid, "LISTEN_FDS=" + count});
    return inherited_sockets_from_environment(environment.data());
  };
  EXPECT_EQ(with_count("many").error(), Errc::bad_input);
  // So many are not open; and what the test's own parent has left open is no socket.
  const std::error_code error = with_count("1000000").error();
  EXPECT_TRUE(error == system_error(EBADF) || error == system_error(ENOTSOCK)) << error.message();
}

bool logged(const MemoryHost& host, std::string_view text) {
  return std::ranges::any_of(host.logged(),
                             [&](const std::string& line) { return line.contains(text); });
}

Task<> nothing(Scope&) {
  co_return;
}

TEST(InheritedSockets, WhereTheyCannotBeUsedTheRuntimeSaysSo) {
  MemoryHost host;
  RuntimeOptions options;
  options.inherited.push_back({.descriptor = 3, .name = "web", .endpoint = {}});
  EXPECT_EQ(Runtime(host, options).run_on_each_core(nothing), 1);
  EXPECT_TRUE(logged(host, "inherited socket 3 (web) cannot be used"));
}

TEST(Takeover, AHostThatCannotSaysSo) {
  MemoryHost host;
  RuntimeOptions options;
  options.takeover = HandoverOptions{.path = "meet"};
  EXPECT_EQ(Runtime(host, options).run_on_each_core(nothing), 1);
  EXPECT_TRUE(logged(host, "cannot be taken over on this host"));
}

}  // namespace
}  // namespace weir
