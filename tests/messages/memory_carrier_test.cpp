// Tests of the MemoryCarrier beside those of the suite: what no client of the suite sends.
#include "tests/messages/memory_carrier.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/messages/machine.hpp"
#include "tests/messages/message_case.hpp"
#include "weir/http/server/detail/server_state.hpp"

namespace weir::tests::memory_carrier_test {
namespace {

using namespace messages;

/// Serves a request to /echo in the World. `client` is the client.
HandlerRecord serve_echo(Fields fields, http::BodyLength length,
                         const std::function<Task<>(MemoryWire&)>& client) {
  HandlerRecord record;
  run_on(Machine::world, [&](Scope& scope, const TakeLines&) -> Task<> {
    const http::Router routes = message_routes(record);
    http::ServerState server(scope.loop(), routes, {});
    auto wire = std::make_shared<MemoryWire>();
    wire->request = {
        .method = "POST", .target = "/echo", .fields = std::move(fields), .length = length};
    const auto body = [&](Scope& own) -> Task<> {
      own.spawn(MemoryCarrier::serve(server, wire));
      co_await client(*wire);
    };
    std::ignore = co_await with_scope(OnFailure::isolate, body);
  });
  return record;
}

TEST(MemoryCarrier, PassesAnInterimResponseOn) {
  const Fields fields{{"Host", "weir.test"}, {"Expect", "100-continue"}};
  const auto client = [](MemoryWire& wire) -> Task<> {
    EXPECT_TRUE(co_await wire.response_body.wait());
    EXPECT_EQ(wire.interim, std::vector<int>{100});
    EXPECT_EQ(wire.status, 0);
    EXPECT_TRUE(co_await wire.request_body.send("body"));
    wire.request_body.complete();
    while (wire.response_body.end() == End::open) EXPECT_TRUE(co_await wire.response_body.wait());
    EXPECT_EQ(wire.status, 200);
    EXPECT_EQ(wire.response_body.take(), "body");
  };
  const HandlerRecord record = serve_echo(fields, http::BodyLength::of(4), client);
  ASSERT_EQ(record.requests.size(), 1U);
  EXPECT_EQ(record.requests[0].end, End::complete);
}

TEST(MemoryCarrier, CutsBothDirectionsWhenTheClientLeaves) {
  const auto client = [](MemoryWire& wire) -> Task<> {
    EXPECT_TRUE(co_await wire.request_body.send("a part"));
    wire.leave();
    while (wire.response_body.end() == End::open) EXPECT_TRUE(co_await wire.response_body.wait());
    EXPECT_EQ(wire.response_body.end(), End::cut);
    EXPECT_EQ(wire.status, 0);
  };
  const HandlerRecord record =
      serve_echo({{"Host", "weir.test"}}, http::BodyLength::unknown(), client);
  ASSERT_EQ(record.requests.size(), 1U);
  EXPECT_EQ(record.requests[0].end, End::cut);
}

}  // namespace
}  // namespace weir::tests::memory_carrier_test
