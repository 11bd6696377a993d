// Tests of the rendezvous of simulated processes and of the messages between them.
#include "weir/sim/detail/handover_endpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/sim/host.hpp"

namespace weir::sim::handover_endpoint_test {
namespace {

using Kind = loop::HandoverMessage::Kind;
using Received = loop::HandoverConnection::ReceiveResult;

loop::HandoverMessage text_message(std::string text) {
  return {.kind = Kind::reject, .text = std::move(text)};
}

/// Processes of one machine. Their mains use endpoints without a World: run() resumes a main
/// that is not blocked, or else moves the clock to the next event.
class SimEndpoints : public testing::Test {
 protected:
  using Body = std::function<void(SimHandoverEndpoint&)>;

  void start(Host& host, Body body) {
    host.start([this, &host, body = std::move(body)](loop::Platform&) {
      SimHandoverEndpoint endpoint(host, state_, names_, "/run/x");
      body(endpoint);
      return 0;
    });
  }
  void run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Host* const host : {&one_, &two_, &three_}) {
        if (host->has_returned() || host->main_is_blocked()) continue;
        host->resume();
        progress = true;
      }
      if (progress || state_.clock.next() == never) continue;
      state_.clock.move_to(state_.clock.next());
      progress = true;
    }
  }
  Duration elapsed() const { return state_.clock.now() - begun_; }
  static Received receive(loop::HandoverConnection& connection) {
    return connection.receive(never);
  }

  WorldState state_{WorldOptions{.seed = 3, .jitter = no_jitter}};
  SimRendezvousMap names_;
  Host one_{state_, "one", 0U, {}};
  Host two_{state_, "two", one_, {}};
  Host three_{state_, "three", one_, {}};
  Instant begun_ = state_.clock.now();
};

TEST_F(SimEndpoints, TheFirstListensAndTheSecondConnects) {
  std::vector<std::string> heard;
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.name(), "/run/x");
    EXPECT_FALSE(endpoint.socket());
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_TRUE(endpoint.socket());
    EXPECT_EQ(one_.open_descriptors(), 1U);
    const auto newer = endpoint.accept_newer();
    ASSERT_NE(newer, nullptr);
    EXPECT_EQ(newer->peer_rejection_reason(), "");
    for (int message = 0; message < 2; ++message) {
      EXPECT_EQ(receive(*newer), Received::message);
      heard.push_back(newer->message().text);
    }
    EXPECT_TRUE(newer->send(text_message("answer")));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    ASSERT_NE(older, nullptr);
    EXPECT_FALSE(endpoint.socket());
    EXPECT_TRUE(older->send(text_message("hello")));
    EXPECT_TRUE(older->send(text_message("again")));
    EXPECT_EQ(receive(*older), Received::message);
    heard.push_back(older->message().text);
    EXPECT_EQ(receive(*older), Received::closed) << "the older process has ended";
    EXPECT_EQ(older->send(text_message("late")).error(), system_error(EPIPE));
  });
  run();
  EXPECT_EQ(heard, (std::vector<std::string>{"hello", "again", "answer"}));
  EXPECT_EQ(one_.open_descriptors(), 0U);
  EXPECT_TRUE(names_.empty()) << "the owner has removed the name";
}

TEST_F(SimEndpoints, MessagesBeforeTheEndAreReceivedFirst) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    EXPECT_FALSE(endpoint.wait(after(state_.clock.now(), 10s)));
    EXPECT_EQ(receive(*newer), Received::message);
    EXPECT_EQ(newer->message().text, "last");
    EXPECT_EQ(receive(*newer), Received::closed);
    EXPECT_EQ(receive(*newer), Received::closed);
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_TRUE(older->send(text_message("last")));
  });
  run();
}

TEST_F(SimEndpoints, ASideThatDoesNotReceiveRejectsMessages) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    EXPECT_EQ(receive(*newer), Received::message);
    newer->shut_down_receiving();
    EXPECT_TRUE(newer->send(text_message("done")));
    EXPECT_EQ(receive(*newer), Received::message) << "it was sent before";
    EXPECT_EQ(newer->message().text, "two");
    EXPECT_EQ(receive(*newer), Received::closed);
    EXPECT_FALSE(endpoint.wait(after(state_.clock.now(), 20s)));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_TRUE(older->send(text_message("one")));
    EXPECT_TRUE(older->send(text_message("two")));
    EXPECT_EQ(receive(*older), Received::message);
    EXPECT_EQ(older->send(text_message("three")).error(), system_error(EPIPE));
    EXPECT_EQ(older->receive(after(state_.clock.now(), 1s)), Received::timed_out)
        << "the other side can still send";
  });
  run();
}

TEST_F(SimEndpoints, WaitsEndAtTheirTime) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_FALSE(endpoint.wait(after(begun_, 5s)));
    EXPECT_EQ(elapsed(), 5s);
    EXPECT_FALSE(endpoint.wait(after(begun_, 5s))) << "that time has passed";
    EXPECT_EQ(elapsed(), 5s);
    const auto newer = endpoint.accept_newer();
    EXPECT_EQ(newer->receive(after(begun_, 9s)), Received::timed_out);
    EXPECT_EQ(elapsed(), 9s);
    EXPECT_EQ(newer->receive(after(begun_, 9s)), Received::timed_out);
    EXPECT_EQ(newer->receive(after(begun_, 30s)), Received::message);
    EXPECT_GE(elapsed(), 20s);
    EXPECT_LE(elapsed(), 22s) << "a thread is resumed at most two seconds late";
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 1s)));
    const auto older = endpoint.connect_or_listen().value();
    ASSERT_NE(older, nullptr);
    EXPECT_FALSE(endpoint.wait(after(begun_, 20s)));
    EXPECT_TRUE(older->send(text_message("late")));
    EXPECT_FALSE(endpoint.wait(after(begun_, 40s)));
  });
  run();
  EXPECT_EQ(elapsed(), 40s);
}

TEST_F(SimEndpoints, ANotificationInterruptsEachWaitOnce) {
  SimHandoverEndpoint* notified = nullptr;
  const auto notify = [&] { notified->notify(); };
  for (const Duration moment : {10s, 20s, 30s}) state_.clock.at(after(begun_, moment), notify);
  // A thread is resumed at most two seconds late.
  const auto expect_soon_after = [&](Duration moment) {
    EXPECT_GE(elapsed(), moment);
    EXPECT_LE(elapsed(), moment + 2s);
  };
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    notified = &endpoint;
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_TRUE(endpoint.wait(after(begun_, 100s)));
    expect_soon_after(10s);
    EXPECT_EQ(endpoint.accept_newer(), nullptr);
    expect_soon_after(20s);
    EXPECT_EQ(endpoint.accept_newer(), nullptr);
    expect_soon_after(30s);
    EXPECT_FALSE(endpoint.wait(after(begun_, 40s))) << "the notification is used up";
    const auto newer = endpoint.accept_newer();
    ASSERT_NE(newer, nullptr);
    endpoint.notify();
    EXPECT_EQ(receive(*newer), Received::interrupted);
    EXPECT_EQ(receive(*newer), Received::message);
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 50s)));
    const auto older = endpoint.connect_or_listen().value();
    ASSERT_NE(older, nullptr);
    EXPECT_TRUE(older->send(text_message("hello")));
  });
  run();
}

TEST_F(SimEndpoints, SocketsTravelInMessages) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    const loop::Descriptor listener = one_.listen(Endpoint::any(80), {}).value();
    loop::HandoverMessage offer{.kind = Kind::offer};
    offer.sockets = {{.address = "a"}, {.address = "b"}};
    const std::array numbers = {listener.value(), endpoint.socket().value()};
    EXPECT_TRUE(newer->send(offer, numbers));
    EXPECT_TRUE(newer->send(offer, numbers));
    EXPECT_EQ(one_.open_descriptors(), 2U) << "they stay open here";
    EXPECT_FALSE(endpoint.wait(after(begun_, 20s)));
    endpoint.drop_ownership();
    endpoint.close();
    EXPECT_FALSE(endpoint.socket());
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_EQ(receive(*older), Received::message);
    EXPECT_EQ(older->message().sockets.size(), 2U);
    EXPECT_EQ(receive(*older), Received::message) << "the sockets of the first one are closed";
    EXPECT_EQ(two_.open_descriptors(), 2U);
    std::vector<loop::Descriptor> sockets = older->take_sockets();
    ASSERT_EQ(sockets.size(), 2U);
    EXPECT_NE(two_.descriptors().listener(sockets[0].value()), nullptr);
    endpoint.set_socket(std::move(sockets[1]));
    endpoint.take_ownership();
    EXPECT_EQ(receive(*older), Received::closed);
    EXPECT_FALSE(endpoint.wait(after(begun_, 30s)));
    EXPECT_EQ(names_.size(), 1U) << "the older process no longer owns the name";
    EXPECT_FALSE(names_["/run/x"].expired());
  });
  run();
  EXPECT_TRUE(names_.empty());
  EXPECT_EQ(two_.open_descriptors(), 0U);
}

TEST_F(SimEndpoints, TheNextProcessConnectsToTheOneThatHasTheSocket) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    loop::HandoverMessage offer{.kind = Kind::offer};
    offer.sockets = {{.address = "a"}};
    const std::array numbers = {endpoint.socket().value()};
    EXPECT_TRUE(newer->send(offer, numbers));
    endpoint.drop_ownership();
    endpoint.close();
    EXPECT_FALSE(endpoint.wait(after(begun_, 50s)));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_EQ(receive(*older), Received::message);
    endpoint.set_socket(std::move(older->take_sockets()[0]));
    endpoint.take_ownership();
    const auto newer = endpoint.accept_newer();
    ASSERT_NE(newer, nullptr);
    EXPECT_GE(elapsed(), 30s);
    EXPECT_LE(elapsed(), 32s) << "it is woken by the connection";
    EXPECT_EQ(receive(*newer), Received::message);
    EXPECT_EQ(newer->message().text, "third");
  });
  start(three_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 30s)));
    const auto older = endpoint.connect_or_listen().value();
    ASSERT_NE(older, nullptr);
    EXPECT_TRUE(older->send(text_message("third")));
    EXPECT_EQ(receive(*older), Received::closed);
  });
  run();
  EXPECT_TRUE(names_.empty());
}

TEST_F(SimEndpoints, AKillAfterTheHandoverIsHarmless) {
  one_.start([&](loop::Platform&) {
    {
      SimHandoverEndpoint endpoint(one_, state_, names_, "/run/x");
      EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    }
    one_.kill();
    return 0;
  });
  run();
  EXPECT_TRUE(one_.killed());
  EXPECT_TRUE(one_.has_returned());
}

TEST_F(SimEndpoints, AMessageWithoutRoomForItsSocketsIsInvalid) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    loop::HandoverMessage offer{.kind = Kind::offer};
    offer.sockets = {{.address = "a"}, {.address = "b"}};
    const std::array numbers = {endpoint.socket().value(), endpoint.socket().value()};
    for (int message = 0; message < 2; ++message) EXPECT_TRUE(newer->send(offer, numbers));
    EXPECT_TRUE(newer->send(text_message("next")));
    EXPECT_FALSE(endpoint.wait(after(begun_, 20s)));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    for (const std::size_t room : {0U, 1U}) {
      two_.set_descriptors_max(room);
      EXPECT_EQ(receive(*older), Received::invalid);
      EXPECT_EQ(two_.open_descriptors(), 0U) << "with room for " << room;
      EXPECT_TRUE(older->take_sockets().empty());
    }
    EXPECT_EQ(receive(*older), Received::message);
    EXPECT_EQ(older->message().text, "next");
    EXPECT_EQ(two_.open_descriptors(), 0U);
  });
  run();
}

TEST_F(SimEndpoints, ListeningFailsWithoutADescriptor) {
  one_.set_descriptors_max(0);
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().error(), system_error(EMFILE));
  });
  run();
  EXPECT_TRUE(names_.empty() || names_["/run/x"].expired());
}

TEST_F(SimEndpoints, ANewerProcessMayConnectWhileTheOlderOneAccepts) {
  // A waiting connection is closed when the last process closes the socket.
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_FALSE(endpoint.wait(after(begun_, 10s)));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 1s)));
    const auto older = endpoint.connect_or_listen().value();
    ASSERT_NE(older, nullptr);
    EXPECT_EQ(receive(*older), Received::closed);
    EXPECT_GE(elapsed(), 10s);
  });
  run();
}

TEST_F(SimEndpoints, EachCallIsAStep) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    const auto steps = [&] { return one_.handover_steps(); };
    EXPECT_EQ(steps(), 0U);
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_EQ(steps(), 1U);
    endpoint.take_ownership();
    EXPECT_EQ(steps(), 2U);
    endpoint.drop_ownership();
    EXPECT_EQ(steps(), 3U);
    endpoint.notify();
    EXPECT_TRUE(endpoint.wait(never));
    EXPECT_EQ(steps(), 4U);
    endpoint.notify();
    EXPECT_EQ(endpoint.accept_newer(), nullptr);
    EXPECT_EQ(steps(), 5U);
    const auto newer = endpoint.accept_newer();
    const std::uint64_t before = steps();
    EXPECT_TRUE(newer->send(text_message("x")));
    EXPECT_EQ(steps(), before + 1);
    endpoint.notify();
    EXPECT_EQ(receive(*newer), Received::interrupted);
    EXPECT_EQ(steps(), before + 2);
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 1s)));
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_FALSE(endpoint.wait(after(begun_, 5s)));
  });
  run();
}

TEST_F(SimEndpoints, AKilledProcessLosesItsEndpoint) {
  two_.kill_at_handover_step(2);
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    const auto newer = endpoint.accept_newer();
    EXPECT_EQ(receive(*newer), Received::message);
    EXPECT_EQ(newer->message().text, "alive");
    EXPECT_EQ(receive(*newer), Received::closed);
    EXPECT_EQ(newer->send(text_message("x")).error(), system_error(EPIPE));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    const auto older = endpoint.connect_or_listen().value();
    EXPECT_TRUE(older->send(text_message("alive")));
    EXPECT_FALSE(endpoint.dead());
    EXPECT_EQ(older->send(text_message("dead")).error(), system_error(EPIPE));
    EXPECT_TRUE(endpoint.dead());
    EXPECT_TRUE(two_.killed());
    EXPECT_EQ(older->receive(never), Received::interrupted);
    EXPECT_EQ(older->receive(never), Received::closed);
    EXPECT_EQ(endpoint.connect_or_listen().error(), system_error(EINTR));
    endpoint.take_ownership();
  });
  run();
}

TEST_F(SimEndpoints, EachMainCountsItsOwnSteps) {
  two_.kill_at_handover_step(1);
  const auto wait_often = [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(two_.handover_steps(), 0U);
    for (int waits = 0; waits < 3; ++waits) {
      endpoint.notify();
      EXPECT_TRUE(endpoint.wait(never));
    }
    EXPECT_EQ(two_.handover_steps(), 3U);
  };
  start(two_, wait_often);
  run();
  EXPECT_TRUE(two_.killed());
  start(two_, wait_often);
  run();
  EXPECT_FALSE(two_.killed()) << "a kill is planned for one main";
}

TEST_F(SimEndpoints, AStepThatAMainDoesNotReachCountsForTheNextOne) {
  int waits = 2;
  const auto wait_some = [&](SimHandoverEndpoint& endpoint) {
    for (int left = waits; left > 0; --left) {
      endpoint.notify();
      EXPECT_TRUE(endpoint.wait(never));
    }
  };
  two_.kill_at_handover_step(2);
  start(two_, wait_some);
  run();
  EXPECT_FALSE(two_.killed());
  waits = 3;
  start(two_, wait_some);
  run();
  EXPECT_TRUE(two_.killed());
  two_.kill_at_handover_step(2);
  start(two_, [&](SimHandoverEndpoint&) { two_.kill(); });
  run();
  start(two_, wait_some);
  run();
  EXPECT_FALSE(two_.killed()) << "an earlier kill has dropped the plan";
}

TEST_F(SimEndpoints, AWokenThreadRunsAfterARandomTime) {
  state_.jitter.step_max = 100ms;
  SimHandoverEndpoint* notified = nullptr;
  constexpr int wakes = 300;
  for (int number = 1; number <= wakes; ++number) {
    state_.clock.at(after(begun_, number * 10s), [&] { notified->notify(); });
  }
  std::vector<Duration> late;
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    notified = &endpoint;
    for (int number = 1; number <= wakes; ++number) {
      EXPECT_TRUE(endpoint.wait(never));
      late.push_back(elapsed() - number * 10s);
    }
  });
  run();
  ASSERT_EQ(late.size(), std::size_t{wakes});
  std::ranges::sort(late);
  EXPECT_LT(late.front(), 5ms);
  EXPECT_NEAR(static_cast<double>(late[wakes / 2].count()), 5e7, 2e7);
  const auto very = std::ranges::count_if(late, [](Duration each) { return each > 100ms; });
  EXPECT_NEAR(static_cast<double>(very), wakes * 0.05, 12) << "a few are very late";
  EXPECT_GT(late.back(), 1s);
  EXPECT_LE(late.back(), 2s);
}

TEST_F(SimEndpoints, ANotificationDoesNotPostponeTheEndOfAWait) {
  state_.jitter.step_max = 100ms;
  SimHandoverEndpoint* notified = nullptr;
  constexpr int waits = 20;
  for (int number = 1; number <= waits; ++number) {
    state_.clock.at(after(begun_, number * 10s - 1ns), [&] { notified->notify(); });
  }
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    notified = &endpoint;
    for (int number = 1; number <= waits; ++number) {
      EXPECT_TRUE(endpoint.wait(after(begun_, number * 10s)));
      EXPECT_LE(elapsed(), number * 10s);
      EXPECT_GE(elapsed(), number * 10s - 1ns);
    }
  });
  run();
}

TEST_F(SimEndpoints, TheNameStaysAfterTheDeathOfItsOwner) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    one_.kill();
    EXPECT_FALSE(endpoint.socket()) << "its socket is closed";
    EXPECT_TRUE(endpoint.wait(never));
    endpoint.take_ownership();
  });
  run();
  ASSERT_EQ(names_.size(), 1U);
  EXPECT_TRUE(names_["/run/x"].expired());
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr) << "no process listens there";
    EXPECT_TRUE(endpoint.socket());
  });
  run();
  EXPECT_TRUE(names_.empty());
}

TEST_F(SimEndpoints, AnOwnerRemovesOnlyTheNameOfItsOwnSocket) {
  start(one_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_FALSE(endpoint.wait(after(begun_, 10s)));
  });
  start(two_, [&](SimHandoverEndpoint& endpoint) {
    EXPECT_FALSE(endpoint.wait(after(begun_, 1s)));
    names_.erase("/run/x");  // the name was removed by hand
    EXPECT_EQ(endpoint.connect_or_listen().value(), nullptr);
    EXPECT_FALSE(endpoint.wait(after(begun_, 20s)));
    EXPECT_TRUE(one_.has_returned());
    EXPECT_FALSE(names_["/run/x"].expired()) << "the name is that of this process";
  });
  run();
  EXPECT_TRUE(names_.empty());
}

TEST(SimRendezvousTest, GivesConnectionsInTheirOrder) {
  SimRendezvous rendezvous;
  EXPECT_EQ(rendezvous.kind(), MemoryEndpoint::Kind::rendezvous);
  EXPECT_EQ(rendezvous.take(), nullptr);
  const auto first = std::make_shared<SimPipe>();
  const auto second = std::make_shared<SimPipe>();
  rendezvous.add_connection(first);
  rendezvous.add_connection(second);
  EXPECT_EQ(rendezvous.take(), first);
  EXPECT_EQ(rendezvous.take(), second);
  EXPECT_EQ(rendezvous.take(), nullptr);
}

TEST(SimPipeTest, CarriesMessagesUntilASideLeaves) {
  using Side = SimPipe::Side;
  SimPipe pipe;
  EXPECT_FALSE(pipe.ended(Side::older));
  EXPECT_FALSE(pipe.ended(Side::newer));
  EXPECT_FALSE(pipe.receive(Side::older));
  EXPECT_TRUE(pipe.send(Side::newer, {text_message("a")}));
  EXPECT_TRUE(pipe.send(Side::newer, {text_message("b")}));
  EXPECT_TRUE(pipe.send(Side::older, {text_message("c")}));
  EXPECT_EQ(pipe.receive(Side::older)->message.text, "a");
  pipe.leave(Side::newer);
  EXPECT_EQ(pipe.receive(Side::older)->message.text, "b");
  EXPECT_FALSE(pipe.receive(Side::older));
  EXPECT_FALSE(pipe.receive(Side::newer)) << "its messages are lost";
  EXPECT_TRUE(pipe.ended(Side::older));
  EXPECT_TRUE(pipe.ended(Side::newer));
  EXPECT_FALSE(pipe.send(Side::newer, {text_message("d")}));
  EXPECT_FALSE(pipe.send(Side::older, {text_message("e")}));
}

TEST(SimPipeTest, ASideThatLeavesClosesTheSocketsOfItsMessages) {
  using Side = SimPipe::Side;
  SimPipe pipe;
  auto socket = std::make_shared<SimRendezvous>();
  const std::weak_ptr<SimRendezvous> watched = socket;
  EXPECT_TRUE(pipe.send(Side::newer, {text_message("a"), {std::move(socket)}}));
  EXPECT_FALSE(watched.expired()) << "the message holds it";
  pipe.leave(Side::newer);
  EXPECT_FALSE(watched.expired()) << "the message may still be received";
  pipe.leave(Side::older);
  EXPECT_TRUE(watched.expired());
}

TEST(SimPipeTest, EndsForASideThatDoesNotReceive) {
  using Side = SimPipe::Side;
  SimPipe pipe;
  pipe.stop_listening(Side::older);
  EXPECT_TRUE(pipe.ended(Side::older));
  EXPECT_FALSE(pipe.ended(Side::newer));
  EXPECT_FALSE(pipe.send(Side::newer, {text_message("a")}));
  EXPECT_TRUE(pipe.send(Side::older, {text_message("b")}));
}

}  // namespace
}  // namespace weir::sim::handover_endpoint_test
