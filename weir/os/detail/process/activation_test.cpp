// Tests of parsing a service manager's environment variables.
#include "weir/os/detail/process/activation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

namespace weir::os::activation_test {
namespace {

TEST(Activation, ReturnsEachDescriptorWithItsName) {
  const auto passed = parse_activation({"42", "3", "web::admin"}, 42);
  ASSERT_TRUE(passed);
  ASSERT_EQ(passed->size(), 3U);
  EXPECT_EQ(passed->at(0).descriptor, 3);
  EXPECT_EQ(passed->at(0).name, "web");
  EXPECT_EQ(passed->at(1).name, "unknown");
  EXPECT_EQ(passed->at(2).descriptor, 5);
  EXPECT_EQ(passed->at(2).name, "admin");
}

TEST(Activation, NamesMayBeFewerOrMissing) {
  const auto passed = parse_activation({"42", "2", ""}, 42);
  ASSERT_TRUE(passed);
  ASSERT_EQ(passed->size(), 2U);
  EXPECT_EQ(passed->at(1).name, "unknown");
  EXPECT_EQ(parse_activation({"42", "2", "one"}, 42)->at(1).name, "unknown");
}

TEST(Activation, IsEmptyForOtherProcessesAndWithoutVariables) {
  EXPECT_TRUE(parse_activation({"42", "3", ""}, 43).value().empty());
  EXPECT_TRUE(parse_activation({"", "", ""}, 42).value().empty());
  EXPECT_TRUE(parse_activation({"42", "", ""}, 42).value().empty());
  EXPECT_TRUE(parse_activation({"", "3", ""}, 42).value().empty());
  EXPECT_TRUE(parse_activation({"42", "0", ""}, 42).value().empty());
}

TEST(Activation, AcceptsTheFirstProcessAndTheLargestCount) {
  EXPECT_EQ(parse_activation({"1", "1", ""}, 1)->size(), 1U);
  const auto most = parse_activation({"42", "1048576", ""}, 42);
  ASSERT_TRUE(most);
  EXPECT_EQ(most->size(), 1048576U);
  EXPECT_EQ(most->back().descriptor, 3 + 1048575);
}

TEST(Activation, ReadsOnlyTheGivenText) {
  const std::string_view longer = "4217";
  EXPECT_EQ(parse_activation({longer.substr(0, 2), longer.substr(2, 1), ""}, 42)->size(), 1U);
}

TEST(Activation, ReturnsTheIdOfThisProcess) {
  EXPECT_EQ(process_id(), ::getpid());
}

TEST(Activation, RejectsInvalidValues) {
  const ActivationEnvironment wrong[] = {
      {"x", "1", ""},   {"42x", "1", ""},          {"42", "x", ""},
      {"42", "-1", ""}, {"42", "1 ", ""},          {"-1", "1", ""},
      {"0", "1", ""},   {"42", "99999999999", ""}, {"42", "1048577", ""}};
  for (const ActivationEnvironment& each : wrong) {
    EXPECT_EQ(parse_activation(each, 42).error(), Errc::bad_input) << each.pid << " " << each.count;
  }
}

}  // namespace
}  // namespace weir::os::activation_test
