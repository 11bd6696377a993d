#include "weir/os/detail/machine/proc_files.hpp"

#include <gtest/gtest.h>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::proc_files_test {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(ProcFiles, ReadNumbers) {
  const TemporaryTree tree;
  tree.write("range", "32768\t60999\n");
  tree.write("mixed", "-1 x 2\n");
  tree.write("text", "none\n");
  EXPECT_EQ(read_numbers(tree.path("range")), (Numbers{32768, 60999}));
  EXPECT_EQ(read_numbers(tree.path("mixed")), Numbers{-1});
  EXPECT_EQ(read_numbers(tree.path("text")), Numbers{});
  EXPECT_EQ(read_number(tree.path("range")), 32768);
  EXPECT_EQ(read_number(tree.path("missing")), std::nullopt);
}

TEST(ProcFiles, ReadFieldsOfTheStatus) {
  const TemporaryTree tree;
  tree.write("proc/thread-self/status",
             "Name:\tweir\nUid:\t1000\t1000\nCapEff:\t0000000000000400\nSeccomp:\t2\n");
  EXPECT_EQ(read_status_field("Uid", tree.root()), "1000");
  EXPECT_EQ(read_status_field("Seccomp", tree.root()), "2");
  EXPECT_EQ(read_status_field("Cap", tree.root()), std::nullopt);
  EXPECT_TRUE(has_capability(10, tree.root()));
  EXPECT_FALSE(has_capability(11, tree.root()));
  EXPECT_FALSE(has_capability(10, tree.path("missing")));
}

TEST(ProcFiles, ReadLimits) {
  const TemporaryTree tree;
  tree.write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max processes             5                    unlimited            processes \n"
             "Max open files            1024                 20000                files     \n");
  const auto files = read_limit("Max open files", tree.root());
  ASSERT_TRUE(files);
  EXPECT_EQ(files->soft, 1024U);
  EXPECT_EQ(files->hard, 20000U);
  EXPECT_EQ(read_limit("Max processes", tree.root()).value().hard, unlimited);
  EXPECT_FALSE(read_limit("Max open", tree.root()));
  EXPECT_FALSE(read_limit("Max file size", tree.root()));
  EXPECT_EQ(read_limit("Max open files", {}).has_value(), true);
}

}  // namespace
}  // namespace weir::os::proc_files_test
