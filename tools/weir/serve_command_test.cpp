// Tests of the verb `weir serve`. tests/serve_tool_test.cpp runs it.
#include "tools/weir/serve_command.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tools/weir/command_fixture.hpp"

namespace weir::serve::serve_command_test {
namespace {

TEST(ServeCommand, NeedsAFolder) {
  std::string output;
  EXPECT_EQ(run_command(&add_command, "serve", {}, output), 2);
  EXPECT_EQ(run_command(&add_command, "serve", {"/no/such/folder"}, output), 2);
  EXPECT_NE(output.find("/no/such/folder"), output.npos) << output;
}

TEST(ServeCommand, RefusesANameThatIsNoHost) {
  std::string output;
  EXPECT_EQ(run_command(&add_command, "serve", {"/", "--host", "https://a.test"}, output), 2);
  EXPECT_NE(output.find("https://a.test"), output.npos) << output;
}

}  // namespace
}  // namespace weir::serve::serve_command_test
