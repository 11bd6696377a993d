// Tests of the verb `weir doctor`. tests/doctor_test.py runs it on machines with faults.
#include "tools/weir/doctor_command.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tools/weir/command_fixture.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::doctor::doctor_command_test {
namespace {

TEST(DoctorCommand, NeedsAReadableConfiguration) {
  std::string output;
  EXPECT_EQ(run_command(&add_command, "doctor", {"--for", "/no/such.toml"}, output), 2);
  EXPECT_NE(output.find("/no/such.toml"), output.npos) << output;
  EXPECT_EQ(run_command(&add_command, "doctor", {"--timeout", "0"}, output), 2);
}

TEST(DoctorCommand, ReportsWhatTheConfigurationAsksFor) {
  const os::TemporaryTree tree;
  tree.write("shop.toml", "[server]\ncores = 100000\n");
  tree.write("sys/devices/system/cpu/online", "0\n");
  std::string output;
  const std::vector<std::string> arguments = {"--for", tree.path("shop.toml"), "--root",
                                              tree.root()};
  EXPECT_EQ(run_command(&add_command, "doctor", arguments, output), 1) << output;
  EXPECT_NE(output.find("cpuset: "), output.npos) << output;
  EXPECT_NE(output.find("wanted 100000 for as many loops"), output.npos) << output;
  EXPECT_TRUE(output.ends_with("the service\n")) << output;
}

TEST(DoctorCommand, PrintsJson) {
  const os::TemporaryTree tree;
  std::string output;
  run_command(&add_command, "doctor", {"--json", "--root", tree.root()}, output);
  EXPECT_TRUE(output.starts_with("{\"status\":\"limits\",")) << output;
  EXPECT_NE(output.find("{\"check\":\"proc\",\"severity\":\"limits\","), output.npos) << output;
}

}  // namespace
}  // namespace weir::doctor::doctor_command_test
