#include "weir/telemetry/metrics/mount_metrics.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/http/test/http_fixture.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/task/sleep.hpp"
#include "weir/telemetry/metrics/metrics.hpp"
#include "weir/telemetry/metrics/server_metrics.hpp"

namespace weir::telemetry::mount_metrics_test {
namespace {

using namespace std::chrono_literals;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// Returns the lines of `text` that begin with `prefix`.
std::string lines_of(std::string_view text, std::string_view prefix) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n') + 1;
    if (text.starts_with(prefix)) lines += text.substr(0, end);
    text.remove_prefix(end == 0 ? text.size() : end);
  }
  return lines;
}

TEST(MountMetricsTest, AnswersInTheFormatThatTheClientAccepts) {
  const Counter orders("page.orders", {.help = "Orders taken.", .unit = "{order}"});
  orders.add(3);
  http::Router router;
  ASSERT_TRUE(mount_metrics(router, "/metrics", {.memory_bound = 12345}));
  http::TestClient client(router);
  const auto text = client.get("/metrics");
  EXPECT_EQ(text.status(), http::Status::ok);
  EXPECT_EQ(text.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_TRUE(contains(text.body(),
                       "# HELP page_orders_total Orders taken.\n"
                       "# TYPE page_orders_total counter\npage_orders_total 3\n"));
  EXPECT_TRUE(contains(text.body(), "\nweir_memory_bound_bytes 12345\n"));
  EXPECT_TRUE(contains(text.body(), "\nweir_core_turns_total{core=\"0\"} "));
  EXPECT_TRUE(contains(text.body(), "\nweir_http_requests_total 1\n"));

  client.set_header("Accept", "application/openmetrics-text");
  const auto open = client.get("/metrics");
  EXPECT_EQ(open.header("Content-Type"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_TRUE(open.body().ends_with("# EOF\n"));

  client.set_header("Accept",
                    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
                    "encoding=delimited");
  const auto protobuf = client.get("/metrics");
  EXPECT_TRUE(contains(*protobuf.header("Content-Type"), "encoding=delimited"));
  EXPECT_TRUE(contains(protobuf.body(), "page_orders_total"));
}

TEST(MountMetricsTest, RejectsAPathThatIsTaken) {
  http::Router router;
  ASSERT_TRUE(mount_metrics(router));
  EXPECT_FALSE(mount_metrics(router));
  EXPECT_FALSE(mount_metrics(router, "metrics"));
}

TEST(MountMetricsTest, LeavesOutTheMetricsOfWeir) {
  http::Router router;
  ASSERT_TRUE(mount_metrics(router, "/metrics", {.runtime = false}));
  http::TestClient client(router);
  EXPECT_FALSE(contains(client.get("/metrics").body(), "weir_"));
}

TEST(MountMetricsTest, CountsDroppedMeasurements) {
  const Counter users("page.users", {.labels = {"user"}, .label_sets_max = 1});
  users.with("one").add();
  users.with("two").add(10);
  users.with("three").add(10);
  http::Router router;
  ASSERT_TRUE(mount_metrics(router));
  http::TestClient client(router);
  const std::string page(client.get("/metrics").body());
  EXPECT_EQ(lines_of(page, "page_users"), "page_users_total{user=\"one\"} 1\n");
  EXPECT_TRUE(contains(page, "telemetry_measurements_dropped_total{metric=\"page.users\"} 2\n"));
}

class MetricsPageTest : public HttpTest {
 protected:
  MetricsPageTest() {
    routes_.get("/items/{id}", [](std::string_view) { return http::text("item"); });
    routes_.get("/slow", []() -> Task<http::Response> {
      std::ignore = co_await sleep(2s);
      co_return http::text("slow");
    });
    routes_.get("/metrics", MetricsPage());
    observer_ = &metrics_;
  }
  static std::string request(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  std::string page() {
    MemoryPeer& peer = connect();
    std::string bytes = talk(peer, request("/metrics"));
    for (std::string more(1, 'x'); !more.empty(); bytes += more) {
      settle();  // the server goes on when the client has read
      more = peer.take();
    }
    const auto answers = sim::parse_http_responses(bytes);
    return answers.empty() ? std::string() : answers.front().body;
  }

  ServerMetrics metrics_;
};

TEST_F(MetricsPageTest, HasTheDurationsOfRequestsByRoute) {
  serve();
  talk(connect(), request("/items/7") + request("/items/8"));
  talk(connect(), request("/slow"));
  pass(3s);
  MemoryPeer& gone = connect();
  talk(gone, request("/slow"));
  const std::string before = page();
  EXPECT_TRUE(contains(before, "\nhttp_server_active_requests 2\n")) << "one of them is the page";
  gone.reset();
  pass(3s);
  const std::string text = page();
  constexpr std::string_view count = "http_server_request_duration_seconds_count";
  const std::string counts = lines_of(text, count);
  const auto labels = [](std::string_view route, std::string_view rest) {
    return "{http_request_method=\"GET\",http_route=\"" + std::string(route) + "\"," +
           std::string(rest) + "} ";
  };
  constexpr std::string_view ok =
      "http_response_status_code=\"200\",network_protocol_version=\"1.1\"";
  EXPECT_TRUE(contains(counts, labels("/items/{id}", ok) + "2\n")) << counts;
  EXPECT_TRUE(contains(counts, labels("/slow", ok) + "1\n")) << counts;
  EXPECT_TRUE(contains(counts, labels("/slow",
                                      "network_protocol_version=\"1.1\","
                                      "error_type=\"client_left\"") +
                                   "1\n"))
      << counts;
  const std::string sums = lines_of(text, "http_server_request_duration_seconds_sum");
  EXPECT_TRUE(contains(sums, labels("/slow", ok) + "2\n")) << sums;
  const std::string bucket = "http_server_request_duration_seconds_bucket" +
                             labels("/slow", std::string(ok) + ",le=\"2.5\"");
  EXPECT_TRUE(contains(text, bucket + "1\n"));
}

TEST_F(MetricsPageTest, WritesALargePageInPieces) {
  const Counter many("page.many", {.labels = {"number"}, .label_sets_max = 10'000});
  for (int number = 0; number < 10'000; ++number) many.with(std::to_string(number)).add();
  serve();
  const std::uint64_t before = loop_->counters().turns.value();
  const std::string text = page();
  EXPECT_GT(loop_->counters().turns.value() - before, 10'000U / 256U);
  const std::string lines = lines_of(text, "page_many_total{");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 10'000);
}

TEST_F(MetricsPageTest, EndsWithAClientThatLeaves) {
  const Counter many("page.many", {.labels = {"number"}, .label_sets_max = 10'000});
  for (int number = 0; number < 10'000; ++number) many.with(std::to_string(number)).add();
  serve();
  MemoryPeer& peer = connect();
  peer.send(request("/metrics"));
  for (int count = 0; count < 20; ++count) turn();
  peer.reset();
  settle();
  pass(1s);
  expect_at_rest();
}

}  // namespace
}  // namespace weir::telemetry::mount_metrics_test
