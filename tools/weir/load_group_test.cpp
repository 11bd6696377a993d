// Tests of the common start of the threads of a load.
#include "tools/weir/load_group.hpp"

#include <gtest/gtest.h>

#include <array>

#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::bench::load_group_test {
namespace {

using namespace std::chrono_literals;

class LoadGroupTest : public MultiCoreTest {};

TEST_F(LoadGroupTest, GivesAllThreadsTheTimeOfTheLastConnect) {
  LoadGroup group(3);
  std::array<Instant, 3> starts{};
  const Instant begin = platform_.now();
  const auto thread = [&](unsigned core) -> Task<> {
    std::ignore = co_await sleep(core * 10ms);
    starts[core] = co_await group.wait_until_all_connected();
  };
  run_on_cores({[&] { return thread(0); }, [&] { return thread(2); }, [&] { return thread(1); }});
  EXPECT_GE(starts[0] - begin, 20ms);
  EXPECT_LE(starts[0], platform_.now());
  EXPECT_EQ(starts[1], starts[0]);
  EXPECT_EQ(starts[2], starts[0]);
}

}  // namespace
}  // namespace weir::bench::load_group_test
