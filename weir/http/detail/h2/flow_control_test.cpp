// Tests of the windows of HTTP/2.
#include "weir/http/detail/h2/flow_control.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace weir::http::flow_control_test {
namespace {

H2Limits limits_of(std::uint32_t stream_window, std::uint32_t connection_window) {
  H2Limits limits;
  limits.stream_window = stream_window;
  limits.connection_window = connection_window;
  return limits;
}

StreamWindows stream_of(std::uint32_t window) {
  return StreamWindows({.send = window, .receive = window, .receive_full = window});
}

/// A connection whose windows are open, and one stream.
struct Connection {
  explicit Connection(H2Role role = H2Role::server, std::uint32_t stream_window = 1'000,
                      std::uint32_t connection_window = 100'000)
      : limits(limits_of(stream_window, connection_window)),
        flow(role, limits),
        stream(stream_of(stream_window)) {
    opened = flow.open(limits);
  }
  /// DATA of the peer in both windows.
  void receive(std::uint32_t size) {
    EXPECT_TRUE(flow.on_received(size));
    stream.on_received(size);
  }

  H2Limits limits;
  FlowControl flow;
  StreamWindows stream;
  std::uint32_t opened = 0;
};

// Windows of a stream.

TEST(H2StreamWindows, BeginWithTheirSizes) {
  const StreamWindows windows({.send = 1, .receive = 2, .receive_full = 3});
  EXPECT_EQ(windows.send(), 1);
  EXPECT_EQ(windows.receive(), 2);
  EXPECT_EQ(windows.receive_full(), 3u);
  EXPECT_EQ(windows.unconsumed(), 0u);
}

TEST(H2StreamWindows, BoundTheSendWindow) {
  StreamWindows windows = stream_of(10);
  EXPECT_TRUE(windows.change_send(window_max - 10));
  EXPECT_EQ(windows.send(), window_max);
  EXPECT_FALSE(windows.change_send(1));
  EXPECT_EQ(windows.send(), window_max);
}

TEST(H2StreamWindows, MayBecomeNegative) {
  StreamWindows windows = stream_of(10);
  EXPECT_TRUE(windows.change_send(-30));
  EXPECT_EQ(windows.send(), -20);
  EXPECT_TRUE(windows.change_send(25));
  EXPECT_EQ(windows.send(), 5);
  windows.change_receive(-15);
  EXPECT_EQ(windows.receive(), -5);
}

TEST(H2StreamWindows, CountWhatArrives) {
  StreamWindows windows = stream_of(10);
  windows.on_received(4);
  EXPECT_EQ(windows.receive(), 6);
  EXPECT_EQ(windows.unconsumed(), 4u);
}

TEST(H2StreamWindows, AllowMoreByHalvesOfTheWindow) {
  StreamWindows windows = stream_of(10);
  windows.on_received(10);
  EXPECT_EQ(windows.allow_more(4), 0u);
  EXPECT_EQ(windows.receive(), 0);
  EXPECT_EQ(windows.allow_more(1), 5u);
  EXPECT_EQ(windows.receive(), 5);
  EXPECT_EQ(windows.allow_more(4), 0u);
}

TEST(H2StreamWindows, OfOneByteReturnsEachByte) {
  StreamWindows windows = stream_of(1);
  windows.on_received(1);
  EXPECT_EQ(windows.allow_more(0), 0u);
  EXPECT_EQ(windows.allow_more(1), 1u);
}

// DATA that is sent.

TEST(H2FlowControl, AllowsTheSmallerWindow) {
  Connection one;
  EXPECT_EQ(one.flow.allowed(one.stream), 1'000);
  const StreamWindows wide = stream_of(1'000'000);
  EXPECT_EQ(one.flow.allowed(wide), 65'535);
  StreamWindows reduced = stream_of(0);
  EXPECT_TRUE(reduced.change_send(-5));
  EXPECT_EQ(one.flow.allowed(reduced), -5);
}

TEST(H2FlowControl, CountsSentDataInBothWindows) {
  Connection one(H2Role::server, 65'535);
  one.flow.on_sent(one.stream, 65'000);
  EXPECT_EQ(one.stream.send(), 535);
  EXPECT_EQ(one.flow.sent(), 65'000u);
  EXPECT_TRUE(one.flow.may_send());
  one.flow.on_sent(one.stream, 535);
  EXPECT_FALSE(one.flow.may_send());
  EXPECT_TRUE(one.flow.add_send(7));
  EXPECT_TRUE(one.flow.may_send());
  EXPECT_EQ(one.flow.allowed(stream_of(100)), 7);
}

TEST(H2FlowControl, BoundsTheSendWindow) {
  Connection one;
  EXPECT_FALSE(one.flow.add_send(window_max));
  EXPECT_EQ(one.flow.allowed(stream_of(window_max)), 65'535);
  EXPECT_TRUE(one.flow.add_send(window_max - window_default));
  EXPECT_EQ(one.flow.allowed(stream_of(window_max)), window_max);
  EXPECT_FALSE(one.flow.add_send(1));
}

// DATA that is received.

TEST(H2FlowControl, OpensTheWindowOfTheLimits) {
  EXPECT_EQ(Connection().opened, 100'000u - 65'535);
  EXPECT_EQ(Connection(H2Role::server, 1'000, 65'535).opened, 0u);
}

TEST(H2FlowControl, RefusesDataBeyondTheWindow) {
  Connection one;
  EXPECT_FALSE(one.flow.on_received(100'001));
  EXPECT_TRUE(one.flow.on_received(100'000));
  EXPECT_FALSE(one.flow.may_receive());
  EXPECT_FALSE(one.flow.on_received(1));
  EXPECT_TRUE(one.flow.on_received(0));
}

TEST(H2FlowControl, ReturnsHalfOfTheWindowOfAServer) {
  Connection one(H2Role::server, 60'000);
  one.receive(50'000);
  one.flow.consume(one.stream, 49'999);
  EXPECT_EQ(one.stream.unconsumed(), 1u);
  EXPECT_EQ(one.flow.take_update(), 0u);
  one.flow.consume(one.stream, 1);
  EXPECT_EQ(one.flow.take_update(), 50'000u);
  EXPECT_EQ(one.flow.take_update(), 0u);
  EXPECT_TRUE(one.flow.on_received(100'000));
}

TEST(H2FlowControl, ReturnsHalfOfAStreamOfAClient) {
  Connection one(H2Role::client);
  one.receive(500);
  one.flow.consume(one.stream, 499);
  EXPECT_EQ(one.flow.take_update(), 0u);
  one.flow.consume(one.stream, 1);
  EXPECT_EQ(one.flow.take_update(), 500u);
}

TEST(H2FlowControl, ReturnsAnyBytesToAScarceWindow) {
  Connection one(H2Role::server, 100'000);
  one.receive(99'000);
  one.flow.consume(one.stream, 999);
  EXPECT_EQ(one.flow.take_update(), 0u);
  one.flow.consume(one.stream, 1);
  EXPECT_EQ(one.flow.take_update(), 1'000u) << "the peer has no more than that left";
  EXPECT_TRUE(one.flow.on_received(2'000));
  EXPECT_EQ(one.flow.take_update(), 0u) << "nothing was returned";
}

TEST(H2FlowControl, ReturnsDataWithoutAStream) {
  Connection one;
  EXPECT_TRUE(one.flow.on_received(50'000));
  one.flow.give_back(50'000);
  EXPECT_EQ(one.flow.take_update(), 50'000u);
}

TEST(H2FlowControl, ReturnsTheBytesOfAReleasedStream) {
  Connection one(H2Role::server, 60'000);
  one.receive(50'000);
  EXPECT_TRUE(one.flow.release(one.stream));
  EXPECT_EQ(one.stream.unconsumed(), 0u);
  EXPECT_EQ(one.flow.take_update(), 50'000u);
  EXPECT_FALSE(one.flow.release(one.stream));
}

// Growth.

TEST(H2FlowControl, DoublesTheWindowOfALongBody) {
  Connection one;
  one.receive(1'000);
  one.flow.grow(one.stream, 500, 1'001);
  EXPECT_EQ(one.stream.receive_full(), 2'000u);
  EXPECT_EQ(one.stream.allow_more(500), 1'500u) << "the growth is allowed with the bytes";
  EXPECT_EQ(one.stream.receive(), 1'500);
}

TEST(H2FlowControl, DoesNotGrowForAShortBody) {
  Connection one;
  one.receive(1'000);
  one.flow.grow(one.stream, 500, 1'000);
  EXPECT_EQ(one.stream.receive_full(), 1'000u);
}

TEST(H2FlowControl, GrowsOnlyWithAnUpdate) {
  Connection one;
  one.receive(1'000);
  one.flow.grow(one.stream, 499, 5'000);
  EXPECT_EQ(one.stream.receive_full(), 1'000u);
  EXPECT_EQ(one.stream.allow_more(499), 0u);
  one.flow.grow(one.stream, 1, 5'000);
  EXPECT_EQ(one.stream.receive_full(), 2'000u);
}

TEST(H2FlowControl, BoundsTheGrowthOfAllStreams) {
  Connection one(H2Role::server, 40'000, 100'000);
  StreamWindows other = stream_of(40'000);
  one.flow.grow(one.stream, 20'000, 1'000'000);
  EXPECT_EQ(one.stream.receive_full(), 80'000u);
  one.flow.grow(other, 20'000, 1'000'000);
  EXPECT_EQ(other.receive_full(), 50'000u) << "half of the connection's window, less the first";
  EXPECT_FALSE(one.flow.release(one.stream));
  one.flow.grow(other, 25'000, 1'000'000);
  EXPECT_EQ(other.receive_full(), 90'000u) << "the first stream has given its growth back";
}

TEST(H2FlowControl, GrowsToTheLargestWindow) {
  constexpr std::uint32_t most = window_max;
  Connection one(H2Role::server, most - 10, most);
  one.flow.grow(one.stream, most / 2, std::uint64_t{1} << 40);
  EXPECT_EQ(one.stream.receive_full(), most);
}

}  // namespace
}  // namespace weir::http::flow_control_test
