// Tests of the raw client on a host of a World.
#include "weir/sim/peer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim::peer_test {
namespace {

class WorldPeerTest : public testing::Test {
 protected:
  WorldPeerTest() {
    server_.start(
        [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
    at(1s, [this] { peer_ = std::make_unique<Peer>(clients_, server_.address(7)); });
    at(1h, [this] { server_.raise(loop::Signal::terminate); });
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

/// A Peer and the other end of its connection, without a program.
class PeerOfAListener : public testing::Test {
 protected:
  void pass(Duration length) { world_.jump(length); }
  static std::string receive(MemoryStream& stream) {
    std::string text(1000, '\0');
    text.resize(stream.receive(std::as_writable_bytes(std::span(text))).value_or(0));
    return text;
  }

  World world_{{.seed = 1, .jitter = no_jitter}};
  Host& server_ = world_.host("server", {.buffer_bytes = 100});
  Host& clients_ = world_.host("clients", {.buffer_bytes = 100});
  loop::Descriptor listener_ = server_.listen(Endpoint::any(7), {}).value();
  Peer peer_{clients_, server_.address(7)};
  std::unique_ptr<MemoryStream> accepted_ =
      server_.descriptors().listener(listener_.value())->take();
};

TEST_F(PeerOfAListener, SendsAsSoonAsThereIsRoom) {
  std::string text;
  for (int number = 0; number < 50; ++number) text += std::to_string(number) + ",";
  peer_.send(text.substr(0, 90));
  peer_.send(text.substr(90));
  EXPECT_EQ(peer_.outgoing(), text);
  peer_.finish();
  peer_.send("nothing after the end");
  EXPECT_EQ(peer_.outgoing(), text);
  EXPECT_TRUE(peer_.is_closed());
  std::string received;
  for (int reads = 0; reads < 20 && accepted_->receivable() != Errc::end_of_stream; ++reads) {
    pass(1ms);
    received += receive(*accepted_);
  }
  EXPECT_EQ(received, text);
  EXPECT_EQ(accepted_->receivable(), Errc::end_of_stream);
}

TEST_F(PeerOfAListener, ReadsImmediatelyUnlessReadingIsOff) {
  EXPECT_TRUE(peer_.connected());
  EXPECT_FALSE(peer_.is_closed());
  EXPECT_EQ(peer_.state(), system_error(EAGAIN));
  ASSERT_TRUE(accepted_->send(to_bytes("one")));
  pass(1ms);
  EXPECT_EQ(peer_.received(), "one");
  peer_.set_reading(false);
  ASSERT_TRUE(accepted_->send(to_bytes("two")));
  pass(1ms);
  EXPECT_EQ(peer_.received(), "one");
  EXPECT_EQ(peer_.state(), std::error_code());
  peer_.set_reading(true);
  EXPECT_EQ(peer_.received(), "onetwo");
  ASSERT_TRUE(accepted_->shut_down_sending());
  pass(1ms);
  EXPECT_EQ(peer_.state(), Errc::end_of_stream);
  EXPECT_TRUE(peer_.connected());
  peer_.send("still sends");
  pass(1ms);
  EXPECT_EQ(receive(*accepted_), "still sends");
}

TEST_F(PeerOfAListener, AResetIsSeenAtBothEnds) {
  peer_.reset();
  EXPECT_TRUE(peer_.is_closed());
  EXPECT_EQ(peer_.state(), system_error(ECONNRESET));
  EXPECT_EQ(accepted_->receivable(), system_error(ECONNRESET));
  peer_.send("nothing");
  EXPECT_EQ(peer_.outgoing(), "") << "the connection is closed";
}

TEST_F(PeerOfAListener, AResetDropsTheDataThatWaits) {
  peer_.send(std::string(150, 'x'));
  pass(1ms);
  peer_.reset();
  EXPECT_EQ(peer_.outgoing().size(), 150U);
  EXPECT_EQ(receive(*accepted_).size(), 100U) << "it had arrived";
  pass(1s);
  EXPECT_EQ(accepted_->receivable(), system_error(ECONNRESET));
}

TEST_F(PeerOfAListener, ReadsBeforeAndAfterItsOwnEnd) {
  peer_.set_reading(false);
  ASSERT_TRUE(accepted_->send(to_bytes("one")));
  peer_.finish();
  pass(1ms);
  ASSERT_TRUE(accepted_->send(to_bytes("two")));
  pass(1ms);
  EXPECT_EQ(peer_.received(), "");
  peer_.set_reading(true);
  EXPECT_EQ(peer_.received(), "onetwo");
  ASSERT_TRUE(accepted_->send(to_bytes("three")));
  pass(1ms);
  EXPECT_EQ(peer_.received(), "onetwothree");
}

TEST_F(PeerOfAListener, ACloseWithUnreadDataIsAReset) {
  for (const bool unread : {false, true}) {
    Peer closing(clients_, server_.address(7));
    const auto accepted = server_.descriptors().listener(listener_.value())->take();
    closing.set_reading(false);
    if (unread) {
      ASSERT_TRUE(accepted->send(to_bytes("unread")));
    }
    pass(1ms);
    closing.close();
    EXPECT_TRUE(closing.is_closed());
    EXPECT_FALSE(closing.connected());
    EXPECT_EQ(closing.state(), system_error(EBADF));
    closing.set_reading(true);
    closing.finish();
    closing.reset();
    closing.close();
    EXPECT_EQ(closing.received(), "");
    pass(1ms);
    EXPECT_EQ(accepted->receivable(),
              unread ? system_error(ECONNRESET) : make_error_code(Errc::end_of_stream));
  }
}

TEST_F(PeerOfAListener, DataThatWaitsIsDroppedByAClose) {
  {
    Peer closing(clients_, server_.address(7));
    closing.send(std::string(150, 'x'));
    EXPECT_EQ(closing.outgoing().size(), 150U);
  }
  const auto accepted = server_.descriptors().listener(listener_.value())->take();
  pass(1ms);
  EXPECT_EQ(receive(*accepted).size(), 100U);
  pass(1ms);
  EXPECT_EQ(accepted->receivable(), Errc::end_of_stream);
}

}  // namespace
}  // namespace weir::sim::peer_test
