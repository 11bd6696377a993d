// Tests of the counters of a server, and of their metrics.
#include "weir/http/server/detail/server_counters.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/runtime/detail/connection_counters.hpp"

namespace weir::http::server_counters_test {
namespace {

class ServerCountersTest : public HttpTest {
 protected:
  void set_all_counters() {
    ServerCounters& counters = server_->counters();
    counters.connections_accepted.add(7);
    counters.connections_open.add(8);
    counters.websockets.add(10);
    counters.websockets_open.add(11);
    counters.requests.add(6);
    counters.responses.add(9);
    counters.connections_rejected.add(5);
    counters.silent_connections.add(4);
    counters.slow_readers.add(3);
    counters.handler_failures.add(2);
    server_->counters().count_parse_error(ParseError::bad_line_end);
    server_->counters().count_parse_error(ParseError::body_too_large);
    server_->counters().count_parse_error(ParseError::body_too_large);
  }
};

TEST_F(ServerCountersTest, SummaryNamesEachCounterThatIsNotZero) {
  serve();
  EXPECT_EQ(server_->counters().summary(), "0 connections, 0 requests");
  set_all_counters();
  EXPECT_EQ(server_->counters().summary(),
            "7 connections, 6 requests, 5 connections rejected, 4 without a request, "
            "3 slow readers, 2 handler failures, 1 bad_line_end, 2 body_too_large");
}

TEST_F(ServerCountersTest, MetricsNameEachCounter) {
  serve();
  set_all_counters();
  std::vector<std::string> seen;
  const MetricSnapshot sum = loop_->metrics().read();
  for (const Metric& each : sum.metrics()) {
    if (!each.name.starts_with("http ")) continue;
    seen.push_back(each.name + "=" + std::to_string(each.value) +
                   (each.kind == Metric::Kind::gauge ? " now" : ""));
  }
  const std::vector<std::string> expected{
      "http connections=7",
      "http connections open=8 now",
      "http connections rejected=5",
      "http websockets=10",
      "http websockets open=11 now",
      "http connections without a request=4",
      "http slow readers=3",
      "http requests=6",
      "http responses=9",
      "http handler failures=2",
      "http requests rejected: bad_line_end=1",
      "http requests rejected: body_too_large=2",
  };
  EXPECT_EQ(seen, expected);
}

TEST_F(ServerCountersTest, ConnectionsAreCountedWhileTheyAreOpen) {
  serve();
  MemoryPeer& first = connect();
  MemoryPeer& second = connect();
  settle();
  EXPECT_EQ(server_->counters().connections_accepted.value(), 2U);
  EXPECT_EQ(server_->counters().connections_open.value(), 2U);
  first.close();
  settle();
  EXPECT_EQ(server_->counters().connections_accepted.value(), 2U);
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
  EXPECT_EQ(ServerConnections::of(*loop_).open.load(), 1U);
  second.close();
  settle();
  EXPECT_EQ(ServerConnections::of(*loop_).open.load(), 0U);
}

}  // namespace
}  // namespace weir::http::server_counters_test
