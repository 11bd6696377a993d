// Tests of the checks of a machine, with one row for each fault.
#include "weir/runtime/checks/machine_checks.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(MachineChecks, NameADescriptorLimitThatLeavesNoConnection) {
  const auto findings = check_machine({.open_files_max = 20}, {.cores = 4});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::fatal);
  EXPECT_EQ(findings[0].to_line(),
            "descriptors: at most 20 open files (RLIMIT_NOFILE), wanted 21 for 1 connection: the "
            "server listens, but answers no client (ulimit -n 1024, or LimitNOFILE= in its unit)");
  EXPECT_TRUE(check_machine({.open_files_max = 21}, {.cores = 4}).empty());
}

}  // namespace
}  // namespace weir
