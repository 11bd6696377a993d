// Tests of the picture of an app's services.
#include "weir/admin/detail/services/service_svg.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::drawing::service_svg_test {
namespace {

/// Returns an explanation with one running shared service for each name.
Explanation services(std::initializer_list<std::string> names) {
  Explanation all;
  for (const std::string& name : names) {
    ServiceReport& made = all.services.emplace_back();
    made.name = name;
    made.id = ServiceId(static_cast<std::uint32_t>(all.services.size()), 1);
    made.state = ServiceState::running;
  }
  return all;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

void expect_part(const std::string& svg, std::string_view part) {
  EXPECT_NE(svg.find(part), svg.npos) << part << "\nin " << svg;
}

TEST(ServiceSvg, BoxesStandInColumnsWithEdgesBetween) {
  Explanation all = services({"A", "B"});
  all.services[0].uses = {1};
  const std::string svg = draw_services(all);
  expect_part(svg, "viewBox=\"0 0 516 78\" width=\"516\" height=\"78\"");
  expect_part(svg,
              "<path class=\"takes\" d=\"M220 39C258 39 258 39 296 39\" "
              "marker-end=\"url(#tip)\"><title>A takes B</title></path>");
  expect_part(svg,
              "<g class=\"box running\"><title>A\nrunning</title><rect x=\"12\" y=\"12\" "
              "width=\"208\" height=\"54\" rx=\"6\"/><text class=\"name\" x=\"24\" "
              "y=\"33\">A</text><text class=\"note\" x=\"24\" y=\"50\">running</text></g>");
  expect_part(svg, "<rect x=\"296\" y=\"12\" width=\"208\" height=\"54\" rx=\"6\"/>");
  EXPECT_EQ(count(svg, "class=\"cell "), 0U) << "each service has one instance";
}

TEST(ServiceSvg, AnEdgeAgainstTheDirectionLeavesOnTheLeft) {
  Explanation all = services({"A", "B"});
  all.services[0].uses = {1};
  all.services[1].may_use = {0, 1};
  const std::string svg = draw_services(all);
  expect_part(svg,
              "<path class=\"may\" d=\"M296 39C258 39 258 39 220 39\" "
              "marker-end=\"url(#tip)\"><title>B may take A</title></path>");
  EXPECT_EQ(count(svg, "<path class=\"takes\""), 1U);
  EXPECT_EQ(count(svg, "<path class=\"may\""), 1U) << "none from B to itself";
}

TEST(ServiceSvg, AnEdgePassesAColumnStraight) {
  Explanation all = services({"A", "B", "C"});
  all.services[0].uses = {1, 2};
  all.services[1].uses = {2};
  const std::string svg = draw_services(all);
  expect_part(svg, "viewBox=\"0 0 800 146\"");
  expect_part(svg, "d=\"M220 56C258 56 258 107 296 107H504C542 107 542 56 580 56\"");
  expect_part(svg, "d=\"M220 56C258 56 258 39 296 39\"");
  expect_part(svg, "d=\"M504 39C542 39 542 56 580 56\"");
}

TEST(ServiceSvg, AnEmptyPictureHasASize) {
  expect_part(draw_services({}), "viewBox=\"0 0 1 10\" width=\"1\" height=\"10\"");
}

/// Returns an explanation with one service on that number of cores.
Explanation on_cores(unsigned cores) {
  Explanation all;
  for (unsigned core = 0; core < cores; ++core) {
    ServiceReport& made = all.services.emplace_back();
    made.name = "A";
    made.id = ServiceId(1, 1);
    made.placement = Placement::per_core;
    made.core = core;
    made.state = core == 1 ? ServiceState::failed : ServiceState::running;
  }
  return all;
}

TEST(ServiceSvg, SeveralInstancesHaveACellEach) {
  const std::string svg = draw_services(on_cores(2));
  expect_part(svg,
              "<rect class=\"cell running\" x=\"24\" y=\"56\" width=\"14\" height=\"5\"/>"
              "<rect class=\"cell failed\" x=\"40\" y=\"56\" width=\"14\" height=\"5\"/></g>");
  EXPECT_EQ(count(draw_services(on_cores(1)), "class=\"cell "), 0U);
}

TEST(ServiceSvg, AtMost48CellsFillABox) {
  const std::string full = draw_services(on_cores(48));
  EXPECT_EQ(count(full, "class=\"cell "), 48U);
  expect_part(full, "x=\"204\" y=\"56\" width=\"3\" height=\"5\"");
  EXPECT_EQ(count(draw_services(on_cores(49)), "class=\"cell "), 48U);
}

TEST(ServiceSvg, LongTextsAreCut) {
  const std::string twenty(20, 'a');
  expect_part(draw_services(services({twenty})), ">" + twenty + "</text>");
  expect_part(draw_services(services({twenty + "b"})), ">" + twenty.substr(1) + "…</text>");
  Explanation all = services({"A"});
  all.services[0].state = ServiceState::failed;
  all.services[0].failure = std::string(600 - 9, 'x');
  expect_part(draw_services(all), "<title>A\nfailed\n" + std::string(591, 'x') + "</title>");
  all.services[0].failure += 'x';
  expect_part(draw_services(all), "<title>A\nfailed\n" + std::string(590, 'x') + "…</title>");
}

TEST(ServiceSvg, ASummaryHasAtMost32Characters) {
  Explanation all = on_cores(3);
  all.services[2].state = ServiceState::stopping;
  expect_part(draw_services(all), ">1 of 3 running, 1 failed, 1 sto…</text>");
  all.services[2].state = ServiceState::running;
  expect_part(draw_services(all), ">2 of 3 running, 1 failed</text>");
}

TEST(ServiceSvg, ATipHasTheReasonsOfAllInstances) {
  Explanation all = on_cores(3);
  all.services[1].failure = "no luck";
  all.services[2].state = ServiceState::waiting;
  all.services[2].waits_for = {"B", "C"};
  expect_part(draw_services(all),
              "<title>A\n1 of 3 running, 1 failed, 1 waiting\nno luck\nwaits for B\n"
              "waits for C</title>");
}

}  // namespace
}  // namespace weir::drawing::service_svg_test
