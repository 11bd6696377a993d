// Tests of the pages about a runtime, made of reports with planted faults.
#include "weir/admin/detail/pages/runtime_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin::runtime_pages_test {
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
    answer.snapshot = std::make_shared<CoreSnapshot>();
    view.cores.push_back(answer);
  }
  return view;
}

/// Returns the snapshot of a core, for changes.
CoreSnapshot& snapshot_of(RuntimeView& view, std::size_t core) {
  return const_cast<CoreSnapshot&>(*view.cores[core].snapshot);
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
  snapshot_of(view, 0).at = snapshot_of(view, 1).at = Instant(10s);
  snapshot_of(view, 0).targets = {{.origin = "http://store:1", .opened = 5}};
  snapshot_of(view, 1).targets = {{.origin = "http://store:1",
                                   .failed = 2,
                                   .failing_since = Instant(4s),
                                   .last_error = make_error_code(std::errc::connection_refused)}};
  EXPECT_TRUE(finds(view, "client target http://store:1 is unreachable since 6.0 s: ", "clients"));
  EXPECT_TRUE(to_json(clients_page(view), {})
                  .contains(R"("state":"unreachable","failing_seconds":6,"last_error":"Conn)"));
}

TEST(RuntimePages, FindATargetThatAnswersTooLate) {
  RuntimeView view = view_of(1);
  snapshot_of(view, 0).at = Instant(100s);
  snapshot_of(view, 0).targets = {{.origin = "http://store:1",
                                   .opened = 5,
                                   .requests_failed = 2,
                                   .request_failed_at = Instant(95s),
                                   .request_error = make_error_code(std::errc::timed_out)}};
  EXPECT_TRUE(finds(view, "client target http://store:1: a request failed 5.0 s ago: ", "clients"));
  snapshot_of(view, 0).at = Instant(200s);
  EXPECT_TRUE(findings_of(view).empty()) << "it was long ago";
  snapshot_of(view, 0).uses = {
      {.origin = "http://store:1", .open = 64, .waiting = 7, .is_full = true}};
  EXPECT_TRUE(finds(view, "http://store:1: 7 requests wait, because all connections", "clients"));
  EXPECT_TRUE(to_json(clients_page(view), {}).contains(R"("open":64,"idle":0,"waiting":7)"));
}

TEST(RuntimePages, FindRequestsWithoutAnAnswer) {
  RuntimeView view = view_of(1);
  ConnectionReport connection;
  connection.state = "runs handler";
  connection.route = "GET /stuck, GET /fast";
  connection.unanswered = 9s;
  connection.unanswered_route = "GET /stuck";
  snapshot_of(view, 0).servers = {{.connections = {connection, connection}}};
  std::vector<ConnectionReport>& connections = snapshot_of(view, 0).servers[0].connections;
  EXPECT_TRUE(findings_of(view).empty());
  connections[1].unanswered = 90s;
  EXPECT_TRUE(finds(view, "a request of GET /stuck got no answer for up to 90.0 s", "tasks"));
  connections[0].unanswered = 10s;
  EXPECT_TRUE(finds(view, "2 requests of GET /stuck got no answer for up to 90.0 s", "tasks"));
}

TEST(RuntimePages, FindWhatTheMachineTakes) {
  RuntimeView view = view_of(1);
  view.machine = {{.check = "descriptors",
                   .severity = checks::Severity::limits,
                   .found = "at most 70 open files",
                   .wanted = "20,074",
                   .consequence = "6 connections",
                   .remedy = "ulimit -n 20074"}};
  EXPECT_TRUE(
      finds(view, "machine: descriptors: at most 70 open files, wanted 20,074: 6 conn", ""));
  EXPECT_TRUE(
      to_text({.name = "x", .title = "x", .sections = {findings_section(findings_of(view))}}, {})
          .contains("ulimit -n 20074"));
}

TEST(RuntimePages, FindTheWorstFirstAndNotTooMany) {
  RuntimeView view = view_of(1);
  const http::RouteName route{.pattern = "/slow"};
  for (int i = 0; i < 20; ++i) {
    view.routes.push_back(
        {.route = &route, .method = http::Method::get, .recent_requests = 9, .p50 = 1s});
  }
  view.cores[0].answered = false;
  view.cores[0].waited = 1s;
  const Findings findings = findings_of(view);
  ASSERT_EQ(findings.size(), 7U);
  EXPECT_EQ(findings[0].tone, Tone::bad);
  EXPECT_EQ(findings[1].text, "GET /slow takes 1.0 s (median)");
  EXPECT_EQ(findings[6].text, "15 more of this kind");
  EXPECT_EQ(findings[6].page, "routes");
}

TEST(RuntimePages, ShowMemoryAgainstItsBoundAndOverTime) {
  RuntimeView view = view_of(1);
  view.bound = http::MemoryBound{.idle_connection = 100,
                                 .connection = 1000,
                                 .core = 0,
                                 .cached_blocks = 0,
                                 .connections = 1000,
                                 .cores = 1};
  view.memory = ProcessMemory{.resident_bytes = 3'000'000, .file_bytes = 1'000'000};
  view.seen.memory = {{.age = 15s, .resident_bytes = 2'000'000, .frames = 7}};
  const std::string page = to_json(memory_page(view), {});
  EXPECT_TRUE(page.contains(R"("own_bytes":2000000)")) << page;
  EXPECT_TRUE(page.contains(R"("history":[{"age_seconds":15,"resident_bytes":2000000,"frames":7)"));
  EXPECT_TRUE(page.contains(R"("bound_share":2)")) << page;
}

TEST(RuntimePages, ShowRatesOfTheRecentTime) {
  RuntimeView view = view_of(1);
  view.seen.now.cores[0].metrics = {{"http requests", 300}};
  view.seen.recent.cores[0].metrics = {{"http requests", 100}};
  EXPECT_TRUE(to_json(cores_page(view), {}).contains(R"("requests_per_second":100)"));
}

/// Returns a page that is made in several turns.
class LongPagesTest : public HttpTest {
 protected:
  Page connections(const RuntimeView& view) { return weir::run(*loop_, connections_page(view)); }
  std::string rendered(Page page, Format format) {
    const Frame frame{};
    return weir::run(*loop_, render(std::move(page), frame, format));
  }
  std::uint64_t turns() const { return loop_->counters().turns.value(); }
};

TEST_F(LongPagesTest, EscapeTheNamesOfPeersAndRoutes) {
  RuntimeView view = view_of(1);
  ServerReport server;
  server.open = 3;
  ConnectionReport connection;
  connection.peer = *os::Address::parse("unix:/<script>");
  connection.protocol = "HTTP/1.1";
  connection.state = "runs handler";
  connection.route = "GET /<script>\"'\xff\x1b[2J";
  connection.age = 7s;
  connection.received = 12;
  server.connections.push_back(connection);
  snapshot_of(view, 0).servers.push_back(server);
  const std::string html = rendered(connections(view), Format::html);
  EXPECT_FALSE(html.contains("<script"));
  EXPECT_TRUE(html.contains("GET /&lt;script&gt;&quot;&#39;"));
  EXPECT_FALSE(html.contains('\x1b'));
  EXPECT_FALSE(html.contains('\xff'));
  EXPECT_TRUE(html.contains("2 more rows are not shown."));
  const std::string text = rendered(connections(view), Format::text);
  EXPECT_FALSE(text.contains('\x1b'));
  EXPECT_FALSE(text.contains('\xff'));
  const std::string as_json = rendered(connections(view), Format::json);
  EXPECT_TRUE(as_json.contains(R"("age_seconds":7,)")) << as_json;
  EXPECT_TRUE(as_json.contains(R"("received_bytes":12,)"));
  EXPECT_TRUE(as_json.contains(R"("connections_left_out":2)"));
  EXPECT_TRUE(as_json.contains(R"(GET /<script>\"')")) << as_json;
  EXPECT_FALSE(as_json.contains('\x1b'));
  EXPECT_FALSE(as_json.contains('\xff'));
}

TEST_F(LongPagesTest, AreCutAndRenderedInManyTurns) {
  RuntimeView view = view_of(2);
  for (std::size_t core = 0; core < 2; ++core) {
    ServerReport server;
    server.open = 20'000;
    for (int i = 0; i < 600; ++i) {
      ConnectionReport& each = server.connections.emplace_back();
      each.age = (i + 1) * 1s + static_cast<int>(core) * 1ms;
      each.route = "GET /things/{id}";
    }
    snapshot_of(view, core).servers.push_back(std::move(server));
  }
  const std::uint64_t before = turns();
  Page page = connections(view);
  EXPECT_GE(turns() - before, rows_max / TurnBudget::items_max);
  const Section& table = page.sections.at(1);
  ASSERT_EQ(table.rows.size(), rows_max);
  EXPECT_EQ(table.left_out, 40'000 - rows_max);
  EXPECT_EQ(table.rows[0][1].to_text(), "10 min") << "the oldest of both cores comes first";
  for (const Format format : {Format::html, Format::json, Format::text}) {
    const std::uint64_t between = turns();
    const std::string body = rendered(page, format);
    EXPECT_GT(body.size(), rows_max * 50);
    EXPECT_GE(turns() - between, rows_max / TurnBudget::items_max);
    const Frame frame{};
    EXPECT_TRUE(body == (format == Format::html   ? to_html(page, frame)
                         : format == Format::json ? to_json(page, frame)
                                                  : to_text(page, frame)))
        << "the turns change nothing";
  }
}

TEST_F(LongPagesTest, RenderALongTextByLines) {
  Page page{.name = "x", .title = "x"};
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += "line <" + std::to_string(i) + ">\n";
  page.sections.push_back({.key = "tree", .title = {}, .preformatted = lines});
  const std::uint64_t before = turns();
  EXPECT_TRUE(rendered(page, Format::text).contains(lines));
  EXPECT_GE(turns() - before, 1U);
  const std::string html = rendered(page, Format::html);
  EXPECT_TRUE(html.contains("<pre>line &lt;0&gt;\nline &lt;1&gt;\n"));
  EXPECT_TRUE(html.contains("line &lt;4999&gt;\n</pre>"));
  EXPECT_TRUE(rendered(page, Format::json).ends_with("line <4999>\\n\"}"));
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
}  // namespace weir::admin::runtime_pages_test
