// Tests the example of a reverse proxy over real sockets, on every backend.
#include <gtest/gtest.h>

#include <string>

#include "tests/client.hpp"
#include "tests/server.hpp"

namespace weir::tests::gateway_test {
namespace {

class ExampleGateway : public EachBackend {};

TEST_P(ExampleGateway, PassesRequestsAndBodiesOn) {
  Server upstream("streaming", GetParam());
  const std::string url = "http://127.0.0.1:" + std::to_string(upstream.port());
  Server gateway("gateway", GetParam(), {url});
  Client client = gateway.connect();
  const auto own = client.exchange(get("/"));
  ASSERT_TRUE(own) << own.error().message();
  EXPECT_EQ(own->body, "a gateway\n");
  const auto lines = client.exchange(get("/api/lines/100000"));
  ASSERT_TRUE(lines) << lines.error().message();
  EXPECT_EQ(lines->status, 200);
  EXPECT_EQ(lines->body.size(), 1'088'895U);
  EXPECT_TRUE(lines->body.ends_with("line 100000\n"));
  const auto sum = client.exchange(post("/api/checksum", std::string(3'000'000, '\1')));
  ASSERT_TRUE(sum) << sum.error().message();
  const auto direct = upstream.exchange(post("/checksum", std::string(3'000'000, '\1')));
  ASSERT_TRUE(direct) << direct.error().message();
  EXPECT_EQ(sum->body, direct->body);
  EXPECT_EQ(sum->header("Via"), "1.1 weir");
  EXPECT_EQ(upstream.stop(), 0) << upstream.process().errors();
  const auto gone = client.exchange(get("/api/lines/1"));
  ASSERT_TRUE(gone) << gone.error().message();
  EXPECT_EQ(gone->status, 502);
  client.close();
  EXPECT_EQ(gateway.stop(), 0) << gateway.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleGateway, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::gateway_test
