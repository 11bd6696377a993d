// Tests of the raw client of a simulated server.
#include "weir/testing/memory/detail/memory_peer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace weir::memory_peer_test {
namespace {

class MemoryPeerTest : public testing::Test {
 protected:
  MemoryPlatform platform_;
  os::Address address_ = os::Address::loopback(80);
  loop::Descriptor listener_ = platform_.listen(address_, {}).value();

  std::unique_ptr<MemoryStream> accept() {
    return platform_.descriptors().listener(listener_.value())->take();
  }
};

TEST_F(MemoryPeerTest, SendsReadsAndSeesTheEnd) {
  MemoryPeer peer(platform_, address_);
  ASSERT_TRUE(peer.connected());
  const auto server = accept();
  EXPECT_EQ(peer.send("hello"), 5u);
  EXPECT_EQ(server->unread(), 5u);
  ASSERT_TRUE(server->send(to_bytes(std::string_view("an answer"))));
  EXPECT_EQ(peer.unread(), 9u);
  EXPECT_EQ(peer.read(2), 2u);
  EXPECT_EQ(peer.take(), "an answer");
  EXPECT_EQ(peer.take(), "");
  EXPECT_FALSE(peer.ended());
  ASSERT_TRUE(server->shut_down_sending());
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(peer.received(), "an answer");
}

TEST_F(MemoryPeerTest, ResetsAndIsReset) {
  MemoryPeer first(platform_, address_);
  MemoryPeer second(platform_, address_);
  auto server = accept();
  first.reset();
  EXPECT_TRUE(server->dead());
  server = accept();
  second.send("never read");
  server.reset();
  EXPECT_TRUE(second.was_reset());
  EXPECT_FALSE(second.ended());
}

TEST_F(MemoryPeerTest, DoesNotConnectWithoutAListener) {
  EXPECT_FALSE(MemoryPeer(platform_, os::Address::loopback(81)).connected());
}

TEST_F(MemoryPeerTest, SendsAndReadsWhatTheConnectionHolds) {
  MemoryPeer peer(platform_, address_);
  const auto server = accept();
  EXPECT_EQ(peer.send(std::string(70'000, 'x')), 65'536U);
  EXPECT_EQ(peer.send("more"), 0U);
  EXPECT_EQ(server->unread(), 65'536U);
  EXPECT_EQ(peer.read(5), 0U);
  ASSERT_TRUE(server->send(to_bytes(std::string_view("abcdef"))));
  EXPECT_EQ(peer.read(0), 0U);
  EXPECT_EQ(peer.read(2), 2U);
  EXPECT_EQ(peer.unread(), 4U);
  EXPECT_EQ(peer.read(3), 3U);
  EXPECT_EQ(peer.read(9), 1U);
  EXPECT_EQ(peer.received(), "abcdef");
  EXPECT_EQ(peer.take(), "abcdef");
  ASSERT_TRUE(server->send(to_bytes(std::string_view("gh"))));
  EXPECT_EQ(peer.take(), "gh");
  EXPECT_EQ(peer.received(), "abcdefgh");
}

TEST_F(MemoryPeerTest, FinishesAndCloses) {
  MemoryPeer peer(platform_, address_);
  const auto server = accept();
  peer.finish();
  EXPECT_EQ(server->receivable(), Errc::end_of_stream);
  EXPECT_TRUE(peer.connected());
  ASSERT_TRUE(server->send(to_bytes(std::string_view("late"))));
  peer.close();
  EXPECT_EQ(server->sendable(), system_error(ECONNRESET)) << "unread data was left";
  EXPECT_FALSE(peer.connected());
  EXPECT_EQ(peer.unread(), 0U);
  EXPECT_EQ(peer.send("x"), 0U);
  EXPECT_EQ(peer.read(5), 0U);
  EXPECT_EQ(peer.received(), "");
  EXPECT_FALSE(peer.ended());
  EXPECT_FALSE(peer.was_reset());
}

TEST_F(MemoryPeerTest, ReadsTheRestBeforeItSeesTheEnd) {
  MemoryPeer first(platform_, address_);
  MemoryPeer second(platform_, address_);
  const auto one = accept();
  const auto two = accept();
  ASSERT_TRUE(one->send(to_bytes(std::string_view("rest"))));
  ASSERT_TRUE(one->shut_down_sending());
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(first.take(), "rest");
  EXPECT_FALSE(first.was_reset());
  ASSERT_TRUE(two->send(to_bytes(std::string_view("rest"))));
  two->reset();
  EXPECT_TRUE(second.was_reset());
  EXPECT_EQ(second.take(), "rest");
}

}  // namespace
}  // namespace weir::memory_peer_test
