// Compares the metrics of a program that uses all parts of Weir with their list in
// docs/guide/metrics.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/admin/listener.hpp"
#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/event/detail/subscriber_table.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/log/log_service.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/telemetry/metrics/client_metrics.hpp"
#include "weir/telemetry/metrics/server_metrics.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/web/encoding/detail/encoding_core.hpp"
#include "weir/web/proxy/detail/proxy_core.hpp"

namespace weir::metric_families_test {
namespace {

using namespace std::chrono_literals;

using Families = std::map<std::string, std::string, std::less<>>;  // kinds by name

/// Returns the families of a page in the text format.
Families families_of(std::string_view page) {
  Families families;
  std::istringstream lines{std::string(page)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, type, name, kind;
    if (!(words >> hash >> type >> name >> kind) || hash != "#" || type != "TYPE") continue;
    EXPECT_TRUE(families.emplace(name, kind).second) << name << " twice";
  }
  return families;
}

/// Returns the families in the tables of the guide: `| name | kind | ...`.
Families documented() {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  std::ifstream guide(folder / "docs/guide/metrics.md");
  EXPECT_TRUE(guide.good()) << folder;
  Families families;
  for (std::string line; std::getline(guide, line);) {
    std::istringstream words(line);
    std::string bar, name, second, kind;
    if (!(words >> bar >> name >> second >> kind) || bar != "|" || second != "|") continue;
    if (kind != "counter" && kind != "gauge" && kind != "histogram") continue;
    EXPECT_TRUE(name.starts_with('`') && name.ends_with('`')) << line;
    EXPECT_TRUE(families.emplace(name.substr(1, name.size() - 2), kind).second) << line;
  }
  return families;
}

class MetricFamiliesTest : public AppTest {
 protected:
  sim::HttpResponse ask(const os::Address& at, const std::string& path,
                        const std::string& host = "localhost") {
    MemoryPeer peer(platform_, at);
    peer.send("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    platform_.advance(*loop_, 1s);
    const auto answers = sim::parse_http_responses(peer.received());
    EXPECT_EQ(answers.size(), 1U) << path;
    return answers.empty() ? sim::HttpResponse() : answers.front();
  }
};

TEST_F(MetricFamiliesTest, AreThoseOfTheGuide) {
  const os::Address admin_at = os::Address::loopback(9090);
  const os::Address server_at = os::Address::loopback(8080);
  telemetry::ServerMetrics server_metrics;
  telemetry::ClientMetrics client_metrics;
  BlockingPool images(platform_, {.name = "images", .size = {.fixed = 2}, .lane = {}});
  {
    http::ClientOptions client_options;
    client_options.observer = &client_metrics;
    http::Client client(std::move(client_options));
    dns::Resolver resolver;
    // These parts register their metrics with their first use.
    detail::SubscriberTable events;
    events.bind(*loop_);
    http::WsDeflateCore::of(*loop_);
    http::detail::EncodingCore::of(*loop_);
    const http::ReverseProxyOptions proxy_options;
    const std::vector upstreams{http::Url::parse("http://127.0.0.1:81").value()};
    const http::ProxyCore proxy(*loop_, upstreams, proxy_options,
                                std::make_shared<http::UpstreamPlan>());
    tls::detail::TlsCounters::of(*loop_).count_failure(Errc::cancelled);
    LogRing log(8192, 0);
    loop_->metrics().add(log);
    loop_->group().stall_log().add({.name = "a handler"}, 60ms);

    http::Router router;
    router.get("/pool", [&images]() -> Task<http::Response> {
      const auto done = co_await images.run([] {});
      co_return done ? http::Status::ok : http::Status::internal_error;
    });
    router.get("/client", [&client, &resolver]() -> Task<http::Response> {
      const auto refused = co_await client.get("http://127.0.0.1:9/");
      std::ignore = co_await resolver.resolve("localhost");
      co_return refused ? http::Status::internal_error : http::Status::ok;
    });
    const http::MemoryBound bound = http::memory_bound({.connections_max = 10}, {});
    AdminListener admin({.endpoint = admin_at, .memory_bound = bound});
    serve_admin(app_, admin);
    serve_http(app_, router, {.endpoint = server_at, .observer = &server_metrics});
    ASSERT_TRUE(start());
    const telemetry::Counter dropped("app.dropped", {.labels = {"user"}});
    dropped.add();  // a metric with labels has no series without them
    EXPECT_EQ(ask(server_at, "/pool").status, 200);
    EXPECT_EQ(ask(server_at, "/client").status, 200);
    EXPECT_EQ(ask(server_at, "/", "a b").status, 400);
    const std::string page = ask(admin_at, "/metrics").body;
    EXPECT_TRUE(
        page.contains("\nweir_pool_lane_finished_total{pool=\"images\",lane=\"work\"} 1\n"));
    EXPECT_TRUE(
        page.contains("\nweir_client_connections_failed_total{origin=\"http://127.0.0.1:9\"} 1\n"));
    if (const char* const file = std::getenv("WEIR_METRICS_PAGE")) {
      std::ofstream(file) << page;  // for `promtool check metrics`
    }
    Families present = families_of(page);
    EXPECT_EQ(present.erase("app_dropped_total"), 1U);
    const Families expected = documented();
    for (const auto& [name, kind] : present) {
      const auto found = expected.find(name);
      EXPECT_NE(found, expected.end()) << "not in the guide: " << name << " " << kind;
      if (found != expected.end()) {
        EXPECT_EQ(found->second, kind) << name;
      }
    }
    for (const auto& [name, kind] : expected) {
      EXPECT_TRUE(present.contains(name)) << "only in the guide: " << name << " " << kind;
    }
    stop();
  }
}

}  // namespace
}  // namespace weir::metric_families_test
