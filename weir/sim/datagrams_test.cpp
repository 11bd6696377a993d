// Tests of datagrams between the hosts of a World: delivered, lost, doubled, cut off and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "weir/net/udp.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::sim::datagrams_test {
namespace {

using testing::ElementsAre;

constexpr std::uint16_t port = 7;

Task<Result<>> hear(udp::Socket& socket, std::vector<std::string>& heard) {
  for (;;) {
    WEIR_CO_TRY(const auto datagram, co_await socket.receive());
    heard.emplace_back(datagram.buffer.text());
    if (datagram.buffer.text() == "?") {
      const auto answered = co_await socket.send("!", datagram.peer);
      EXPECT_TRUE(answered);
    }
  }
}

/// One host receives for ten seconds. The other one sends it a datagram every 100 ms.
class WorldDatagrams : public testing::Test {
 protected:
  static Task<> listen(Scope&, WorldDatagrams& test) {
    auto socket = co_await udp::bind(Endpoint::any(port));
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    std::ignore = co_await timeout(10s, hear(*socket, test.heard_));
  }
  static Task<> send(Scope&, WorldDatagrams& test) {
    auto slept = co_await sleep(1s);
    auto socket = co_await udp::connect(test.receiver_.address(port));
    EXPECT_TRUE(slept && socket);
    if (!socket) co_return;
    EXPECT_EQ(socket->local_address().with_port(0), test.sender_.address(0));
    for (const char* const each : test.sends_) {
      const auto sent = co_await socket->send(std::string_view(each));
      if (!sent) test.error_ = sent.error();
      slept = co_await sleep(100ms);
    }
    auto answers = hear(*socket, test.answers_);
    const auto over = co_await timeout(1s, std::move(answers));
    if (over.error() != Errc::timed_out) test.error_ = over.error();
  }
  void run() {
    if (receiver_runs_) {
      receiver_.start([this](loop::Platform& host) {
        return Runtime(host, quiet()).run_on_each_core(listen, std::ref(*this));
      });
    }
    sender_.start([this](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(send, std::ref(*this));
    });
    const WorldReport report = world_.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
  }

  World world_{fresh_world_options()};
  Host& receiver_ = world_.host("receiver");
  Host& sender_ = world_.host("sender");
  bool receiver_runs_ = true;
  std::vector<const char*> sends_ = {"a", "b", "c"};
  std::vector<std::string> heard_;
  std::vector<std::string> answers_;
  std::error_code error_;
};

TEST_F(WorldDatagrams, ReachTheOtherHostAndBack) {
  sends_ = {"a", "?"};
  run();
  EXPECT_THAT(heard_, testing::UnorderedElementsAre("a", "?"));
  EXPECT_THAT(answers_, ElementsAre("!"));
  EXPECT_EQ(error_, std::error_code());
  EXPECT_EQ(sender_.datagrams(), 2U);
  EXPECT_EQ(receiver_.datagrams(), 1U);
}

TEST_F(WorldDatagrams, AreLostAtAnExactPoint) {
  world_.faults().inject("sender", 1, Fault::loss);
  run();
  EXPECT_THAT(heard_, testing::UnorderedElementsAre("a", "c"));
  EXPECT_EQ(world_.faults().injected(Fault::loss), 1U);
  EXPECT_EQ(sender_.datagrams(), 3U) << "a lost datagram was sent too";
}

TEST_F(WorldDatagrams, AreDoubledAtAnExactPoint) {
  world_.faults().inject("sender", 2, Fault::doubling);
  run();
  EXPECT_THAT(heard_, testing::UnorderedElementsAre("a", "b", "c", "c"));
  EXPECT_EQ(world_.faults().injected(Fault::doubling), 1U);
  EXPECT_EQ(sender_.datagrams(), 3U) << "the copy does not count";
}

TEST_F(WorldDatagrams, AreLostWhileTheNetworkIsCut) {
  sends_.assign(26, "x");
  sends_.front() = "first";
  sends_[12] = "meanwhile";
  sends_.back() = "last";
  // Each datagram may be in flight for 400 ms.
  world_.schedule(1s + 900ms, [this] { world_.partition(sender_, receiver_); });
  world_.schedule(1s + 2100ms, [this] { world_.heal(sender_, receiver_); });
  run();
  EXPECT_THAT(heard_, testing::Contains("first"));
  EXPECT_THAT(heard_, testing::Contains("last"));
  EXPECT_THAT(heard_, testing::Not(testing::Contains("meanwhile")));
  EXPECT_LT(heard_.size(), sends_.size()) << "lost datagrams are not sent again";
}

TEST_F(WorldDatagrams, ToAnUnusedPortAreRefused) {
  receiver_runs_ = false;
  run();
  EXPECT_EQ(error_, system_error(ECONNREFUSED));
}

TEST(WorldDatagramDelay, IsThatOfTheSlowLink) {
  for (const Duration extra : {Duration(0s), Duration(3s)}) {
    World world({.seed = 1, .jitter = no_jitter});
    Host& receiver = world.host("receiver");
    Host& sender = world.host("sender");
    world.slow_down(receiver, sender, extra);
    const Instant start = world.now();
    Duration arrived{};
    const auto listen = [&world, &arrived, start](Scope&) -> Task<> {
      auto socket = co_await udp::bind(Endpoint::any(port));
      if (!socket) co_return;
      const auto datagram = co_await socket->receive();
      if (datagram) arrived = world.now() - start;
    };
    const auto send = [](Scope&, Endpoint to) -> Task<> {
      const auto slept = co_await sleep(1s);
      auto socket = co_await udp::bind(Endpoint::any(0));
      if (!slept || !socket) co_return;
      std::ignore = co_await socket->send("x", to);
    };
    receiver.start(
        [&](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(listen); });
    sender.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(send, receiver.address(port));
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(arrived, 1s + 100us + extra);
  }
}

TEST(WorldDatagramRates, LoseAndDoubleSome) {
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t seed = 0;
  const auto burst = [](Scope&, Endpoint to) -> Task<> {
    auto socket = co_await udp::bind(Endpoint::any(0));
    if (!socket) co_return;
    for (int sent = 0; sent < 100; ++sent) std::ignore = co_await socket->send("x", to);
  };
  for (; seed < 5; ++seed) {
    World world({.seed = seed});
    world.faults().rates.loss = 0.1;
    world.faults().rates.doubling = 0.1;
    Host& other = world.host("other");
    world.host("sender").start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(burst, other.address(port));
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    lost += world.faults().injected(Fault::loss);
    doubled += world.faults().injected(Fault::doubling);
    EXPECT_EQ(world.faults().injected(),
              world.faults().injected(Fault::loss) + world.faults().injected(Fault::doubling));
  }
  // The test sends 500 datagrams; about 50 are lost and 50 doubled, with these seeds.
  EXPECT_GT(lost, 20U);
  EXPECT_LT(lost, 100U);
  EXPECT_GT(doubled, 20U);
  EXPECT_LT(doubled, 100U);
}

// Datagrams that are sent together need not arrive in order.
TEST(WorldDatagramOrder, IsNotKept) {
  bool overtaken = false;
  for (std::uint64_t seed = 0; seed < 10 && !overtaken; ++seed) {
    World world({.seed = seed});
    std::vector<std::string> heard;
    Host& receiver = world.host("receiver");
    const auto listen = [&heard](Scope&) -> Task<> {
      auto socket = co_await udp::bind(Endpoint::any(port));
      if (socket) std::ignore = co_await timeout(5s, hear(*socket, heard));
    };
    const auto send = [](Scope&, Endpoint to) -> Task<> {
      auto slept = co_await sleep(1s);
      auto socket = co_await udp::bind(Endpoint::any(0));
      if (!slept || !socket) co_return;
      for (const std::string_view each : {"1", "2", "3", "4", "5"}) {
        std::ignore = co_await socket->send(each, to);
      }
    };
    receiver.start(
        [&](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(listen); });
    world.host("sender").start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(send, receiver.address(port));
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(heard.size(), 5U);
    overtaken = !std::is_sorted(heard.begin(), heard.end());
  }
  EXPECT_TRUE(overtaken);
}

}  // namespace
}  // namespace weir::sim::datagrams_test
