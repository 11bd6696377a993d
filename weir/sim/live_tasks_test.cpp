// Tests that a service in a World names its tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "weir/runtime/on_core.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::sim::live_tasks_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Task<> never_granted(ManualResetEvent& event) {
  std::ignore = co_await event.wait();
}
Task<> stuck_part(ManualResetEvent& event) {
  co_await never_granted(event);
}
Task<> serve(Scope& scope) {
  ManualResetEvent event;
  for (int i = 0; i < 500; ++i) scope.spawn(as_task(sleep(1h)));
  scope.spawn(stuck_part(event));
  std::ignore = co_await sleep(1min);
  scope.cancel();
  co_await scope.children_finished();
}

std::vector<std::string> dump(std::uint64_t seed) {
  World world({.seed = seed});
  Host& service = world.host("service");
  service.start(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve); });
  world.schedule(10s, [&] { service.raise(loop::Signal::quit); });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  return service.logged();
}

TEST(WorldTasks, ASignalNamesAStuckTaskOfAService) {
  const auto lines = dump(1);
  EXPECT_THAT(lines, Contains(HasSubstr("stuck_part [scope], 10.0 s")));
  // It has no age if the compiler has put its frame into that of its caller.
  EXPECT_THAT(lines,
              Contains(HasSubstr("never_granted awaits weir::EventWait<weir::ManualResetEvent>")));
  EXPECT_THAT(lines, Contains(HasSubstr("500 x weir::as_task<")));
}

TEST(WorldTasks, ASeedDeterminesTheDump) {
  EXPECT_EQ(dump(7), dump(7));
}

}  // namespace
}  // namespace weir::sim::live_tasks_test
