// Tests of the raw client of a simulated server.
#include "weir/testing/memory/detail/memory_peer.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

class MemoryPeerTest : public testing::Test {
 protected:
  MemoryPlatform platform_;
  os::Address address_ = os::Address::loopback(80);
  Descriptor listener_ = platform_.listen(address_, {}).value();

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

}  // namespace
}  // namespace weir
