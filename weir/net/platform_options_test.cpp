// Tests of the options that sockets pass on to their platform.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::platform_options_test {
namespace {

/// A platform that records the options of its sockets.
class RecordingPlatform final : public MemoryPlatform {
 public:
  Result<loop::Descriptor> open_datagrams(const loop::DatagramOptions& options) override {
    opened.push_back(options);
    return MemoryPlatform::open_datagrams({.local = options.local, .peer = options.peer});
  }
  Result<> join_group(int, const os::MulticastGroup& group) override {
    joined.push_back(group);
    return {};
  }
  Result<> leave_group(int, const os::MulticastGroup& group) override {
    left.push_back(group);
    return {};
  }
  Result<> configure(int descriptor, const loop::StreamOptions& options) override {
    no_delay.push_back(options.no_delay);
    return MemoryPlatform::configure(descriptor, options);
  }

  std::vector<loop::DatagramOptions> opened;
  std::vector<os::MulticastGroup> joined;
  std::vector<os::MulticastGroup> left;
  std::vector<bool> no_delay;  ///< value of each call of configure()
};

class PlatformOptions : public testing::Test {
 protected:
  void run(Task<> task) { weir::run(*loop_, std::move(task)); }

  RecordingPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

std::vector<udp::Options> options_with_one_change() {
  std::vector<udp::Options> all(4);
  all[1].reuse_port = true;
  all[2].gro = true;
  all[3].multicast_interface = 7;
  return all;
}

TEST_F(PlatformOptions, BoundSocketPassesItsOptionsOn) {
  const auto bind = [this]() -> Task<> {
    const Endpoint local = Endpoint::loopback(4000);
    for (const udp::Options& options : options_with_one_change()) {
      EXPECT_TRUE(co_await udp::bind(local, options));
      const loop::DatagramOptions how = platform_.opened.back();
      EXPECT_EQ(how.local, local);
      EXPECT_EQ(how.peer, os::Address());
      EXPECT_EQ(how.reuse_port, options.reuse_port);
      EXPECT_EQ(how.gro, options.gro);
      EXPECT_EQ(how.multicast_interface, options.multicast_interface);
    }
  };
  run(bind());
}

TEST_F(PlatformOptions, ConnectedSocketSharesNoPortAndPassesTheOtherOptionsOn) {
  const auto connect = [this]() -> Task<> {
    const Endpoint peer = Endpoint::loopback(4000);
    for (const udp::Options& options : options_with_one_change()) {
      EXPECT_TRUE(co_await udp::connect(peer, options));
      const loop::DatagramOptions how = platform_.opened.back();
      EXPECT_EQ(how.local, os::Address());
      EXPECT_EQ(how.peer, peer);
      EXPECT_FALSE(how.reuse_port);
      EXPECT_EQ(how.gro, options.gro);
      EXPECT_EQ(how.multicast_interface, options.multicast_interface);
    }
  };
  run(connect());
}

TEST_F(PlatformOptions, GroupIsJoinedAndLeftOnTheChosenInterface) {
  const auto act = [this]() -> Task<> {
    auto socket = co_await udp::bind(Endpoint::any(0));
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    const Endpoint group = Endpoint::ipv4({239, 1, 2, 3}, 0);
    EXPECT_TRUE(socket->join(group, 5));
    EXPECT_TRUE(socket->join(group));
    EXPECT_TRUE(socket->leave(group, 6));
    EXPECT_TRUE(socket->leave(group));
    EXPECT_EQ(platform_.joined.size(), 2U);
    EXPECT_EQ(platform_.joined[0].address, group);
    EXPECT_EQ(platform_.joined[0].interface, 5U);
    EXPECT_EQ(platform_.joined[1].interface, 0U);
    EXPECT_EQ(platform_.left.size(), 2U);
    EXPECT_EQ(platform_.left[0].address, group);
    EXPECT_EQ(platform_.left[0].interface, 6U);
    EXPECT_EQ(platform_.left[1].interface, 0U);
  };
  run(act());
}

TEST_F(PlatformOptions, StreamsSendSmallWritesImmediatelyUnlessTheCallerSaysOtherwise) {
  const auto act = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ(platform_.no_delay, (std::vector<bool>{true})) << "accepted streams inherit it";
    auto client = co_await tcp::connect(listener.local_address());
    EXPECT_TRUE(client);
    if (!client) co_return;
    EXPECT_EQ(platform_.no_delay, (std::vector<bool>{true, true}));
    const auto accepted = co_await listener.accept();
    EXPECT_TRUE(accepted);
    EXPECT_EQ(platform_.no_delay.size(), 2U);
    EXPECT_TRUE(client->set_no_delay(false));
    EXPECT_TRUE(client->set_no_delay(true));
    EXPECT_EQ(platform_.no_delay, (std::vector<bool>{true, true, false, true}));
  };
  run(act());
}

// A listener that refuses new connections filters the packets of those that it accepts.
TEST_F(PlatformOptions, ConnectionThatIsAcceptedDuringADrainIsConfigured) {
  const auto act = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const auto client = co_await tcp::connect(listener.local_address());
    EXPECT_TRUE(client);
    loop_->drain();
    platform_.no_delay.clear();
    EXPECT_TRUE(co_await listener.accept());
    EXPECT_EQ(platform_.no_delay, (std::vector<bool>{true}));
  };
  run(act());
}

}  // namespace
}  // namespace weir::platform_options_test
