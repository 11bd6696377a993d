// Tests of a listener's drain and of a pause of accepting, in virtual time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/net/listen/detail/listener_state.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::listener_drain_test {
namespace {

constexpr Duration quiet_period = 50ms;

/// A platform that cannot refuse connections, if `refuses` is false.
class DrainPlatform final : public MemoryPlatform {
 public:
  Result<> refuse_new_connections(int listener) override {
    if (!refuses) return fail(Errc::unsupported);
    return MemoryPlatform::refuse_new_connections(listener);
  }
  bool refuses = true;
};

class ListenerDrain : public testing::Test {
 protected:
  using Sockets = std::vector<std::shared_ptr<loop::SharedListener>>;

  void TearDown() override {
    clients_.clear();
    platform_.run_until_idle(*loop_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(ConnectionCounters::of(*loop_).dropped.value(), 0U);
    loop_.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
  template <class T>
  T run(Task<T> task) {
    return weir::run(*loop_, std::move(task));
  }
  /// Opens listening sockets of one address, as another process does before the runtime starts.
  Sockets open(std::size_t count) {
    Endpoint address = Endpoint::loopback(0);
    Sockets sockets;
    while (sockets.size() < count) {
      loop::Descriptor socket = platform_.listen(address, {}).value();
      address = platform_.local_address(socket.value()).value();
      sockets.push_back(
          std::make_shared<loop::SharedListener>(platform_, std::move(socket), address));
    }
    return sockets;
  }
  Task<> drain_after(Duration pause) {
    std::ignore = co_await sleep(pause);
    loop_->drain();
    drained_ = platform_.now();
  }
  /// Accepts until the listener is closed. Returns the number of connections.
  Task<int> accept_all(tcp::Listener& listener) {
    for (int accepted = 0;; ++accepted) {
      const auto stream = co_await listener.accept();
      if (stream) continue;
      EXPECT_EQ(stream.error(), Errc::closed);
      closed_ = platform_.now();
      co_return accepted;
    }
  }
  /// Connects a client each `pause`, `count` times. Each writes its number.
  Task<> connect_each(Endpoint server, Duration pause, int count) {
    for (int each = 0; each < count; ++each) {
      std::ignore = co_await sleep(pause);
      auto client = co_await tcp::connect(server);
      EXPECT_TRUE(client);
      if (!client) co_return;
      EXPECT_TRUE(co_await client->write(std::string(1, static_cast<char>('0' + each % 10))));
      clients_.push_back(std::move(*client));
    }
  }

  DrainPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  std::vector<tcp::Stream> clients_;
  Instant drained_{};
  Instant closed_{};
};

TEST_F(ListenerDrain, PendingAcceptIsClosedAfterOneQuietPeriod) {
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_TRUE(co_await all(accept_all(listener), drain_after(1s)));
    EXPECT_EQ(closed_ - drained_, quiet_period);
    EXPECT_EQ(co_await accept_all(listener), 0);
    EXPECT_EQ(closed_ - drained_, quiet_period) << "a closed listener fails immediately";
  };
  run(talk());
}

TEST_F(ListenerDrain, AcceptThatBeginsAfterwardsWaitsForAWholeQuietPeriod) {
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    co_await drain_after(0s);
    std::ignore = co_await sleep(10ms);
    EXPECT_EQ(co_await accept_all(listener), 0);
    EXPECT_EQ(closed_ - drained_, 2 * quiet_period);
  };
  run(talk());
}

TEST_F(ListenerDrain, ListenerOpenedDuringADrainWaitsForAWholeQuietPeriod) {
  const auto talk = [this]() -> Task<> {
    co_await drain_after(0s);
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ(co_await accept_all(listener), 0);
    EXPECT_EQ(closed_ - drained_, 2 * quiet_period);
  };
  run(talk());
}

TEST_F(ListenerDrain, ListenerThroughTheDrainAcceptsUntilItIsDestroyed) {
  const auto talk = [this]() -> Task<> {
    const auto address = Endpoint::loopback(80);
    auto opened = co_await tcp::listen_through_drain(address);
    EXPECT_TRUE(opened);
    if (!opened) co_return;
    std::optional<tcp::Listener> listener(std::move(*opened));
    co_await drain_after(0s);
    for (int each = 0; each < 3; ++each) {
      std::ignore = co_await sleep(10s);
      auto client = co_await tcp::connect(address);
      EXPECT_TRUE(client) << "new connections are not refused";
      const auto accepted = co_await timeout(1s, listener->accept());
      EXPECT_TRUE(accepted);
    }
    const auto waited = co_await timeout(10s, listener->accept());
    EXPECT_EQ(waited.error(), Errc::timed_out);
    listener.reset();
    const auto refused = co_await tcp::connect(address);
    EXPECT_EQ(refused.error(), system_error(ECONNREFUSED));
  };
  run(talk());
}

TEST_F(ListenerDrain, ListenerThroughTheDrainEndsIfAnotherProcessHasItsSocket) {
  for (std::size_t elsewhere = 0; elsewhere < 2; ++elsewhere) {
    loop_ = Loop::make(platform_, {}).value();
    Sockets sockets = open(2);
    const Endpoint address = sockets[0]->bound();
    for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
    sockets[elsewhere]->set_stays_open_elsewhere(false);
    loop_->group().listener_registry().inherit(std::move(sockets));
    const auto talk = [&]() -> Task<> {
      auto opened = co_await tcp::listen_through_drain(address);
      EXPECT_TRUE(opened);
      if (!opened) co_return;
      tcp::Listener listener = std::move(*opened);
      EXPECT_TRUE(co_await all(accept_all(listener), drain_after(1s)));
      EXPECT_LE(closed_ - drained_, 2 * quiet_period);
    };
    run(talk());
  }
}

TEST_F(ListenerDrain, ConnectionBeginsAnotherQuietPeriod) {
  platform_.refuses = false;
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    auto accepting = accept_all(listener);
    auto connecting = connect_each(listener.local_address(), 10ms, 1);
    const auto both = co_await all(std::move(accepting), drain_after(0s), std::move(connecting));
    EXPECT_EQ(std::get<0>(both.value()), 1);
    EXPECT_EQ(closed_ - drained_, 2 * quiet_period);
  };
  run(talk());
}

TEST_F(ListenerDrain, CancelledAcceptDoesNotCountAsQuiet) {
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const auto twice = [&]() -> Task<int> {
      EXPECT_EQ((co_await timeout(30ms, listener.accept())).error(), Errc::timed_out);
      auto again = accept_all(listener);
      co_return co_await std::move(again);
    };
    EXPECT_TRUE(co_await all(twice(), drain_after(0s)));
    EXPECT_EQ(closed_ - drained_, 2 * quiet_period);
  };
  run(talk());
}

// The platform cannot refuse connections, and one comes in each quiet period.
TEST_F(ListenerDrain, EndlessConnectionsCloseTheListenerAfterTwoSeconds) {
  platform_.refuses = false;
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    auto accepting = accept_all(listener);
    auto connecting = connect_each(listener.local_address(), 41ms, 100);
    const auto both = co_await all(std::move(accepting), drain_after(0s), std::move(connecting));
    EXPECT_EQ(std::get<0>(both.value()), 48);
    EXPECT_EQ(closed_ - drained_, 2s);
  };
  run(talk());
}

TEST_F(ListenerDrain, NewConnectionsAreRefused) {
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    co_await connect_each(listener.local_address(), 0s, 3);
    co_await drain_after(0s);
    EXPECT_EQ((co_await timeout(1s, tcp::connect(listener.local_address()))).error(),
              Errc::timed_out);
    EXPECT_EQ(co_await accept_all(listener), 3);
  };
  run(talk());
}

// ---- A pause of accepting -----------------------------------------------------------------------

TEST_F(ListenerDrain, PausedLoopAcceptsWhenItResumes) {
  const auto talk = [this]() -> Task<> {
    loop_->pause_accepting();
    tcp::Listener listener = co_await listen_locally();
    co_await connect_each(listener.local_address(), 0s, 2);
    EXPECT_EQ((co_await timeout(1s, listener.accept())).error(), Errc::timed_out);
    EXPECT_EQ((co_await timeout(0s, listener.accept())).error(), Errc::timed_out);
    const Instant begun = platform_.now();
    const auto resume = [this]() -> Task<> {
      std::ignore = co_await sleep(1s);
      loop_->resume_accepting();
    };
    const auto both = co_await all(as_task(listener.accept()), resume());
    EXPECT_TRUE(both);
    EXPECT_EQ(platform_.now() - begun, 1s);
    EXPECT_TRUE(co_await listener.accept());
  };
  run(talk());
}

TEST_F(ListenerDrain, LoopWithoutAPendingAcceptResumes) {
  const auto talk = [this]() -> Task<> {
    loop_->pause_accepting();
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ((co_await timeout(1s, listener.accept())).error(), Errc::timed_out);
    loop_->resume_accepting();
    co_await connect_each(listener.local_address(), 0s, 1);
    EXPECT_TRUE(co_await timeout(1s, listener.accept()));
  };
  run(talk());
}

TEST_F(ListenerDrain, PausedListenerWithClientsServesThemAndCloses) {
  const auto talk = [this]() -> Task<> {
    loop_->pause_accepting();
    tcp::Listener listener = co_await listen_locally();
    co_await connect_each(listener.local_address(), 0s, 3);
    const auto both = co_await all(accept_all(listener), drain_after(1s));
    EXPECT_EQ(std::get<0>(both.value()), 3);
    EXPECT_EQ(closed_ - drained_, 2 * quiet_period);
  };
  run(talk());
}

// ---- Several sockets ----------------------------------------------------------------------------

/// Returns the numbers that the clients of `count` connections have sent, in the order of accept.
Task<std::string> accept_numbers(tcp::Listener& listener, int count) {
  std::string numbers;
  for (int each = 0; each < count; ++each) {
    auto stream = co_await listener.accept();
    EXPECT_TRUE(stream);
    if (!stream) break;
    numbers += co_await read_some(*stream, 1);
  }
  co_return numbers;
}

// The clients go to the three sockets in turn. Those of the extra sockets are accepted ahead.
TEST_F(ListenerDrain, ExtraListenersTakeTurns) {
  Sockets sockets = open(3);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(std::move(sockets));
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    co_await connect_each(address, 0s, 9);
    const std::string numbers = co_await accept_numbers(listener, 9);
    EXPECT_EQ(numbers.size(), 9U);
    for (std::size_t each = 2; each < 6 && each < numbers.size(); ++each) {
      EXPECT_EQ(numbers[each], numbers[each - 2] + 3) << numbers;
    }
  };
  run(talk());
}

TEST_F(ListenerDrain, ListenerOpenedDuringADrainServesClientsOfAllItsSockets) {
  Sockets sockets = open(3);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(std::move(sockets));
  const auto talk = [&]() -> Task<> {
    co_await connect_each(address, 0s, 9);
    co_await drain_after(0s);
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ(co_await accept_all(listener), 9);
  };
  run(talk());
}

TEST_F(ListenerDrain, ListenerOpenedDuringADrainLeavesSocketsOfOtherProcesses) {
  Sockets sockets = open(3);
  for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(std::move(sockets));
  const auto talk = [&]() -> Task<> {
    co_await drain_after(0s);
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ(co_await accept_all(listener), 0);
    EXPECT_EQ(closed_, drained_);
  };
  run(talk());
}

// One of three sockets stays open in another process, which serves the clients in its queue.
TEST_F(ListenerDrain, DrainServesOnlyTheSocketsOfThisProcess) {
  for (std::size_t elsewhere = 0; elsewhere < 3; ++elsewhere) {
    for (const bool drains_first : {false, true}) {
      clients_.clear();
      loop_ = Loop::make(platform_, {}).value();
      Sockets sockets = open(3);
      sockets[elsewhere]->set_stays_open_elsewhere(true);
      const Endpoint address = sockets[0]->bound();
      loop_->group().listener_registry().inherit(sockets);
      const auto talk = [&]() -> Task<> {
        co_await connect_each(address, 0s, 6);
        if (drains_first) co_await drain_after(0s);
        tcp::Listener listener = co_await listen_locally({}, address);
        if (!drains_first) co_await drain_after(0s);
        EXPECT_EQ(co_await accept_all(listener), 4) << elsewhere << drains_first;
        EXPECT_EQ(closed_ - drained_, 2 * quiet_period) << elsewhere << drains_first;
      };
      run(talk());
      EXPECT_EQ(ConnectionCounters::of(*loop_).dropped.value(), 0U);
    }
  }
}

TEST_F(ListenerDrain, PausedListenerWithClientsInAllItsSocketsServesThem) {
  Sockets sockets = open(3);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(std::move(sockets));
  const auto talk = [&]() -> Task<> {
    loop_->pause_accepting();
    tcp::Listener listener = co_await listen_locally({}, address);
    co_await connect_each(address, 0s, 9);
    const auto both = co_await all(accept_all(listener), drain_after(1s));
    EXPECT_EQ(std::get<0>(both.value()), 9);
  };
  run(talk());
}

// The sockets stay open in another process, which serves their clients.
TEST_F(ListenerDrain, PausedListenerOfSocketsOfOtherProcessesEndsImmediately) {
  for (const std::size_t count : {1U, 3U}) {
    for (const bool accepts : {true, false}) {
      clients_.clear();
      loop_ = Loop::make(platform_, {}).value();
      Sockets sockets = open(count);
      for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
      const Endpoint address = sockets[0]->bound();
      loop_->group().listener_registry().inherit(sockets);
      const auto talk = [&]() -> Task<> {
        loop_->pause_accepting();
        tcp::Listener listener = co_await listen_locally({}, address);
        co_await connect_each(address, 0s, 3);
        if (accepts) {
          const auto both = co_await all(accept_all(listener), drain_after(1s));
          EXPECT_EQ(std::get<0>(both.value()), 0);
        } else {
          co_await drain_after(1s);
          EXPECT_EQ(co_await accept_all(listener), 0);
        }
        EXPECT_EQ(closed_, drained_);
      };
      run(talk());
    }
  }
}

/// Returns how many of the sockets a loop accepts from.
std::ptrdiff_t count_accepting(const std::vector<std::shared_ptr<loop::SharedListener>>& sockets) {
  return std::ranges::count_if(sockets, [](const auto& each) { return each->accepting(); });
}

TEST_F(ListenerDrain, AcceptFromSocketsOfOtherProcessesEndsImmediately) {
  for (const bool accepts : {true, false}) {
    loop_ = Loop::make(platform_, {}).value();
    Sockets sockets = open(3);
    for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
    const Endpoint address = sockets[0]->bound();
    int stopped = 0;
    loop_->group().listener_registry().on_stopped = [&] { ++stopped; };
    loop_->group().listener_registry().inherit(sockets);
    EXPECT_EQ(count_accepting(sockets), 0);
    const auto talk = [&]() -> Task<> {
      tcp::Listener listener = co_await listen_locally({}, address);
      EXPECT_EQ(count_accepting(sockets), 3);
      if (accepts) {
        EXPECT_TRUE(co_await all(accept_all(listener), drain_after(1s)));
      } else {
        co_await drain_after(1s);
        EXPECT_EQ(co_await accept_all(listener), 0);
      }
      EXPECT_EQ(closed_, drained_);
      EXPECT_EQ(count_accepting(sockets), 0) << "before the listener is destroyed";
      EXPECT_EQ(stopped, 3);
    };
    run(talk());
    EXPECT_EQ(stopped, 3);
    EXPECT_EQ(count_accepting(sockets), 0);
  }
}

// Two clients come to each of three sockets. Both extra sockets accept one connection ahead.
TEST_F(ListenerDrain, ConnectionsThatWereAcceptedAheadAreServedAfterTheirSocketsHaveEnded) {
  Sockets sockets = open(3);
  for (const auto& each : sockets) each->set_stays_open_elsewhere(true);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(sockets);
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ((co_await timeout(1s, listener.accept())).error(), Errc::timed_out);
    co_await connect_each(address, 0s, 6);
    co_await drain_after(1s);
    EXPECT_EQ(co_await accept_all(listener), 2);
    EXPECT_EQ(closed_, drained_);
  };
  run(talk());
}

TEST_F(ListenerDrain, DestroyedListenerStopsAcceptingFromEachSocket) {
  Sockets sockets = open(3);
  const Endpoint address = sockets[0]->bound();
  loop_->group().listener_registry().inherit(sockets);
  const auto talk = [&]() -> Task<> {
    {
      tcp::Listener listener = co_await listen_locally({}, address);
      EXPECT_EQ((co_await timeout(1s, listener.accept())).error(), Errc::timed_out);
      EXPECT_EQ(count_accepting(sockets), 3);
    }
    EXPECT_EQ(count_accepting(sockets), 0);
    for (const auto& each : sockets) {
      EXPECT_EQ(each.use_count(), sockets[0].use_count()) << "all are released immediately";
    }
  };
  run(talk());
}

TEST_F(ListenerDrain, DestroyedListenerClosesEachSocketBeforeItReportsThat) {
  Sockets sockets = open(3);
  const Endpoint address = sockets[0]->bound();
  std::vector<std::size_t> open_then;
  loop_->group().listener_registry().on_stopped = [&] {
    open_then.push_back(platform_.open_descriptors());
  };
  loop_->group().listener_registry().inherit(sockets);
  const std::size_t before = platform_.open_descriptors();
  const auto talk = [&]() -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ((co_await timeout(1s, listener.accept())).error(), Errc::timed_out);
    EXPECT_EQ(platform_.open_descriptors(), before + 3);
  };
  run(talk());
  EXPECT_EQ(open_then, (std::vector<std::size_t>{before + 2, before + 1, before}));
}

TEST_F(ListenerDrain, FailedExtraListenerIsAnErrorAndLeavesNoDescriptorOpen) {
  for (std::size_t more = 0; more < 3; ++more) {
    loop_ = Loop::make(platform_, {}).value();
    Sockets sockets = open(3);
    const Endpoint address = sockets[0]->bound();
    loop_->group().listener_registry().inherit(std::move(sockets));
    platform_.set_descriptors_max(platform_.open_descriptors() + more);
    const auto talk = [&]() -> Task<> {
      const auto listener = co_await tcp::listen(address);
      EXPECT_EQ(listener.error(), system_error(EMFILE)) << more;
    };
    run(talk());
    loop_.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0U) << more;
    platform_.set_descriptors_max(1000);
  }
  loop_ = Loop::make(platform_, {}).value();
}

// Sockets of two addresses, of which one of three and one of one have an older process that waits.
TEST_F(ListenerDrain, OlderProcessIsToldWhenTheLastOfItsSocketsIsUsed) {
  for (std::size_t waiting = 0; waiting < 3; ++waiting) {
    loop_ = Loop::make(platform_, {}).value();
    Sockets sockets = open(3);
    const Endpoint first = sockets[0]->bound();
    sockets[waiting]->set_peer_waits_for_accept();
    Sockets alone = open(1);
    const Endpoint second = alone[0]->bound();
    alone[0]->set_peer_waits_for_accept();
    sockets.push_back(std::move(alone[0]));
    int notified = 0;
    loop_->group().listener_registry().on_accepting = [&] { ++notified; };
    loop_->group().listener_registry().inherit(std::move(sockets));
    const auto talk = [&]() -> Task<> {
      tcp::Listener one = co_await listen_locally({}, first);
      tcp::Listener other = co_await listen_locally({}, second);
      for (int each = 0; each < 2; ++each) {
        EXPECT_EQ((co_await timeout(1s, one.accept())).error(), Errc::timed_out);
        EXPECT_EQ(notified, 0) << waiting;
      }
      EXPECT_EQ((co_await timeout(1s, other.accept())).error(), Errc::timed_out);
      EXPECT_EQ(notified, 1) << waiting;
      EXPECT_EQ((co_await timeout(1s, other.accept())).error(), Errc::timed_out);
      EXPECT_EQ(notified, 1) << "only the first accept counts";
    };
    run(talk());
  }
}

/// A platform that counts how often it is asked to listen.
class CountingPlatform final : public MemoryPlatform {
 public:
  Result<loop::Descriptor> listen(const os::Address& address,
                                  const ListenOptions& options) override {
    ++listens;
    return MemoryPlatform::listen(address, options);
  }
  int listens = 0;
};

// Each attempt on a path connects to the path's owner, so a listener makes fewer attempts there.
TEST(ListenerOfAFullPlatform, ListenIsRetriedAndRecordsItsFailure) {
  struct {
    Endpoint address;
    int attempts;
    Duration time;
  } const cases[] = {{Endpoint::loopback(80), 26, 1013ms},
                     {Endpoint::local("/socket").value(), 6, 1150ms}};
  for (const auto& each : cases) {
    CountingPlatform platform;
    const auto loop = Loop::make(platform, {}).value();
    const loop::Descriptor held = platform.listen(each.address, {.reuse_port = false}).value();
    platform.listens = 0;
    const Instant begun = platform.now();
    const auto failed = weir::run(*loop, tcp::listen(each.address));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error(), std::errc::address_in_use);
    EXPECT_EQ(platform.listens, each.attempts);
    EXPECT_EQ(platform.now() - begun, each.time);
    EXPECT_EQ(
        loop->group().listener_registry().failure(),
        "cannot listen on " + each.address.to_string() + ": " + system_error(EADDRINUSE).message());
  }
}

}  // namespace
}  // namespace weir::listener_drain_test
