// Tests of the groups of service instances.
#include "weir/admin/detail/services/service_groups.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weir::drawing::service_groups_test {
namespace {

void add(Explanation& to, std::uint32_t id, ServiceState state, unsigned core = 0,
         Placement placement = Placement::per_core) {
  ServiceReport& made = to.services.emplace_back();
  made.name = "S" + std::to_string(id);
  made.id = ServiceId(id, 1);
  made.placement = placement;
  made.core = core;
  made.state = state;
}

TEST(ServiceGroup, HasTheMostSevereState) {
  Explanation all;
  for (const ServiceState state :
       {ServiceState::running, ServiceState::waiting, ServiceState::starting,
        ServiceState::stopping, ServiceState::failed}) {
    add(all, 1, state);
    const ServiceGroups groups = group_instances(all);
    ASSERT_EQ(groups.all.size(), 1U);
    EXPECT_EQ(groups.all[0].state(), state);
  }
  EXPECT_EQ(group_instances(all).all[0].summary(all),
            "1 of 5 running, 1 failed, 1 stopping, 1 starting, 1 waiting");
}

TEST(ServiceGroup, ASummaryNamesTheCoreOfASingleInstance) {
  Explanation all;
  add(all, 1, ServiceState::running, 0, Placement::shared);
  add(all, 2, ServiceState::failed, 2, Placement::on_core);
  add(all, 3, ServiceState::waiting, 1);
  const ServiceGroups groups = group_instances(all);
  ASSERT_EQ(groups.all.size(), 3U);
  EXPECT_EQ(groups.all[0].summary(all), "running");
  EXPECT_EQ(groups.all[1].summary(all), "failed on core 2");
  EXPECT_EQ(groups.all[2].summary(all), "waiting on core 1");
}

TEST(ServiceGroup, ASummaryCountsTheInstances) {
  Explanation all;
  for (unsigned core = 0; core < 3; ++core) add(all, 1, ServiceState::starting, core);
  EXPECT_EQ(group_instances(all).all[0].summary(all), "all 3 starting");
  add(all, 1, ServiceState::running, 3);
  add(all, 1, ServiceState::running, 4);
  EXPECT_EQ(group_instances(all).all[0].summary(all), "2 of 5 running, 3 starting");
}

TEST(ServiceGroup, IsRunningWithoutInstances) {
  EXPECT_EQ(ServiceGroup().state(), ServiceState::running) << "nothing is wrong with it";
}

TEST(ServiceGroups, EachPairHasOneEdgeOfEachKind) {
  Explanation all;
  add(all, 1, ServiceState::running, 0);
  add(all, 2, ServiceState::running, 0);
  add(all, 1, ServiceState::running, 1);
  add(all, 2, ServiceState::running, 1);
  all.services[0].uses = {1};
  all.services[2].uses = {3};
  all.services[2].may_use = {1, 3};
  const ServiceGroups groups = group_instances(all);
  ASSERT_EQ(groups.all.size(), 2U);
  EXPECT_EQ(groups.all[0].name, "S1");
  EXPECT_EQ(groups.all[0].members, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(groups.all[1].name, "S2");
  EXPECT_EQ(groups.all[1].members, (std::vector<std::size_t>{1, 3}));
  ASSERT_EQ(groups.edges.size(), 2U);
  for (const GroupEdge& each : groups.edges) {
    EXPECT_EQ(each.from, 0U);
    EXPECT_EQ(each.to, 1U);
  }
  EXPECT_TRUE(groups.edges[0].required);
  EXPECT_FALSE(groups.edges[1].required);
}

}  // namespace
}  // namespace weir::drawing::service_groups_test
