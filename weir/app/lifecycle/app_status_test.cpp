// Tests of the formats of an explanation.
#include "weir/app/lifecycle/app_status.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace weir::app_status_test {
namespace {

using namespace std::chrono_literals;

ServiceReport report(std::string name, Placement placement, unsigned core, ServiceState state) {
  ServiceReport made;
  made.name = std::move(name);
  made.placement = placement;
  made.core = core;
  made.state = state;
  return made;
}

/// Returns an explanation with a service of each placement.
Explanation example() {
  Explanation all;
  all.services = {report("shop::Store", Placement::shared, 2, ServiceState::running),
                  report("Web<\"a\\b\">", Placement::per_core, 1, ServiceState::waiting),
                  report("Log", Placement::on_core, 3, ServiceState::failed)};
  all.services[0].state_duration = 2500ms;
  all.services[1].state_duration = 12340ms;
  all.services[1].waits_for = {"A", "B on core 1", "C"};
  all.services[1].uses = {0, 2};
  all.services[2].failure = "no luck";
  all.services[2].may_use = {0, 1};
  return all;
}

TEST(AppStatus, EachStateAndPlacementHasAWord) {
  EXPECT_EQ(to_string(ServiceState::waiting), "waiting");
  EXPECT_EQ(to_string(ServiceState::starting), "starting");
  EXPECT_EQ(to_string(ServiceState::running), "running");
  EXPECT_EQ(to_string(ServiceState::stopping), "stopping");
  EXPECT_EQ(to_string(ServiceState::failed), "failed");
  EXPECT_EQ(to_string(Placement::shared), "shared");
  EXPECT_EQ(to_string(Placement::per_core), "per core");
  EXPECT_EQ(to_string(Placement::on_core), "on core");
}

TEST(AppStatus, TheTextHasOneLineForEachService) {
  EXPECT_EQ(example().to_text(),
            "shop::Store: running (since 2.5 s)\n"
            "Web<\"a\\b\"> on core 1: waiting for A, B on core 1, C (since 12.3 s)\n"
            "Log on core 3: failed: no luck (since 0.0 s)\n");
}

TEST(AppStatus, FailureIsOneLineOfTheText) {
  Explanation all;
  all.services = {report("Log", Placement::shared, 0, ServiceState::failed)};
  all.services[0].failure = "a\nStore: running\x1b[2J\xc2\x9b\xe2\x80\xae";
  EXPECT_EQ(all.to_text(),
            "Log: failed: a\\x0aStore: running\\x1b[2J\\xc2\\x9b\\xe2\\x80\\xae (since 0.0 s)\n");
}

TEST(AppStatus, TheDotGraphHasLabelsColoursAndEdges) {
  EXPECT_EQ(example().to_dot(),
            "digraph services {\n"
            "  rankdir=LR;\n"
            "  node [shape=box, style=filled];\n"
            "  n0 [label=\"shop::Store\", fillcolor=palegreen];\n"
            "  n1 [label=\"Web<\\\"a\\\\b\\\"> on core 1\", fillcolor=lightgrey];\n"
            "  n2 [label=\"Log on core 3\", fillcolor=tomato];\n"
            "  n1 -> n0;\n"
            "  n1 -> n2;\n"
            "  n2 -> n0 [style=dashed];\n"
            "  n2 -> n1 [style=dashed];\n"
            "}\n");
}

TEST(AppStatus, TheDotGraphIsPrintable) {
  Explanation all;
  all.services = {
      report("a\n\x1b[2J\xc2\x9b\xe2\x80\xae", Placement::shared, 0, ServiceState::running)};
  EXPECT_TRUE(all.to_dot().contains(R"([label="a\\x0a\\x1b[2J\\xc2\\x9b\\xe2\\x80\\xae",)"))
      << all.to_dot();
}

TEST(AppStatus, EachStateHasItsColour) {
  constexpr std::array<std::pair<ServiceState, std::string_view>, 5> colours{
      {{ServiceState::waiting, "lightgrey"},
       {ServiceState::starting, "lightyellow"},
       {ServiceState::running, "palegreen"},
       {ServiceState::stopping, "lightsalmon"},
       {ServiceState::failed, "tomato"}}};
  for (const auto& [state, colour] : colours) {
    Explanation one;
    one.services = {report("A", Placement::shared, 0, state)};
    EXPECT_NE(one.to_dot().find("fillcolor=" + std::string(colour) + "]"), std::string::npos)
        << one.to_dot();
  }
}

TEST(AppStatus, TheJsonHasAllMembers) {
  Explanation all = example();
  all.services[1].name = "Web";
  all.services[1].state_duration = 12250ms;
  EXPECT_EQ(all.to_json(),
            "{\"services\":["
            "{\"name\":\"shop::Store\",\"placement\":\"shared\",\"core\":2,\"state\":\"running\","
            "\"seconds\":2.5,\"waits_for\":[],\"failure\":\"\",\"uses\":[],\"may_use\":[]},"
            "{\"name\":\"Web\",\"placement\":\"per core\",\"core\":1,\"state\":\"waiting\","
            "\"seconds\":12.25,\"waits_for\":[\"A\",\"B on core 1\",\"C\"],\"failure\":\"\","
            "\"uses\":[0,2],\"may_use\":[]},"
            "{\"name\":\"Log\",\"placement\":\"on core\",\"core\":3,\"state\":\"failed\","
            "\"seconds\":0.0,\"waits_for\":[],\"failure\":\"no luck\",\"uses\":[],"
            "\"may_use\":[0,1]}]}");
}

}  // namespace
}  // namespace weir::app_status_test
