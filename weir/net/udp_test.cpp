#include "weir/net/udp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::udp_test {
namespace {

using UdpTest = NetTest;
INSTANTIATE_TEST_SUITE_P(On, UdpTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests that need simulated sockets: for equal runs, or to wait in virtual time.
class SimulatedUdpTest : public UdpTest {};
INSTANTIATE_TEST_SUITE_P(On, SimulatedUdpTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

Task<udp::Socket> bind_locally(udp::Options options = {}) {
  auto socket = co_await udp::bind(Endpoint::loopback(0), options);
  co_return std::move(socket.value());
}

/// Returns the text of the next datagram, or the error message.
Task<std::string> receive_text(udp::Socket& socket) {
  const auto datagram = co_await socket.receive();
  if (!datagram) co_return datagram.error().message();
  co_return std::string(datagram->buffer.text());
}

Task<Result<udp::Datagram>> receive(udp::Socket& socket) {
  co_return co_await socket.receive();
}

TEST_P(UdpTest, SendsAndReceives) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    EXPECT_TRUE(co_await client.send("question", server.local_address()));
    const auto question = co_await server.receive();
    EXPECT_TRUE(question);
    if (!question) co_return;
    EXPECT_EQ(question->buffer.text(), "question");
    EXPECT_EQ(question->peer, client.local_address());
    EXPECT_EQ(question->truncated_bytes, 0U);
    EXPECT_TRUE(co_await server.send(question->buffer, question->peer));
    EXPECT_EQ(co_await receive_text(client), "question");
    EXPECT_EQ(client.peer_address(), Endpoint());
  };
  run(talk());
}

TEST_P(UdpTest, ConnectedSocketNeedsNoAddress) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    auto connected = co_await udp::connect(server.local_address());
    EXPECT_TRUE(connected);
    if (!connected) co_return;
    udp::Socket client = std::move(*connected);
    EXPECT_EQ(client.peer_address(), server.local_address());
    EXPECT_TRUE(co_await client.send("text"));
    EXPECT_TRUE(co_await client.send(to_bytes("bytes")));
    const std::string first = co_await receive_text(server);
    const std::string second = co_await receive_text(server);
    EXPECT_EQ((std::set<std::string>{first, second}), (std::set<std::string>{"text", "bytes"}));
    EXPECT_EQ((co_await server.send("to nobody")).error(), system_error(EDESTADDRREQ));
  };
  run(talk());
}

TEST_P(UdpTest, SendsAndReceivesManyAtTheSameTime) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    std::vector<std::string> texts;
    for (int i = 0; i < 70; ++i) texts.push_back("number " + std::to_string(i));
    std::vector<udp::Outgoing> datagrams;
    const Endpoint to = server.local_address();
    for (const std::string& text : texts) datagrams.push_back({to_bytes(text), to});
    EXPECT_TRUE(co_await client.send(datagrams));
    EXPECT_EQ(client.sent(), 70U);
    std::set<std::string> missing(texts.begin(), texts.end());
    std::array<udp::Datagram, 16> slots;
    while (!missing.empty()) {
      const auto count = co_await server.receive(slots);
      EXPECT_TRUE(count);
      if (!count) co_return;
      EXPECT_GE(*count, 1U);
      for (std::size_t i = 0; i < *count; ++i) {
        EXPECT_EQ(missing.erase(std::string(slots[i].buffer.text())), 1U);
        EXPECT_EQ(slots[i].peer, client.local_address());
      }
    }
  };
  run(talk());
}

TEST_P(UdpTest, SeparatesJoinedDatagrams) {
  const auto talk = []() -> Task<> {
    const udp::Options joined{.bytes_max = 8, .gro = true};
    udp::Socket server = co_await bind_locally(joined);
    udp::Socket client = co_await bind_locally();
    const Endpoint to = server.local_address();
    std::vector<std::string> texts;
    for (char each = 'a'; each <= 'z'; ++each) texts.push_back(std::string(20, each));
    texts.push_back("a last one, of another size");
    std::vector<udp::Outgoing> datagrams;
    for (const std::string& text : texts) datagrams.push_back({to_bytes(text), to});
    EXPECT_TRUE(co_await client.send(datagrams));
    std::set<std::string> missing(texts.begin(), texts.end());
    while (!missing.empty()) {
      const auto some = co_await server.receive();
      EXPECT_TRUE(some);
      if (!some) co_return;
      EXPECT_EQ(some->peer, client.local_address());
      some->for_each([&](Bytes each) { EXPECT_EQ(missing.erase(std::string(to_text(each))), 1U); });
    }
  };
  run(talk());
}

TEST_P(UdpTest, BothSidesReportTooLongDatagrams) {
  const auto talk = []() -> Task<> {
    const udp::Options small{.bytes_max = 4};
    udp::Socket server = co_await bind_locally(small);
    udp::Socket client = co_await bind_locally();
    const Endpoint to = server.local_address();
    EXPECT_TRUE(co_await client.send("0123456789", to));
    const auto cut = co_await server.receive();
    EXPECT_TRUE(cut);
    if (!cut) co_return;
    EXPECT_EQ(cut->buffer.text(), "0123");
    EXPECT_EQ(cut->truncated_bytes, 6U);
    const std::string longest(65'508, 'x');
    const std::vector<udp::Outgoing> mixed = {{to_bytes("fits"), to}, {to_bytes(longest), to}};
    EXPECT_EQ((co_await client.send(mixed)).error(), system_error(EMSGSIZE));
    EXPECT_EQ(client.sent(), 1U);
    EXPECT_EQ(co_await receive_text(server), "fits");
  };
  run(talk());
}

TEST_P(UdpTest, MissingPeerIsAnError) {
  const auto talk = []() -> Task<> {
    // The holder has the port but receives only from its own peer.
    const loop::DatagramOptions elsewhere{.local = Endpoint::loopback(0),
                                          .peer = Endpoint::ipv4({127, 0, 0, 2}, 9)};
    const Context own = co_await this_context();
    const auto holder = own.loop->platform().open_datagrams(elsewhere);
    EXPECT_TRUE(holder);
    if (!holder) co_return;
    const auto address = own.loop->platform().local_address(holder->value());
    auto connected = co_await udp::connect(address.value());
    EXPECT_TRUE(connected);
    if (!connected) co_return;
    udp::Socket client = std::move(*connected);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(co_await client.send("anybody?"));
      EXPECT_EQ((co_await client.receive()).error(), system_error(ECONNREFUSED));
    }
  };
  run(talk());
}

TEST_P(UdpTest, TimedOutReceiveLosesNoData) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    EXPECT_EQ((co_await timeout(1ms, receive(server))).error(), Errc::timed_out);
    EXPECT_EQ((co_await timeout(0ms, receive(server))).error(), Errc::timed_out);
    EXPECT_TRUE(co_await client.send("late", server.local_address()));
    EXPECT_EQ(co_await receive_text(server), "late");
  };
  run(talk());
}

Task<Result<std::size_t>> receive_several(udp::Socket& socket) {
  std::array<udp::Datagram, 2> slots;
  co_return co_await socket.receive(slots);
}

TEST_P(UdpTest, ReceiveOfSeveralReturnsTheErrorsOfAReceive) {
  const auto talk = [this]() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    EXPECT_EQ((co_await timeout(1ms, receive_several(server))).error(), Errc::timed_out);
    EXPECT_TRUE(co_await client.send("late", server.local_address()));
    EXPECT_EQ((co_await receive_several(server)).value(), 1U);
    // A holder has the port but receives only from its own peer.
    const loop::DatagramOptions elsewhere{.local = Endpoint::loopback(0),
                                          .peer = Endpoint::ipv4({127, 0, 0, 2}, 9)};
    const loop::Descriptor holder = platform_->open_datagrams(elsewhere).value();
    const Endpoint nobody = platform_->local_address(holder.value()).value();
    auto connected = co_await udp::connect(nobody);
    EXPECT_TRUE(connected);
    if (!connected) co_return;
    EXPECT_TRUE(co_await connected->send("anybody?"));
    EXPECT_EQ((co_await receive_several(*connected)).error(), system_error(ECONNREFUSED));
    loop_->drain();
    EXPECT_EQ((co_await receive_several(server)).error(), Errc::closed);
  };
  run(talk());
}

TEST_P(UdpTest, WaitingReceiveHoldsNoBuffer) {
  const auto talk = [this]() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    const BlockPool& blocks = loop_->blocks();
    const std::size_t before = blocks.blocks_in_use(BlockUse::buffer);
    std::array<udp::Datagram, 2> slots;
    EXPECT_TRUE(co_await client.send("first", server.local_address()));
    EXPECT_EQ((co_await server.receive(slots)).value(), 1U);
    const auto receive_again = [&]() -> Task<std::size_t> {
      const auto count = co_await server.receive(slots);
      co_return count.value();
    };
    const auto send = [&]() -> Task<> {
      co_await yield();
      loop_->blocks().collect();
      EXPECT_EQ(blocks.blocks_in_use(BlockUse::buffer), before) << "nor do the slots";
      EXPECT_TRUE(co_await client.send("second", server.local_address()));
    };
    const auto both = co_await all(receive_again(), send());
    EXPECT_EQ(std::get<0>(both.value()), 1U);
    EXPECT_EQ(slots[0].buffer.text(), "second");
  };
  run(talk());
}

TEST_P(UdpTest, SentCountsTheLastSendAlsoAfterAnError) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    const Endpoint to = server.local_address();
    const std::string longest(65'508, 'x');
    const std::vector<udp::Outgoing> three(3, udp::Outgoing{to_bytes("one of three"), to});
    EXPECT_TRUE(co_await client.send(three));
    EXPECT_EQ(client.sent(), 3U);
    EXPECT_EQ((co_await client.send(longest, to)).error(), system_error(EMSGSIZE));
    EXPECT_EQ(client.sent(), 0U);
    EXPECT_TRUE(co_await client.send("fits", to));
    EXPECT_EQ(client.sent(), 1U);
    EXPECT_EQ(server.sent(), 0U);
  };
  run(talk());
}

TEST_P(UdpTest, OperationsDoNotWaitInACancelledTask) {
  CancelSource cancel;
  cancel.cancel();
  const auto talk = []() -> Task<> {
    udp::Socket socket = co_await bind_locally();
    EXPECT_EQ((co_await socket.receive()).error(), Errc::cancelled);
    EXPECT_TRUE(co_await socket.send("to me", socket.local_address()));
  };
  run(talk(), &cancel);
}

TEST_P(SimulatedUdpTest, DrainLetsABoundSocketReceiveWaitingDatagrams) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    udp::Socket server = co_await bind_locally();
    udp::Socket client = co_await bind_locally();
    EXPECT_TRUE(co_await client.send("one", server.local_address()));
    EXPECT_EQ(co_await receive_text(server), "one");
    EXPECT_TRUE(co_await client.send("two", server.local_address()));
    own.loop->drain();
    EXPECT_EQ(co_await receive_text(server), "two");
    EXPECT_EQ((co_await server.receive()).error(), Errc::closed);
    EXPECT_EQ((co_await server.receive()).error(), Errc::closed) << "and stays closed";
    EXPECT_TRUE(co_await server.send("answer", client.local_address())) << "sending goes on";
  };
  run(talk());
}

TEST_P(UdpTest, DrainEndsAPendingReceive) {
  const auto talk = []() -> Task<> {
    udp::Socket server = co_await bind_locally();
    const auto drain = []() -> Task<> {
      const Context own = co_await this_context();
      co_await yield();
      own.loop->drain();
    };
    const auto both = co_await all(receive_text(server), drain());
    EXPECT_EQ(std::get<0>(*both), make_error_code(Errc::closed).message());
    udp::Socket late = co_await bind_locally();
    EXPECT_EQ((co_await late.receive()).error(), Errc::closed);
  };
  run(talk());
}

TEST_P(UdpTest, SocketWithoutCloseOnDrainStaysOpen) {
  const auto talk = []() -> Task<> {
    const udp::Options goes_on{.close_on_drain = false};
    udp::Socket server = co_await bind_locally(goes_on);
    auto connected = co_await udp::connect(server.local_address());
    EXPECT_TRUE(connected);
    if (!connected) co_return;
    udp::Socket client = std::move(*connected);
    const Context own = co_await this_context();
    own.loop->drain();
    const auto serve = [](udp::Socket& socket) -> Task<> {
      const auto asked = co_await socket.receive();
      EXPECT_TRUE(asked);
      EXPECT_TRUE(co_await socket.send("answer", asked->peer));
    };
    const auto ask = [](udp::Socket& socket) -> Task<std::string> {
      EXPECT_TRUE(co_await socket.send("question"));
      co_return co_await receive_text(socket);
    };
    const auto both = co_await all(serve(server), ask(client));
    EXPECT_EQ(std::get<1>(*both), "answer");
  };
  run(talk());
}

// A datagram is always available. The task would never end if it did not yield.
Task<> send_to_itself(udp::Socket& socket, const bool& over) {
  while (!over) {
    EXPECT_TRUE(co_await socket.send("round", socket.local_address()));
    EXPECT_EQ(co_await receive_text(socket), "round");
  }
}

TEST_P(UdpTest, OtherTasksRunDuringAFlood) {
  const auto talk = []() -> Task<> {
    udp::Socket socket = co_await bind_locally();
    bool over = false;
    const auto end = [](bool& flag) -> Task<> {
      for (int i = 0; i < 3; ++i) std::ignore = co_await sleep(0s);
      flag = true;
    };
    EXPECT_TRUE(co_await all(send_to_itself(socket, over), end(over)));
  };
  run(talk());
}

/// Counts the turns of the loop until the flag is set.
Task<> count_turns(int& turns, const bool& over) {
  while (!over) {
    ++turns;
    co_await yield();
  }
}

/// Sends `count` datagrams in each call. Returns the number of calls until the task had to wait.
Task<int> calls_until_a_wait(udp::Socket& socket, std::size_t count, const int& turns) {
  const std::vector<udp::Outgoing> datagrams(
      count, udp::Outgoing{to_bytes("flood"), socket.local_address()});
  for (int calls = 1; calls < 2000; ++calls) {
    const int before = turns;
    EXPECT_TRUE(co_await socket.send(datagrams));
    EXPECT_EQ(socket.sent(), count);
    if (turns != before) co_return calls;
  }
  co_return 0;
}

TEST_P(SimulatedUdpTest, FloodWaitsForTheNextTurnAfterAFixedNumberOfDatagrams) {
  const auto talk = []() -> Task<> {
    // A call counts as four datagrams, and 1024 are the limit.
    for (const auto& [count, calls] : {std::pair(1, 205), std::pair(28, 32), std::pair(29, 32)}) {
      udp::Socket socket = co_await bind_locally();
      EXPECT_EQ(socket.sent(), 0U);
      int turns = 0;
      bool over = false;
      const auto flood = [&](std::size_t each, int expected) -> Task<> {
        co_await yield();
        for (int round = 0; round < 3; ++round) {
          auto sending = calls_until_a_wait(socket, each, turns);
          EXPECT_EQ(co_await std::move(sending), expected) << each;
        }
        over = true;
      };
      EXPECT_TRUE(
          co_await all(flood(static_cast<std::size_t>(count), calls), count_turns(turns, over)));
    }
  };
  run(talk());
}

TEST_P(SimulatedUdpTest, ReceivesCountAsSendsDoInAFlood) {
  const auto talk = []() -> Task<> {
    udp::Socket socket = co_await bind_locally();
    int turns = 0;
    bool over = false;
    const auto flood = [&]() -> Task<> {
      co_await yield();
      const int before = turns;
      int operations = 0;
      while (turns == before && operations < 2000) {
        ++operations;
        if (operations % 2 == 1) {
          EXPECT_TRUE(co_await socket.send("round", socket.local_address()));
        } else {
          EXPECT_EQ((co_await socket.receive()).value().buffer.text(), "round");
        }
      }
      EXPECT_EQ(operations, 205);
      over = true;
    };
    EXPECT_TRUE(co_await all(flood(), count_turns(turns, over)));
  };
  run(talk());
}

TEST_P(UdpTest, HasTheDocumentedDefaults) {
  const udp::Options options;
  EXPECT_FALSE(options.reuse_port);
  EXPECT_EQ(options.bytes_max, Buffer::default_capacity);
  EXPECT_FALSE(options.gro);
  EXPECT_TRUE(options.close_on_drain);
  EXPECT_EQ(options.multicast_interface, 0U);
}

TEST_P(SimulatedUdpTest, OnlyAFailedSharedPortIsAFailureOfTheGroup) {
  const auto talk = [this]() -> Task<> {
    const loop::Descriptor held =
        platform_->open_datagrams({.local = Endpoint::loopback(0)}).value();
    const Endpoint address = platform_->local_address(held.value()).value();
    const Instant begun = platform_->now();
    EXPECT_EQ((co_await udp::bind(address)).error(), std::errc::address_in_use);
    EXPECT_EQ(platform_->now() - begun, 1013ms) << "the pauses of a listener";
    EXPECT_EQ(loop_->group().listener_registry().failure(), "");
    const udp::Options shared{.reuse_port = true};
    EXPECT_TRUE(co_await udp::bind(Endpoint::loopback(0), shared));
    EXPECT_EQ(loop_->group().listener_registry().failure(), "");
    EXPECT_EQ((co_await udp::bind(address, shared)).error(), std::errc::address_in_use);
    EXPECT_EQ(loop_->group().listener_registry().failure(),
              "cannot bind to " + address.to_string() + ": " + system_error(EADDRINUSE).message());
  };
  run(talk());
}

// Waiting is useless, because only this runtime itself can release the address.
TEST_P(UdpTest, AnAddressOfItsOwnRuntimeFailsImmediately) {
  const auto talk = [this]() -> Task<> {
    const udp::Options shared{.reuse_port = true};
    const Endpoint any = Endpoint::parse("0.0.0.0:0").value();
    for (const udp::Options& options : {udp::Options(), shared}) {
      udp::Socket held = (co_await udp::bind(any, options)).value();
      const Endpoint asked = Endpoint::loopback(held.local_address().port());
      const Instant begun = platform_->now();
      EXPECT_EQ((co_await udp::bind(asked)).error(), std::errc::address_in_use);
      EXPECT_EQ(loop_->group().listener_registry().failure(), "");
      if (simulated()) {  // other programs may delay a real test
        EXPECT_EQ(platform_->now(), begun);
      }
    }
    udp::Socket held = co_await bind_locally();
    const Endpoint address = held.local_address();
    EXPECT_EQ((co_await udp::bind(address, shared)).error(), std::errc::address_in_use);
    EXPECT_EQ(loop_->group().listener_registry().failure(),
              "cannot bind to " + address.to_string() + ": " + system_error(EADDRINUSE).message() +
                  ": this process has a socket at " + address.to_string());
  };
  run(talk());
}

TEST_P(SimulatedUdpTest, WaitsForAnAddressAfterItsOwnSocketHasClosed) {
  const auto talk = [this]() -> Task<> {
    Endpoint address;
    {
      const udp::Socket closed = co_await bind_locally();
      address = closed.local_address();
    }
    const loop::Descriptor held = platform_->open_datagrams({.local = address}).value();
    const Instant begun = platform_->now();
    EXPECT_EQ((co_await udp::bind(address)).error(), std::errc::address_in_use);
    EXPECT_EQ(platform_->now() - begun, 1013ms);
  };
  run(talk());
}

TEST_P(UdpTest, Moves) {
  const auto talk = []() -> Task<> {
    udp::Socket first = co_await bind_locally();
    const Endpoint address = first.local_address();
    udp::Socket second = std::move(first);
    udp::Socket third = co_await bind_locally();
    EXPECT_TRUE(co_await third.send("hello", address));
    EXPECT_EQ(co_await receive_text(second), "hello");
    third = std::move(second);
    EXPECT_EQ(third.local_address(), address);
  };
  run(talk());
}

TEST_P(UdpTest, RejectsInvalidAddresses) {
  const auto talk = []() -> Task<> {
    udp::Socket socket = co_await bind_locally();
    EXPECT_EQ((co_await udp::bind(socket.local_address())).error(), system_error(EADDRINUSE));
    EXPECT_EQ((co_await udp::bind(Endpoint())).error(), system_error(EAFNOSUPPORT));
    EXPECT_EQ((co_await udp::connect(Endpoint())).error(), system_error(EAFNOSUPPORT));
    EXPECT_EQ(socket.join(Endpoint::loopback(0)).error(), system_error(EINVAL));
    EXPECT_EQ(socket.leave(Endpoint::loopback(0)).error(), system_error(EADDRNOTAVAIL));
  };
  run(talk());
}

TEST_P(UdpTest, JoinsAndLeavesAMulticastGroup) {
  const auto talk = []() -> Task<> {
    auto bound = co_await udp::bind(Endpoint::any(0));
    EXPECT_TRUE(bound);
    if (!bound) co_return;
    udp::Socket socket = std::move(*bound);
    const Endpoint group =
        Endpoint::ipv6({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34}, 0);
    if (!socket.join(group)) co_return;  // no multicast on this machine
    EXPECT_EQ(socket.join(group).error(), system_error(EADDRINUSE));
    EXPECT_TRUE(socket.leave(group));
    EXPECT_EQ(socket.leave(group).error(), system_error(EADDRNOTAVAIL));
    EXPECT_TRUE(socket.join(group, 0));
    EXPECT_TRUE(socket.leave(group));
    EXPECT_TRUE(socket.join(group));
    EXPECT_TRUE(socket.leave(group, 0));
  };
  run(talk());
}

Task<> release_later(loop::Descriptor& held) {
  std::ignore = co_await sleep(20ms);
  held.reset();
}

// A killed process keeps its ports for a moment after its end.
TEST_P(UdpTest, WaitsForAnAddressThatIsReleasedSoon) {
  const auto talk = [this]() -> Task<> {
    loop::Descriptor held = platform_->open_datagrams({.local = Endpoint::loopback(0)}).value();
    const Endpoint address = platform_->local_address(held.value()).value();
    auto both = co_await all(udp::bind(address), release_later(held));
    EXPECT_EQ(std::get<0>(both.value()).local_address(), address);
  };
  run(talk());
}

Task<> drain_later(Loop& loop) {
  std::ignore = co_await sleep(5ms);
  loop.drain();
}

TEST_P(UdpTest, WaitForAnAddressEndsWithACancelOrADrain) {
  const auto talk = [this]() -> Task<> {
    const loop::Descriptor held =
        platform_->open_datagrams({.local = Endpoint::loopback(0)}).value();
    const Endpoint address = platform_->local_address(held.value()).value();
    const Instant begin = loop_->now();
    EXPECT_EQ((co_await timeout(5ms, udp::bind(address))).error(), Errc::timed_out);
    const auto both = co_await all(udp::bind(address), drain_later(*loop_));
    EXPECT_EQ(both.error(), std::errc::address_in_use);
    if (simulated()) {  // other programs may delay a real test
      EXPECT_LT(loop_->now() - begin, 900ms);
    }
  };
  run(talk());
}

TEST_P(UdpTest, SupportsIpv6) {
  const auto talk = []() -> Task<> {
    auto server = co_await udp::bind(Endpoint::parse("[::1]:0").value());
    if (!server) co_return;  // no IPv6 on this machine
    auto client = co_await udp::connect(server->local_address());
    EXPECT_TRUE(client);
    if (!client) co_return;
    EXPECT_TRUE(co_await client->send("six"));
    const auto received = co_await server->receive();
    EXPECT_TRUE(received);
    if (!received) co_return;
    EXPECT_EQ(received->buffer.text(), "six");
    EXPECT_EQ(received->peer, client->local_address());
  };
  run(talk());
}

struct SharedPort {
  Runtime& runtime;
  std::atomic<unsigned> bound{0};
  std::array<std::uint16_t, 2> ports{};  // by core
  std::array<int, 2> received{};         // by core
};

constexpr int peers_of_shared_port = 20;

Task<> send_and_drain(SharedPort& test, Endpoint server) {
  for (int i = 0; i < peers_of_shared_port; ++i) {
    const udp::Options goes_on{.close_on_drain = false};
    udp::Socket client = co_await bind_locally(goes_on);
    // A datagram counts as received only after its answer.
    EXPECT_TRUE(co_await client.send("hello", server));
    EXPECT_EQ(co_await receive_text(client), "hello");
  }
  test.runtime.drain();
}

Task<Result<>> receive_on_each_core(Scope& scope, SharedPort& test) {
  const udp::Options shared{.reuse_port = true};
  WEIR_CO_TRY(auto socket, co_await udp::bind(Endpoint::loopback(0), shared));
  const unsigned core = scope.loop().core();
  test.ports[core] = socket.local_address().port();
  if (++test.bound == 2) scope.spawn(send_and_drain(test, socket.local_address()));
  for (;;) {
    WEIR_CO_TRY(const auto datagram, co_await socket.receive());
    ++test.received[core];
    EXPECT_TRUE(co_await socket.send(datagram.buffer, datagram.peer));
  }
}

TEST_P(UdpTest, EachSharedSocketOfALoopOnPort0HasAPortOfItsOwn) {
  const auto talk = []() -> Task<> {
    const udp::Options shared{.reuse_port = true};
    const auto one = co_await udp::bind(Endpoint::loopback(0), shared);
    const auto other = co_await udp::bind(Endpoint::loopback(0), shared);
    EXPECT_TRUE(one && other);
    if (one && other) {
      EXPECT_NE(one->local_address(), other->local_address());
    }
  };
  run(talk());
}

TEST_P(UdpTest, CoresShareAPort) {
  RuntimeOptions options;
  options.cores = 2;
  options.pin = false;
  options.announce = false;
  options.backend = GetParam().backend;
  options.handle_signals = false;
  Runtime runtime(*platform_, options);
  loop_.reset();
  SharedPort test{runtime};
  EXPECT_EQ(runtime.run_on_each_core(receive_on_each_core, std::ref(test)), 0);
  EXPECT_NE(test.ports[0], 0);
  EXPECT_EQ(test.ports[0], test.ports[1]);
  EXPECT_EQ(test.received[0] + test.received[1], peers_of_shared_port);
}

}  // namespace
}  // namespace weir::udp_test
