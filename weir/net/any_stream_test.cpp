// Tests that an AnyStream owns, moves and closes its stream.
#include "weir/net/any_stream.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "weir/net/test/net_fixture.hpp"

namespace weir::any_stream_test {
namespace {

class AnyStreamTest : public NetTest {};

Task<> talk_through_any_stream() {
  Pair pair = co_await connect_pair();
  Loop& loop = pair.server.loop();
  AnyStream first(std::move(pair.server));
  EXPECT_EQ(&first->loop(), &loop);
  EXPECT_EQ(first->tls(), nullptr);
  AnyStream second(std::move(first));
  EXPECT_TRUE(co_await second->write("hello"));
  EXPECT_EQ(co_await read_some(pair.client, 5), "hello");
  first->close();
  EXPECT_TRUE(co_await second->write("again")) << "the moved-from stream is another one";
  EXPECT_EQ(co_await read_some(pair.client, 5), "again");
}

Task<> assign_any_stream() {
  Pair one = co_await connect_pair();
  Pair other = co_await connect_pair();
  AnyStream stream(std::move(one.server));
  stream = AnyStream(std::move(other.server));
  const auto ended = co_await one.client.read();
  EXPECT_TRUE(!ended && ended.error() == Errc::end_of_stream) << "assigning closes the old stream";
  EXPECT_TRUE(co_await stream->write("hello"));
  EXPECT_EQ(co_await read_some(other.client, 5), "hello");
}

TEST_P(AnyStreamTest, MovesItsStream) {
  run(talk_through_any_stream());
}

TEST_P(AnyStreamTest, AssignmentClosesTheOldStream) {
  run(assign_any_stream());
}

INSTANTIATE_TEST_SUITE_P(Everywhere, AnyStreamTest, every_net_kind(),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace weir::any_stream_test
