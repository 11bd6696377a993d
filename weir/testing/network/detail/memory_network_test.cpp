// Tests of the listeners and addresses of a simulated network, alone and among several hosts.
#include "weir/testing/network/detail/memory_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "weir/testing/test/two_hosts.hpp"

namespace weir::memory_network_test {
namespace {

using os::Address;
using Outcome = MemoryNetwork::ConnectResult;
using testing::ElementsAre;

const Address any_ipv4 = Address::ipv4({0, 0, 0, 0}, 80);
const Address any_ipv6 = Address::any(80);
const Address loopback = Address::loopback(80);
const Address loopback_ipv6 = loopback_of(os::AddressFamily::ipv6, 80);

std::unique_ptr<MemoryListener> listen(MemoryNetwork& network, const Address& address) {
  return network.listen(address, {.backlog = 10, .reuse_port = true, .require_unused = false})
      .value();
}

class MemoryNetworkOfOneHost : public testing::Test {
 protected:
  std::error_code error_of(const Address& address, MemoryNetwork::ListenRequest how) {
    const auto made = network_.listen(address, how);
    return made ? std::error_code() : made.error();
  }
  Outcome connect(const Address& peer) {
    streams_.push_back(network_.open_stream());
    return network_.connect(*streams_.back(), peer);
  }

  ScriptedNondeterminism script_;
  MemoryNetwork network_{1000, script_};
  std::vector<std::unique_ptr<MemoryStream>> streams_;
};

TEST_F(MemoryNetworkOfOneHost, AnAddressIsSharedOnlyIfEveryListenerAllowsIt) {
  const std::error_code in_use = system_error(EADDRINUSE);
  struct {
    Address first;
    bool first_shares;
    Address second;
    bool second_shares;
    bool require_unused;
    std::error_code expected;
  } const cases[] = {
      {loopback, true, loopback, true, false, {}},
      {loopback, true, loopback, true, true, in_use},
      {loopback, true, loopback, false, false, in_use},
      {loopback, false, loopback, true, false, in_use},
      {loopback, false, Address::loopback(81), false, true, {}},
      {any_ipv4, false, loopback, false, false, in_use},
      {loopback, false, any_ipv4, false, false, in_use},
      {any_ipv6, false, loopback, true, false, in_use},
      {loopback_ipv6, false, any_ipv6, false, false, in_use},
      {any_ipv4, false, loopback_ipv6, false, false, {}},
      {any_ipv6, true, loopback, true, false, {}},
  };
  for (const auto& each : cases) {
    const auto first = network_.listen(
        each.first, {.backlog = 1, .reuse_port = each.first_shares, .require_unused = false});
    ASSERT_TRUE(first);
    EXPECT_EQ(error_of(each.second, {.backlog = 1,
                                     .reuse_port = each.second_shares,
                                     .require_unused = each.require_unused}),
              each.expected)
        << each.first.to_string() << " and " << each.second.to_string();
  }
  EXPECT_EQ(error_of(loopback, {.backlog = 1, .reuse_port = false, .require_unused = true}),
            std::error_code())
      << "destroyed listeners do not use it";
}

TEST_F(MemoryNetworkOfOneHost, AUnixAddressIsNeverShared) {
  const Address path = Address::local("/run/a").value();
  const auto first = listen(network_, path);
  EXPECT_EQ(error_of(path, {.backlog = 1, .reuse_port = true, .require_unused = false}),
            system_error(EADDRINUSE));
  EXPECT_EQ(first->local(), path);
}

TEST_F(MemoryNetworkOfOneHost, PortZeroStandsForAnUnusedPort) {
  const auto first = listen(network_, Address::loopback(32769));
  const auto second = listen(network_, Address::loopback(0));
  const auto third = listen(network_, Address::loopback(0));
  EXPECT_EQ(second->local(), Address::loopback(32768));
  EXPECT_EQ(third->local(), Address::loopback(32770));
  EXPECT_EQ(error_of(Address(), {.backlog = 1, .reuse_port = true, .require_unused = false}),
            system_error(EAFNOSUPPORT));
}

TEST_F(MemoryNetworkOfOneHost, TheMostSpecificListenerGetsTheConnection) {
  const auto ipv6 = listen(network_, any_ipv6);
  EXPECT_EQ(connect(loopback), Outcome::established);
  EXPECT_EQ(ipv6->waiting(), 1U) << "[::] receives IPv4 too";
  const auto ipv4 = listen(network_, any_ipv4);
  EXPECT_EQ(connect(loopback), Outcome::established);
  EXPECT_EQ(ipv4->waiting(), 1U);
  EXPECT_EQ(connect(loopback_ipv6), Outcome::established);
  EXPECT_EQ(ipv6->waiting(), 2U);
  const auto exact = listen(network_, loopback);
  EXPECT_EQ(connect(loopback), Outcome::established);
  EXPECT_EQ(exact->waiting(), 1U);
  EXPECT_EQ(connect(any_ipv4), Outcome::established);
  EXPECT_EQ(exact->waiting(), 2U) << "a wildcard address is this machine";
  EXPECT_EQ(connect(Address::loopback(81)), Outcome::refused);
  EXPECT_EQ(ipv4->waiting() + ipv6->waiting(), 3U);
}

TEST_F(MemoryNetworkOfOneHost, ListenersOfOneAddressGetConnectionsInTurn) {
  std::vector<std::unique_ptr<MemoryListener>> listeners;
  for (int number = 0; number < 4; ++number) listeners.push_back(listen(network_, loopback));
  const auto waiting = [&] {
    std::vector<std::size_t> counts;
    for (const auto& each : listeners) counts.push_back(each->waiting());
    return counts;
  };
  for (int connections = 0; connections < 5; ++connections) connect(loopback);
  EXPECT_THAT(waiting(), ElementsAre(2, 1, 1, 1));
  script_.first_listener = true;
  connect(loopback);
  EXPECT_THAT(waiting(), ElementsAre(3, 1, 1, 1));
  script_.first_listener = false;
  script_.picked_from.clear();
  script_.picks_last = true;
  connect(loopback);  // the turn of the second one, and then three further
  EXPECT_THAT(waiting(), ElementsAre(4, 1, 1, 1));
  EXPECT_THAT(script_.picked_from, ElementsAre(4));
}

TEST_F(MemoryNetworkOfOneHost, EachAddressHasItsOwnTurns) {
  std::vector<std::unique_ptr<MemoryListener>> listeners;
  for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{81}}) {
    for (int number = 0; number < 2; ++number) {
      listeners.push_back(listen(network_, Address::loopback(port)));
    }
  }
  for (int connections = 0; connections < 4; ++connections) {
    connect(Address::loopback(80));
    connect(Address::loopback(81));
  }
  for (const auto& each : listeners) EXPECT_EQ(each->waiting(), 2U);
}

TEST_F(MemoryNetworkOfOneHost, ARefusingListenerLeavesItsTurnToOthers) {
  const auto first = listen(network_, loopback);
  const auto second = listen(network_, loopback);
  first->refuse();
  for (int connections = 0; connections < 3; ++connections) {
    EXPECT_EQ(connect(loopback), Outcome::established);
  }
  EXPECT_EQ(first->waiting(), 0U);
  EXPECT_EQ(second->waiting(), 3U);
  second->refuse();
  EXPECT_EQ(connect(loopback), Outcome::no_reply);
}

TEST_F(MemoryNetworkOfOneHost, ARefusingListenerGivesNoReply) {
  const auto listener = listen(network_, loopback);
  EXPECT_EQ(connect(loopback), Outcome::established);
  listener->refuse();
  EXPECT_EQ(connect(loopback), Outcome::no_reply);
  EXPECT_NE(listener->take(), nullptr) << "waiting connections can still be taken";
  const Address path = Address::local("/run/a").value();
  const auto local = listen(network_, path);
  local->refuse();
  EXPECT_EQ(connect(path), Outcome::refused);
}

TEST_F(MemoryNetworkOfOneHost, BothEndsKnowTheirAddresses) {
  const auto listener = listen(network_, any_ipv4);
  ASSERT_EQ(connect(loopback), Outcome::established);
  const auto accepted = listener->take();
  EXPECT_EQ(accepted->local(), loopback);
  EXPECT_EQ(streams_[0]->peer_address(), loopback);
  EXPECT_EQ(streams_[0]->local(), Address::loopback(32768));
  EXPECT_EQ(accepted->peer_address(), Address::loopback(32768));
  EXPECT_TRUE(accepted->connected());
  EXPECT_TRUE(streams_[0]->connected());

  const Address path = Address::local("/run/a").value();
  const auto local = listen(network_, path);
  ASSERT_EQ(connect(path), Outcome::established);
  EXPECT_EQ(streams_[1]->local().to_string(), "unix:") << "it has no name";
  EXPECT_EQ(streams_[1]->peer_address(), path);
}

TEST_F(MemoryNetworkOfOneHost, ReportsConnectionsToBothSides) {
  const auto listener = listen(network_, loopback);
  ChangeProbe arrived;
  ChangeProbe connected;
  listener->observe(arrived);
  const auto stream = network_.open_stream();
  stream->observe(connected);
  ASSERT_EQ(network_.connect(*stream, loopback), Outcome::established);
  EXPECT_EQ(arrived.changes, 1);
  EXPECT_EQ(connected.changes, 1);
  stream->unobserve(connected);
  listener->unobserve(arrived);
}

TEST_F(MemoryNetworkOfOneHost, TheBufferSizeIsDrawnForEachSide) {
  script_.buffer_max = 7;
  const auto listener = listen(network_, loopback);
  ASSERT_EQ(connect(loopback), Outcome::established);
  const auto accepted = listener->take();
  EXPECT_EQ(streams_[0]->send(to_bytes("0123456789")).value(), 7U);
  EXPECT_EQ(accepted->send(to_bytes("0123456789")).value(), 7U);
}

TEST(MemoryNetworkOfTwoHosts, ConnectsFromItsOwnAddress) {
  TwoHosts hosts;
  const auto listener = listen(hosts.other, any_ipv4);
  const auto stream = hosts.one.open_stream();
  const Address server = hosts.other_address.with_port(80);
  ASSERT_EQ(hosts.one.connect(*stream, server), Outcome::established);
  EXPECT_EQ(stream->local(), hosts.one_address.with_port(32768));
  const auto accepted = listener->take();
  EXPECT_EQ(accepted->local(), server);
  EXPECT_EQ(accepted->peer_address(), stream->local());
  EXPECT_EQ(hosts.other.own_address(), hosts.other_address) << "without a port";
  MemoryStream unanswered(100);
  EXPECT_EQ(hosts.one.connect(unanswered, Address::ipv4({10, 0, 0, 3}, 80)), Outcome::no_reply);
  EXPECT_EQ(hosts.one.connect(unanswered, hosts.one_address.with_port(80)), Outcome::refused);
  EXPECT_EQ(hosts.one.connect(unanswered, loopback), Outcome::refused)
      << "loopback is this machine";
}

TEST(MemoryNetworkOfTwoHosts, ConnectsWithinAHost) {
  TwoHosts hosts;
  hosts.inside.usual_delay = 3ms;
  const auto listener = listen(hosts.one, any_ipv4);
  for (const Address& address : {loopback, hosts.one_address.with_port(80)}) {
    const auto stream = hosts.one.open_stream();
    ASSERT_EQ(hosts.one.connect(*stream, address), Outcome::established);
    EXPECT_EQ(stream->local().with_port(0), Address::loopback(0));
    const auto accepted = listener->take();
    ASSERT_TRUE(stream->send(to_bytes("x")));
    hosts.pass(3ms - 1ns);
    EXPECT_EQ(accepted->unread(), 0U);
    hosts.pass(1ns);
    EXPECT_EQ(accepted->unread(), 1U);
  }
  const Address path = Address::local("/run/a").value();
  const auto local = listen(hosts.one, path);
  const auto stream = hosts.one.open_stream();
  hosts.inside.is_open = false;
  ASSERT_EQ(hosts.one.connect(*stream, path), Outcome::established);
  ASSERT_TRUE(stream->send(to_bytes("x")));
  EXPECT_EQ(local->take()->unread(), 1U) << "a Unix socket has no link";
}

TEST(MemoryNetworkOfTwoHosts, AClosedLinkGivesNoReply) {
  TwoHosts hosts;
  const auto listener = listen(hosts.other, any_ipv4);
  MemoryStream stream(100);
  const Address server = hosts.other_address.with_port(80);
  hosts.there.is_open = false;
  EXPECT_EQ(hosts.one.connect(stream, server), Outcome::no_reply);
  hosts.there.is_open = true;
  hosts.back.is_open = false;
  EXPECT_EQ(hosts.one.connect(stream, server), Outcome::no_reply);
  hosts.back.is_open = true;
  EXPECT_EQ(hosts.one.connect(stream, server), Outcome::established);
}

}  // namespace
}  // namespace weir::memory_network_test
