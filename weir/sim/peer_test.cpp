// Tests of the raw client on a host of a World.
#include "weir/sim/peer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim {
namespace {

class WorldPeerTest : public testing::Test {
 protected:
  WorldPeerTest() {
    server_.start(
        [](Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
    at(1s, [this] { peer_ = std::make_unique<Peer>(clients_, server_.address(7)); });
    at(1h, [this] { server_.raise(Signal::terminate); });
  }

  void at(Duration moment, std::function<void()> event) {
    world_.schedule(moment, std::move(event));
  }
  void run() {
    const WorldReport report = world_.run_until_done(2h);
    EXPECT_TRUE(report.ok()) << report.text();
    ASSERT_NE(peer_, nullptr);
  }

  World world_{fresh_world_options()};
  Host& server_ = world_.host("server");
  Host& clients_ = world_.host("clients");
  std::unique_ptr<Peer> peer_;
};

TEST_F(WorldPeerTest, SendsMoreThanTheConnectionHoldsAndReadsTheAnswer) {
  const std::string text(500'000, 'x');
  at(2s, [&] {
    EXPECT_TRUE(peer_->connected());
    peer_->send(text);
    peer_->finish();
  });
  run();
  EXPECT_EQ(peer_->outgoing(), text);
  EXPECT_EQ(peer_->received(), text);
  EXPECT_EQ(peer_->state(), Errc::end_of_stream) << "the service closes after the end";
  EXPECT_TRUE(peer_->is_closed());
}

TEST_F(WorldPeerTest, ReadsNothingWhileReadingIsOff) {
  at(2s, [this] {
    peer_->set_reading(false);
    peer_->send("hello");
  });
  at(10s, [this] {
    EXPECT_EQ(peer_->received(), "");
    EXPECT_EQ(peer_->state(), std::error_code()) << "data waits to be read";
    peer_->set_reading(true);
    EXPECT_EQ(peer_->received(), "hello");
    EXPECT_EQ(peer_->state(), system_error(EAGAIN));
    EXPECT_FALSE(peer_->is_closed());
    peer_->finish();
  });
  run();
}

TEST_F(WorldPeerTest, ResetsAndCloses) {
  std::unique_ptr<Peer> other;
  at(2s, [&] {
    other = std::make_unique<Peer>(clients_, server_.address(7));
    other->send("hello");
    other->reset();
    EXPECT_EQ(other->state(), system_error(ECONNRESET));
    peer_->close();
    EXPECT_EQ(peer_->state(), system_error(EBADF));
    peer_->send("nothing");
  });
  run();
  EXPECT_EQ(other->received(), "");
  EXPECT_EQ(peer_->outgoing(), "") << "the peer was closed";
}

TEST_F(WorldPeerTest, ConnectsOnlyToAListener) {
  at(2s, [this] {
    peer_ = std::make_unique<Peer>(clients_, server_.address(8));
    EXPECT_FALSE(peer_->connected());
    peer_->send("nothing");
    EXPECT_EQ(peer_->outgoing(), "");
  });
  run();
}

}  // namespace
}  // namespace weir::sim
