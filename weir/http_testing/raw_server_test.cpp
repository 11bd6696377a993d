#include "weir/http_testing/raw_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "weir/http_testing/test_client.hpp"
#include "weir/sim/world.hpp"

namespace weir::http::raw_server_test {
namespace {

using namespace std::chrono_literals;

TEST(RawServer, SendsItsBytesAfterTheDelay) {
  sim::World world({.seed = 1, .jitter = sim::no_jitter});
  world.host("one").start_service(raw_server("HTTP/1.1 299 Odd\r\nContent-Length: 1\r\n\r\n!", 3s));
  world.host("two").start_service(raw_server("garbage"));
  TestClient client(world, "http://one");
  for (int request = 0; request < 2; ++request) {
    const Instant start = world.now();
    const auto response = client.get("/");
    EXPECT_EQ(response.status(), 299);
    EXPECT_EQ(response.body(), "!");
    EXPECT_GE(world.now() - start, 3s);
    EXPECT_LT(world.now() - start, 4s);
  }
  EXPECT_THROW(client.get("http://two/"), std::runtime_error);
  const sim::WorldReport report = world.run_until_done(1min);
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace
}  // namespace weir::http::raw_server_test
