// Tests of the live page of an app's services.
#include "weir/admin/detail/services/service_page.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/detail/services/service_groups.hpp"
#include "weir/admin/detail/services/service_svg.hpp"
#include "weir/json/read.hpp"

namespace weir::drawing::service_page_test {
namespace {

using namespace std::chrono_literals;

ServiceReport report(std::string name, std::uint32_t id, unsigned core, ServiceState state) {
  ServiceReport made;
  made.name = std::move(name);
  made.id = ServiceId(id, 1);
  made.placement = Placement::per_core;
  made.core = core;
  made.state = state;
  return made;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns an explanation with two Webs, which take one Store each; the first may use a Cache.
Explanation example() {
  Explanation all;
  all.services = {report("shop::Web", 1, 0, ServiceState::running),
                  report("shop::Web", 1, 1, ServiceState::waiting),
                  report("shop::Store", 2, 0, ServiceState::running),
                  report("shop::Store", 2, 1, ServiceState::failed),
                  report("(anonymous namespace)::Cache<a::B>", 3, 0, ServiceState::running)};
  all.services[0].uses = {2};
  all.services[0].may_use = {4};
  all.services[1].uses = {3};
  all.services[1].waits_for = {"shop::Store on core 1"};
  all.services[3].failure = "no such file";
  all.services[4].state_duration = 90min;
  return all;
}

TEST(ServicePage, EachServiceIsDrawnOnce) {
  const ServiceGroups groups = group_instances(example());
  ASSERT_EQ(groups.all.size(), 3U);
  EXPECT_EQ(groups.all[0].state(), ServiceState::waiting);
  EXPECT_EQ(groups.all[0].summary(example()), "1 of 2 running, 1 waiting");
  EXPECT_EQ(groups.all[1].state(), ServiceState::failed);
  EXPECT_EQ(groups.all[2].summary(example()), "running on core 0");
  ASSERT_EQ(groups.edges.size(), 2U);
  EXPECT_TRUE(groups.edges[0].required);
  EXPECT_FALSE(groups.edges[1].required);
  const std::string svg = draw_services(example());
  EXPECT_EQ(count(svg, "class=\"box "), 3U);
  EXPECT_EQ(count(svg, "class=\"takes\""), 1U);
  EXPECT_EQ(count(svg, "class=\"may\""), 1U);
  EXPECT_EQ(count(svg, "class=\"cell "), 4U);
  EXPECT_NE(svg.find(">Cache&lt;B&gt;</text>"), svg.npos) << svg;
}

TEST(ServicePage, TheLastPartOfANameIsShown) {
  EXPECT_EQ(short_name("Web"), "Web");
  EXPECT_EQ(short_name("a::b::Web"), "Web");
  EXPECT_EQ(short_name("a::(anonymous namespace)::Web<x::Y<z::Q>, r::S>"), "Web<Y<Q>, S>");
  EXPECT_EQ(short_name("a::Web<x>::In"), "In");
  EXPECT_EQ(short_name("a::F<int (b::C, const d::E *)>"), "F<int (C, const E *)>");
  EXPECT_EQ(short_name("a::f(b::C)::Local"), "Local");
  EXPECT_EQ(short_name("odd::"), "odd::");
  EXPECT_EQ(short_name("a>b::C<d::E>"), "C<E>") << "a bracket that closes nothing";
}

TEST(ServicePage, ThePageShowsStatesAgesAndReasons) {
  ServicePage page{"shop", example(), {}, 2s};
  const std::string html = to_html(page);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(html.find("<meta http-equiv=\"refresh\" content=\"2\">"), html.npos);
  EXPECT_NE(html.find(">3 running<"), html.npos) << html;
  EXPECT_NE(html.find("no such file"), html.npos);
  EXPECT_NE(html.find("for shop::Store on core 1"), html.npos);
  EXPECT_NE(html.find("90 min"), html.npos);
  EXPECT_EQ(html.find("Events"), html.npos);
  page.refresh = Duration::zero();
  page.events = {{1, 12, 3.25, 0, 0}};
  const std::string still = to_html(page);
  EXPECT_EQ(still.find("http-equiv"), still.npos);
  EXPECT_NE(still.find(">3.3<"), still.npos) << still;
}

TEST(ServicePage, NoTextBecomesMarkup) {
  const std::string evil = "\"'><script>alert(1)</script>&amp;<img src=x onerror=alert(1)>";
  Explanation all;
  for (const ServiceState state :
       {ServiceState::waiting, ServiceState::failed, ServiceState::running}) {
    all.services.push_back(report(evil, static_cast<std::uint32_t>(all.services.size()), 0, state));
    all.services.back().failure = evil;
    all.services.back().waits_for = {evil};
    all.services.back().uses = {0};
    all.services.back().may_use = {0};
  }
  const std::string html = to_html({evil, all, {}, 1s});
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_EQ(html.find("<img"), html.npos);
  EXPECT_EQ(html.find("\"'>"), html.npos);
  EXPECT_EQ(html.find("&amp;<"), html.npos);
  EXPECT_NE(html.find("&quot;&#39;&gt;&lt;script&gt;"), html.npos);
}

TEST(ServicePage, JsonHasTheSameData) {
  struct Event {
    unsigned core;
    std::uint64_t handled;
    double per_second;
    std::uint64_t rejected;
    std::uint64_t failures;
  };
  struct Service {
    std::string name;
    std::string placement;
    unsigned core;
    std::string state;
    double seconds;
    std::vector<std::string> waits_for;
    std::string failure;
    std::vector<std::size_t> uses;
    std::vector<std::size_t> may_use;
  };
  struct All {
    std::vector<Service> services;
    std::vector<Event> events;
  };
  const ServicePage page{"x", example(), {{1, 12, 3.5, 0, 0}}, 1s};
  const auto read = json::read<All>(to_json(page));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->services.size(), 5U);
  ASSERT_EQ(read->events.size(), 1U);
  EXPECT_EQ(read->events[0].per_second, 3.5);
}

TEST(ServicePage, AnEmptyAppHasAPage) {
  const std::string html = to_html({"x", {}, {}, 1s});
  EXPECT_NE(html.find("There are no services."), html.npos);
  EXPECT_NE(html.find("</svg>"), html.npos);
}

TEST(ServicePage, ARowHasAllDataOfAnInstance) {
  const std::string html = to_html({"x", example(), {}, 1s});
  EXPECT_NE(html.find("<tr><td>shop::Web</td><td class=\"fixed\">core 0</td><td class=\"fixed\">"
                      "<span class=\"state running\">running</span></td><td class=\"count\">0.0 s"
                      "</td><td></td><td>Store, Cache&lt;B&gt; (optional)</td></tr>\n"),
            html.npos)
      << html;
  EXPECT_NE(html.find("<tr><td>shop::Store</td><td class=\"fixed\">core 1</td><td class=\"fixed\">"
                      "<span class=\"state failed\">failed</span></td><td class=\"count\">0.0 s"
                      "</td><td>no such file</td><td></td></tr>\n"),
            html.npos)
      << html;
  EXPECT_NE(html.find("<p><span class=\"state running\">3 running</span> <span class=\"state "
                      "waiting\">1 waiting</span> <span class=\"state failed\">1 failed</span> "
                      "</p>"),
            html.npos)
      << html;
  EXPECT_EQ(count(html, "<tr><td>"), 5U);
}

TEST(ServicePage, ReasonsAreSeparatedAndSharedServicesHaveNoCore) {
  Explanation all = example();
  all.services[0].placement = Placement::shared;
  all.services[1].waits_for = {"A", "B", "C"};
  const std::string html = to_html({"x", all, {}, 1s});
  EXPECT_NE(html.find("<td>shop::Web</td><td class=\"fixed\">shared</td>"), html.npos) << html;
  EXPECT_NE(html.find("<td>for A, B, C</td>"), html.npos) << html;
}

TEST(ServicePage, AnAgeHasTheUnitThatFits) {
  const std::vector<std::pair<Duration, std::string>> ages{
      {99ms, "0.0 s"}, {100ms, "0.1 s"},      {12340ms, "12.3 s"}, {2min - 1ms, "119.9 s"},
      {2min, "2 min"}, {2h - 1ms, "119 min"}, {2h, "2 h"},         {48h - 1ms, "47 h"},
      {48h, "2 days"}, {71h, "2 days"},       {72h, "3 days"}};
  for (const auto& [length, text] : ages) {
    Explanation all;
    all.services = {report("A", 1, 0, ServiceState::running)};
    all.services[0].state_duration = length;
    const std::string html = to_html({"x", all, {}, 1s});
    EXPECT_NE(html.find("<td class=\"count\">" + text + "</td>"), html.npos) << text;
  }
}

TEST(ServicePage, TheReloadIntervalIsRoundedUp) {
  for (const auto& [refresh, text] : std::vector<std::pair<Duration, std::string>>{
           {1ns, "1"}, {1s, "1"}, {1001ms, "2"}, {60s, "60"}}) {
    EXPECT_EQ(count(to_html({"x", {}, {}, refresh}),
                    "<meta http-equiv=\"refresh\" content=\"" + text + "\">"),
              1U)
        << text;
  }
}

TEST(ServicePage, EachCoresEventsAreARow) {
  const ServicePage page{"x", {}, {{0, 12, 3.25, 4, 5}, {1, 7, 10, 8, 9}}, 1s};
  const std::string html = to_html(page);
  EXPECT_NE(html.find("<tr><td class=\"count\">0</td><td class=\"count\">3.3</td><td "
                      "class=\"count\">12</td><td class=\"count\">4</td><td "
                      "class=\"count\">5</td></tr>\n<tr><td class=\"count\">1</td><td "
                      "class=\"count\">10.0</td><td class=\"count\">7</td><td "
                      "class=\"count\">8</td><td class=\"count\">9</td></tr>\n</table>"),
            html.npos)
      << html;
  EXPECT_EQ(to_json(page),
            "{\"services\":[],\"events\":[{\"core\":0,\"handled\":12,\"per_second\":3.25,"
            "\"rejected\":4,\"failures\":5},{\"core\":1,\"handled\":7,\"per_second\":10.0,"
            "\"rejected\":8,\"failures\":9}]}");
}

}  // namespace
}  // namespace weir::drawing::service_page_test
