// Tests of the pages about a runtime, made of reports with planted faults.
#include "weir/admin/detail/pages/runtime_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace weir::admin {
namespace {

using namespace std::chrono_literals;

RuntimeReport report_of(std::size_t cores) {
  RuntimeReport report;
  for (unsigned i = 0; i < cores; ++i) {
    CoreReport core;
    core.core = i;
    core.backend = "memory";
    report.cores.push_back(core);
  }
  return report;
}

RuntimeView view_of(std::size_t cores) {
  RuntimeView view;
  view.seen.now = view.seen.recent = view.seen.oldest = report_of(cores);
  view.seen.recent_age = 2s;
  view.seen.oldest_age = 30s;
  for (unsigned i = 0; i < cores; ++i) {
    CoreAnswer answer;
    answer.core = i;
    answer.answered = true;
    view.cores.push_back(answer);
  }
  return view;
}

/// Returns true if a finding has this text and leads to this page.
bool finds(const RuntimeView& view, std::string_view text, std::string_view page) {
  return std::ranges::any_of(findings_of(view), [&](const Finding& each) {
    return each.text.contains(text) && each.page == page;
  });
}

TEST(RuntimePages, FindNothingInAHealthyRuntime) {
  const RuntimeView view = view_of(2);
  EXPECT_TRUE(findings_of(view).empty());
  EXPECT_TRUE(to_text({.name = "x", .title = "x", .sections = {findings_section({})}}, {})
                  .contains("Nothing looks wrong."));
}

TEST(RuntimePages, FindABusyCoreAndOneWithoutAnAnswer) {
  RuntimeView view = view_of(2);
  view.seen.now.cores[0].cpu_time = 1900ms;
  view.cores[1].answered = false;
  view.cores[1].waited = 3s;
  EXPECT_TRUE(finds(view, "core 0 is 95.0 % busy", "cores"));
  EXPECT_TRUE(finds(view, "core 1 does not answer since 3.0 s", "cores"));
  EXPECT_TRUE(to_text(cores_page(view), {}).contains("!! no answer since 3.0 s"));
}

TEST(RuntimePages, FindSlowTurnsAndTheirCause) {
  RuntimeView view = view_of(1);
  view.seen.now.cores[0].slow_turns = 4;
  view.seen.now.stalls = {{"GET /slow", 4, 120ms}};
  EXPECT_TRUE(finds(view, "4 slow turns in the last 2.0 s; most by GET /slow", "slow_turns"));
  view.seen.recent.cores[0].slow_turns = 4;
  EXPECT_TRUE(finds(view, "4 slow turns since the start; most by GET /slow", "slow_turns"));
  EXPECT_TRUE(
      to_json(slow_turns_page(view), {})
          .contains(R"({"cause":"GET /slow","turns":4,"recent":4,"longest_seconds":0.12})"));
}

TEST(RuntimePages, FindASaturatedPool) {
  RuntimeView view = view_of(1);
  PoolReport pool;
  pool.size = pool.running = 2;
  pool.queued = 6;
  PoolLaneReport lane;
  lane.queued = 6;
  lane.running = 2;
  pool.lanes.push_back(lane);
  view.pools.emplace_back("images", pool);
  EXPECT_TRUE(
      finds(view, "pool images is saturated: 2 threads have work and 6 calls wait", "pools"));
  view.pools[0].second.queued = 0;
  EXPECT_TRUE(findings_of(view).empty()) << "busy threads alone are no fault";
}

TEST(RuntimePages, FindWhatGrows) {
  RuntimeView view = view_of(1);
  view.seen.oldest.cores[0].frames_in_use = 1000;
  view.seen.now.cores[0].frames_in_use = 1600;
  EXPECT_TRUE(finds(view, "coroutine frames grew from 1,000 to 1,600 in 30.0 s", "memory"));
  view.seen.oldest_age = 10s;
  EXPECT_TRUE(findings_of(view).empty()) << "too early to tell";
  view.seen.oldest_age = 30s;
  view.seen.now.cores[0].frames_in_use = 1400;
  EXPECT_TRUE(findings_of(view).empty());
  view.seen.oldest_resident_bytes = 100 << 20;
  view.seen.resident_bytes = 200 << 20;
  EXPECT_TRUE(finds(view, "resident memory grew from 100 MiB to 200 MiB", "memory"));
}

TEST(RuntimePages, FindATargetThatFails) {
  RuntimeView view = view_of(2);
  view.cores[0].snapshot.at = view.cores[1].snapshot.at = Instant(10s);
  view.cores[0].snapshot.targets = {{.origin = "http://store:1", .opened = 5}};
  view.cores[1].snapshot.targets = {{.origin = "http://store:1",
                                     .failed = 2,
                                     .failing_since = Instant(4s),
                                     .last_error = make_error_code(std::errc::connection_refused)}};
  EXPECT_TRUE(finds(view, "client target http://store:1 fails since 6.0 s: ", "clients"));
  EXPECT_TRUE(to_json(clients_page(view), {})
                  .contains(R"("state":"fails","failing_seconds":6,"opened":5,"failed":2)"));
}

TEST(RuntimePages, ShowRatesOfTheRecentTime) {
  RuntimeView view = view_of(1);
  view.seen.now.cores[0].metrics = {{"http requests", 300}};
  view.seen.recent.cores[0].metrics = {{"http requests", 100}};
  EXPECT_TRUE(to_json(cores_page(view), {}).contains(R"("requests_per_second":100)"));
}

TEST(RuntimePages, EscapeTheNamesOfPeersAndRoutes) {
  RuntimeView view = view_of(1);
  ServerReport server;
  server.open = 1;
  ConnectionReport connection;
  connection.peer = *os::Address::parse("unix:/<script>");
  connection.protocol = "HTTP/1.1";
  connection.state = "runs handler";
  connection.route = "GET /<script>";
  server.connections.push_back(connection);
  view.cores[0].snapshot.servers.push_back(server);
  const std::string html = to_html(connections_page(view), {});
  EXPECT_FALSE(html.contains("<script"));
  EXPECT_TRUE(html.contains("GET /&lt;script&gt;"));
}

TEST(History, KeepsOlderReportsForRatesAndGrowth) {
  History history;
  RuntimeReport report = report_of(1);
  const Instant start(100s);
  EXPECT_EQ(history.observe(report, 1, start).recent_age, Duration::zero());
  report.cores[0].turns = 50;
  const Observation second = history.observe(report, 2, start + 500ms);
  EXPECT_EQ(second.recent_age, 500ms);
  EXPECT_EQ(second.recent.cores[0].turns, 0U);
  for (int i = 1; i <= 60; ++i) {
    report.cores[0].turns = 50 + static_cast<std::uint64_t>(i);
    static_cast<void>(history.observe(report, 3, start + i * 1s));
  }
  const Observation later = history.observe(report, 4, start + 61s);
  EXPECT_EQ(later.recent_age, 5s);
  EXPECT_EQ(later.oldest_age, 61s);
  EXPECT_EQ(later.oldest_resident_bytes, 1U);
  EXPECT_EQ(later.resident_bytes, 4U);
  // In another run, the counters begin again.
  const Observation other = history.observe(report_of(1), 5, start + 62s);
  EXPECT_EQ(other.recent_age, Duration::zero());
}

TEST(History, HasNoNegativeRates) {
  EXPECT_EQ(rate_of(5, 10, 1s), 0);
  EXPECT_EQ(rate_of(10, 5, Duration::zero()), 0);
  EXPECT_EQ(rate_of(10, 5, 2s), 2.5);
}

}  // namespace
}  // namespace weir::admin
