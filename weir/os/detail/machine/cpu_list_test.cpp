// Tests of CPU lists in the kernel's notation, valid and invalid.
#include "weir/os/detail/machine/cpu_list.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::os::cpu_list_test {
namespace {

using List = std::vector<int>;

TEST(CpuList, ParsesNumbersAndRanges) {
  EXPECT_EQ(parse_cpu_list("").value(), List{});
  EXPECT_EQ(parse_cpu_list("0").value(), List{0});
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11").value(), (List{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("5,1-2,2").value(), (List{1, 2, 5}));
  EXPECT_EQ(parse_cpu_list("2,5,1-2,5").value(), (List{1, 2, 5}));
  EXPECT_EQ(parse_cpu_list("65535").value(), List{65535});
}

TEST(CpuList, RejectsInvalidText) {
  for (const std::string_view text :
       {",", "0,", ",0", "0,,1", "-", "1-", "-1", "3-1", "a", "0x1", "0 1", " 0", "0-1-2", "65536",
        "0-4294967295", "99999999999999999999", "0-31:2/4", "0\n"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

TEST(CpuList, LimitsRepeatedRanges) {
  std::string text = "0-65535";
  for (int i = 0; i < 100; ++i) text += ",0-65535";
  EXPECT_FALSE(parse_cpu_list(text));
}

TEST(CpuList, ReadsOnlyTheGivenText) {
  const std::string_view longer = "0-31";
  EXPECT_EQ(parse_cpu_list(longer.substr(0, 3)).value(), (List{0, 1, 2, 3}));
  EXPECT_EQ(parse_cpu_list(longer.substr(0, 1)).value(), List{0});
}

TEST(CpuList, MayHaveEveryPossibleCpu) {
  EXPECT_EQ(parse_cpu_list("0-65535").value().size(), 65536U);
  const List all = parse_cpu_list("0-65534,65535").value();
  EXPECT_EQ(all.size(), 65536U);
  EXPECT_EQ(all.back(), 65535);
}

TEST(CpuList, FormatsTheShortestText) {
  EXPECT_EQ(format_cpu_list({}), "");
  for (const std::string_view text : {"0", "0-1", "0-3,8,10-11", "1,3,5"}) {
    EXPECT_EQ(format_cpu_list(parse_cpu_list(text).value()), text);
  }
}

TEST(CpuList, Intersects) {
  EXPECT_EQ(intersect_cpus({0, 1, 2, 5}, {1, 5, 9}), (List{1, 5}));
  EXPECT_EQ(intersect_cpus({0}, {}), List{});
}

}  // namespace
}  // namespace weir::os::cpu_list_test
