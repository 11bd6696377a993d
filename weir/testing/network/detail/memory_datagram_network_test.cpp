// Tests of simulated datagram sockets: addresses, groups, limits and refusals, alone and among
// several hosts.
#include "weir/testing/network/detail/memory_datagram_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "weir/testing/test/two_hosts.hpp"

namespace weir::memory_datagram_network_test {
namespace {

using os::Address;

using OwnedSocket = std::unique_ptr<MemoryDatagramSocket>;

constexpr std::size_t overhead = 768;
constexpr std::size_t buffer = 212'992;

const std::error_code again = system_error(EAGAIN);
const std::error_code refused = system_error(ECONNREFUSED);
const Address any_ipv4 = Address::ipv4({0, 0, 0, 0}, 53);
const Address any_ipv6 = Address::any(53);
const Address loopback = Address::loopback(53);
const Address loopback_ipv6 = loopback_of(os::AddressFamily::ipv6, 53);
const Address group = Address::ipv4({239, 1, 2, 3}, 53);

/// Returns the datagrams that wait, each followed by a space.
std::string take(MemoryDatagramSocket& socket) {
  std::string text;
  while (!socket.receivable()) text += std::string(to_text(socket.receive()->bytes)) + " ";
  return text;
}
std::error_code send(MemoryDatagramSocket& socket, std::string_view text, const Address& to = {}) {
  const auto sent = socket.send(to_bytes(text), to);
  return sent ? std::error_code() : sent.error();
}

class MemoryDatagramsOfOneHost : public testing::Test {
 protected:
  OwnedSocket open(const loop::DatagramOptions& options) {
    return network_.open(options, script_).value();
  }
  OwnedSocket bind(const Address& local) { return open({.local = local}); }
  std::error_code error_of(const loop::DatagramOptions& options) {
    const auto made = network_.open(options, script_);
    return made ? std::error_code() : made.error();
  }

  ScriptedNondeterminism script_;
  MemoryDatagramNetwork network_;
};

TEST_F(MemoryDatagramsOfOneHost, AnAddressIsSharedOnlyIfEverySocketAllowsIt) {
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
      {loopback, false, Address::loopback(54), false, true, {}},
      {any_ipv4, false, loopback, false, false, in_use},
      {loopback, false, any_ipv4, false, false, in_use},
      {any_ipv6, false, loopback, false, false, in_use},
      {any_ipv4, false, loopback_ipv6, false, false, {}},
  };
  for (const auto& each : cases) {
    const OwnedSocket first = open({.local = each.first, .reuse_port = each.first_shares});
    EXPECT_EQ(error_of({.local = each.second,
                        .reuse_port = each.second_shares,
                        .require_unused = each.require_unused}),
              each.expected)
        << each.first.to_string() << " and " << each.second.to_string();
  }
  EXPECT_EQ(error_of({.local = loopback, .require_unused = true}), std::error_code());
  EXPECT_EQ(error_of({}), system_error(EAFNOSUPPORT));
  EXPECT_EQ(error_of({.local = Address::local("/run/a").value()}), system_error(EAFNOSUPPORT));
}

TEST_F(MemoryDatagramsOfOneHost, ThePlatformChoosesAPort) {
  const OwnedSocket taken = bind(Address::loopback(32769));
  const OwnedSocket first = bind(Address::loopback(0));
  const OwnedSocket second = bind(Address::loopback(0));
  EXPECT_EQ(first->local(), Address::loopback(32768));
  EXPECT_EQ(second->local(), Address::loopback(32770));
  const OwnedSocket connected = open({.peer = loopback_ipv6});
  EXPECT_EQ(connected->local(), loopback_of(os::AddressFamily::ipv6, 32771));
  EXPECT_EQ(connected->peer(), loopback_ipv6);
  EXPECT_EQ(connected->kind(), MemoryEndpoint::Kind::datagrams);
  EXPECT_EQ(first->peer(), Address());
}

TEST_F(MemoryDatagramsOfOneHost, DatagramsArriveWithTheirSender) {
  const OwnedSocket receiver = bind(loopback);
  const OwnedSocket sender = bind(any_ipv4.with_port(60));
  ChangeProbe changes;
  receiver->observe(changes);
  EXPECT_EQ(receiver->receivable(), again);
  EXPECT_EQ(receiver->receive().error(), again);
  EXPECT_EQ(send(*sender, "one", loopback), std::error_code());
  EXPECT_EQ(changes.changes, 1);
  EXPECT_EQ(send(*sender, "", any_ipv4), std::error_code());
  const auto first = receiver->receive();
  EXPECT_EQ(to_text(first->bytes), "one");
  EXPECT_EQ(first->peer, Address::loopback(60));
  EXPECT_EQ(receiver->receivable(), std::error_code());
  EXPECT_TRUE(receiver->receive()->bytes.empty()) << "an empty datagram to this machine";
  EXPECT_EQ(receiver->receivable(), again);
  receiver->unobserve(changes);
}

TEST_F(MemoryDatagramsOfOneHost, ASendChecksItsTarget) {
  const OwnedSocket ipv4 = bind(Address::loopback(60));
  const OwnedSocket ipv6 = bind(loopback_ipv6.with_port(60));
  const OwnedSocket receiver = bind(any_ipv6);
  EXPECT_EQ(send(*ipv4, "x"), system_error(EDESTADDRREQ));
  EXPECT_EQ(send(*ipv4, "x", loopback_ipv6), system_error(EAFNOSUPPORT));
  EXPECT_EQ(send(*ipv4, "x", Address::local("/run/a").value()), system_error(EAFNOSUPPORT));
  EXPECT_EQ(send(*ipv6, "6", loopback_ipv6), std::error_code());
  EXPECT_EQ(send(*ipv6, "4", loopback), std::error_code()) << "IPv6 sockets reach IPv4";
  EXPECT_EQ(take(*receiver), "6 4 ");
  EXPECT_EQ(send(*ipv4, std::string(65'507, 'x'), loopback), std::error_code());
  EXPECT_EQ(send(*ipv4, std::string(65'508, 'x'), loopback), system_error(EMSGSIZE));
  EXPECT_EQ(take(*receiver).size(), 65'508U);
}

TEST_F(MemoryDatagramsOfOneHost, AFullBufferDropsDatagrams) {
  const OwnedSocket receiver = bind(loopback);
  const OwnedSocket sender = bind(Address::loopback(60));
  const std::string large(60'000, 'x');
  for (int sent = 0; sent < 3; ++sent) send(*sender, large, loopback);
  const std::size_t left = buffer - 3 * (large.size() + overhead);
  send(*sender, std::string(left - overhead + 1, 'y'), loopback);
  send(*sender, std::string(left - overhead, 'z'), loopback);
  send(*sender, "", loopback);
  for (int received = 0; received < 3; ++received) {
    EXPECT_EQ(receiver->receive()->bytes.size(), large.size());
  }
  EXPECT_EQ(receiver->receive()->bytes.size(), left - overhead) << "the buffer was just full";
  EXPECT_EQ(receiver->receivable(), again) << "the others were dropped";
  // The room of received datagrams is free again.
  for (int round = 0; round < 10; ++round) {
    send(*sender, large, loopback);
    EXPECT_EQ(receiver->receive()->bytes.size(), large.size());
  }
}

TEST_F(MemoryDatagramsOfOneHost, TheMostSpecificSocketGetsTheDatagram) {
  const OwnedSocket sender = bind(Address::loopback(60));
  const OwnedSocket stranger = bind(Address::loopback(61));
  const OwnedSocket around = open({.local = any_ipv4, .reuse_port = true});
  const OwnedSocket around_connected =
      open({.local = any_ipv4, .peer = sender->local(), .reuse_port = true});
  const auto send_both = [&] {
    send(*sender, "s", loopback);
    send(*stranger, "t", loopback);
  };
  send_both();
  EXPECT_EQ(take(*around_connected) + "|" + take(*around), "s |t ");
  const OwnedSocket at = open({.local = loopback, .reuse_port = true});
  send_both();
  EXPECT_EQ(take(*at), "s t ");
  const OwnedSocket at_connected =
      open({.local = loopback, .peer = sender->local(), .reuse_port = true});
  send_both();
  EXPECT_EQ(take(*at_connected) + "|" + take(*at), "s |t ");
  EXPECT_EQ(take(*around) + take(*around_connected), "");
}

TEST_F(MemoryDatagramsOfOneHost, ARefusalIsReportedOnceToAConnectedSocket) {
  const OwnedSocket connected = open({.peer = loopback});
  const OwnedSocket unconnected = bind(Address::loopback(60));
  ChangeProbe changes;
  connected->observe(changes);
  EXPECT_EQ(send(*unconnected, "x", loopback), std::error_code());
  EXPECT_EQ(unconnected->receivable(), again);
  EXPECT_EQ(send(*connected, "x"), std::error_code());
  EXPECT_EQ(changes.changes, 1);
  EXPECT_EQ(connected->receivable(), refused);
  EXPECT_EQ(connected->receive().error(), refused);
  EXPECT_EQ(connected->receivable(), again);
  EXPECT_EQ(send(*connected, "x"), std::error_code());
  EXPECT_EQ(send(*connected, "y"), refused) << "nothing is sent by this call";
  const OwnedSocket receiver = bind(loopback);
  EXPECT_EQ(send(*connected, "z"), std::error_code());
  EXPECT_EQ(connected->receivable(), again);
  EXPECT_EQ(take(*receiver), "z ");
  connected->unobserve(changes);
}

TEST_F(MemoryDatagramsOfOneHost, ARefusalComesBeforeTheDatagramsThatWait) {
  const OwnedSocket connected = open({.local = Address::loopback(60), .peer = loopback});
  {
    const OwnedSocket peer = bind(loopback);
    send(*peer, "waits", connected->local());
  }
  EXPECT_EQ(send(*connected, "x"), std::error_code());
  EXPECT_EQ(connected->receivable(), refused);
  EXPECT_EQ(connected->receive().error(), refused);
  EXPECT_EQ(take(*connected), "waits ");
}

TEST_F(MemoryDatagramsOfOneHost, EachCopyArrives) {
  const OwnedSocket receiver = bind(loopback);
  const OwnedSocket sender = open({.peer = loopback});
  for (const std::size_t copies : {0U, 1U, 2U, 3U}) {
    script_.copies = copies;
    send(*sender, "x");
    EXPECT_EQ(take(*receiver).size(), 2 * copies);
    EXPECT_EQ(sender->receivable(), again) << "a lost datagram is not refused";
  }
}

TEST_F(MemoryDatagramsOfOneHost, AGroupReachesItsMembersOnThePort) {
  const OwnedSocket sender = bind(any_ipv4.with_port(60));
  const OwnedSocket member = open({.local = any_ipv4, .reuse_port = true});
  const OwnedSocket exact = open({.local = group, .reuse_port = true});
  const OwnedSocket none = open({.local = any_ipv6, .reuse_port = true});
  const OwnedSocket elsewhere = bind(any_ipv4.with_port(54));
  const OwnedSocket local_only = open({.local = loopback, .reuse_port = true});
  const OwnedSocket connected =
      open({.local = any_ipv4, .peer = Address::loopback(60), .reuse_port = true});
  const OwnedSocket stranger =
      open({.local = any_ipv4, .peer = Address::loopback(61), .reuse_port = true});
  for (MemoryDatagramSocket* const each : {member.get(), exact.get(), elsewhere.get(),
                                           local_only.get(), connected.get(), stranger.get()}) {
    ASSERT_TRUE(each->join(group.with_port(7))) << "the port has no meaning";
  }
  EXPECT_EQ(send(*sender, "all", group), std::error_code());
  EXPECT_EQ(take(*member) + take(*exact) + take(*connected), "all all all ");
  EXPECT_EQ(take(*none) + take(*elsewhere) + take(*local_only) + take(*stranger), "");
  EXPECT_EQ(member->join(group).error(), system_error(EADDRINUSE));
  ASSERT_TRUE(member->leave(group));
  EXPECT_EQ(member->leave(group).error(), system_error(EADDRNOTAVAIL));
  send(*sender, "others", group);
  EXPECT_EQ(take(*member), "");
  const OwnedSocket to_group = open({.peer = group.with_port(99)});
  send(*to_group, "none");
  EXPECT_EQ(to_group->receivable(), again) << "a group never refuses";
}

TEST_F(MemoryDatagramsOfOneHost, AGroupOfIpv6ReachesItsMembers) {
  const std::array<std::uint8_t, 16> bytes{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  const Address group_ipv6 = Address::ipv6(bytes, 53);
  const OwnedSocket member = open({.local = any_ipv6, .reuse_port = true});
  const OwnedSocket none = open({.local = any_ipv6, .reuse_port = true});
  const OwnedSocket sender = bind(loopback_ipv6.with_port(60));
  ASSERT_TRUE(member->join(group_ipv6));
  EXPECT_EQ(send(*sender, "all", group_ipv6), std::error_code());
  EXPECT_EQ(take(*member), "all ");
  EXPECT_EQ(take(*none), "");
}

TEST_F(MemoryDatagramsOfOneHost, OnlyMulticastAddressesAreGroups) {
  const OwnedSocket socket = bind(any_ipv6);
  std::array<std::uint8_t, 16> ipv6{0xff, 2};
  EXPECT_TRUE(socket->join(Address::ipv6(ipv6, 0)));
  ipv6[0] = 0xfe;
  EXPECT_EQ(socket->join(Address::ipv6(ipv6, 0)).error(), system_error(EINVAL));
  for (const int first : {224, 239}) {
    EXPECT_TRUE(socket->join(Address::ipv4({static_cast<std::uint8_t>(first), 1, 2, 3}, 0)));
  }
  for (const int first : {223, 240, 127}) {
    EXPECT_EQ(socket->join(Address::ipv4({static_cast<std::uint8_t>(first), 1, 2, 3}, 0)).error(),
              system_error(EINVAL));
  }
}

TEST_F(MemoryDatagramsOfOneHost, AKilledProcessReceivesNothing) {
  const OwnedSocket killed = bind(loopback);
  killed->close_on_kill();
  const OwnedSocket next = bind(loopback);
  const OwnedSocket sender = bind(Address::loopback(60));
  send(*sender, "x", loopback);
  EXPECT_EQ(take(*next), "x ");
  EXPECT_EQ(take(*killed), "");
}

class MemoryDatagramsOfTwoHosts : public testing::Test {
 protected:
  OwnedSocket open(const loop::DatagramOptions& options) {
    return hosts_.one_datagrams.open(options, hosts_.one_script).value();
  }

  TwoHosts hosts_;
  Address there_ = hosts_.other_address.with_port(53);
  OwnedSocket receiver_ =
      hosts_.other_datagrams.open({.local = Address::any(53)}, hosts_.other_script).value();
};

TEST_F(MemoryDatagramsOfTwoHosts, TakeTheLinkFromTheirHost) {
  const OwnedSocket sender = open({.local = Address::any(60)});
  hosts_.there.delays = {30ms, 20ms};
  send(*sender, "slow", there_);
  send(*sender, "fast", there_);
  hosts_.pass(20ms - 1ns);
  EXPECT_EQ(receiver_->receivable(), again);
  hosts_.pass(1ns);
  const auto first = receiver_->receive();
  EXPECT_EQ(to_text(first->bytes), "fast") << "it has overtaken the other one";
  EXPECT_EQ(first->peer, hosts_.one_address.with_port(60));
  hosts_.pass(10ms);
  EXPECT_EQ(take(*receiver_), "slow ");
  hosts_.back.usual_delay = 5ms;
  EXPECT_EQ(send(*receiver_, "answer", first->peer), std::error_code());
  hosts_.pass(5ms);
  EXPECT_EQ(sender->receive()->peer, there_);
}

TEST_F(MemoryDatagramsOfTwoHosts, EachCopyHasItsOwnDelay) {
  const OwnedSocket sender = open({.peer = there_});
  EXPECT_EQ(sender->local(), hosts_.one_address.with_port(32768));
  hosts_.there.delays = {1ms, 2ms};
  hosts_.one_script.copies = 2;
  send(*sender, "x");
  hosts_.pass(1ms);
  EXPECT_EQ(take(*receiver_), "x ");
  hosts_.pass(1ms);
  EXPECT_EQ(take(*receiver_), "x ");
  hosts_.one_script.copies = 0;
  send(*sender, "x");
  EXPECT_EQ(hosts_.clock.next(), never);
}

TEST_F(MemoryDatagramsOfTwoHosts, AreLostOnAClosedLink) {
  const OwnedSocket sender = open({.peer = there_});
  hosts_.there.is_open = false;
  EXPECT_EQ(send(*sender, "x"), std::error_code());
  EXPECT_EQ(hosts_.clock.next(), never);
  hosts_.there.is_open = true;
  send(*sender, "y");
  hosts_.there.is_open = false;
  hosts_.pass(1s);
  hosts_.there.is_open = true;
  hosts_.pass(1s);
  EXPECT_EQ(take(*receiver_), "") << "it was closed when the datagram arrived";
  EXPECT_EQ(sender->receivable(), again);
}

TEST_F(MemoryDatagramsOfTwoHosts, ARefusalComesBackOverTheLink) {
  receiver_.reset();
  const OwnedSocket sender = open({.peer = there_});
  const OwnedSocket from_any = open({.local = Address::any(61), .peer = there_});
  const OwnedSocket unconnected = open({.local = Address::any(62)});
  const OwnedSocket same_port = open({.local = Address::loopback(63), .peer = there_});
  hosts_.there.usual_delay = 3ms;
  hosts_.back.usual_delay = 4ms;
  for (MemoryDatagramSocket* const each : {sender.get(), from_any.get()}) {
    EXPECT_EQ(send(*each, "x"), std::error_code());
    hosts_.pass(7ms - 1ns);
    EXPECT_EQ(each->receivable(), again);
    hosts_.pass(1ns);
    EXPECT_EQ(each->receive().error(), refused);
  }
  send(*unconnected, "x", there_);
  hosts_.pass(1s);
  for (MemoryDatagramSocket* const each :
       {sender.get(), from_any.get(), unconnected.get(), same_port.get()}) {
    EXPECT_EQ(each->receivable(), again) << "the refusal is that of another sender";
  }
  send(*sender, "x");
  hosts_.pass(3ms);
  hosts_.back.is_open = false;
  hosts_.pass(1s);
  EXPECT_EQ(sender->receivable(), again) << "the refusal was lost";
}

TEST_F(MemoryDatagramsOfTwoHosts, WithinAHostUseItsOwnLink) {
  const OwnedSocket local = open({.local = any_ipv4});
  hosts_.inside.usual_delay = 2ms;
  for (const Address& to : {loopback, hosts_.one_address.with_port(53)}) {
    const OwnedSocket sender = open({.peer = to});
    EXPECT_EQ(sender->local().with_port(0),
              to == loopback ? Address::loopback(0) : hosts_.one_address);
    send(*sender, "x");
    hosts_.pass(2ms - 1ns);
    EXPECT_EQ(take(*local), "");
    hosts_.pass(1ns);
    EXPECT_EQ(take(*local), "x ");
  }
  EXPECT_EQ(take(*receiver_), "");
  const OwnedSocket ipv6 = open({.peer = loopback_ipv6});
  EXPECT_EQ(ipv6->local().with_port(53), loopback_ipv6);
  const OwnedSocket to_nowhere = open({.peer = Address::ipv4({10, 0, 0, 9}, 53)});
  EXPECT_EQ(send(*to_nowhere, "x"), std::error_code());
  hosts_.pass(1s);
  EXPECT_EQ(to_nowhere->receivable(), again) << "no host answers";
}

TEST_F(MemoryDatagramsOfTwoHosts, AGroupReachesItsOwnHostOnly) {
  const OwnedSocket member = open({.local = any_ipv4});
  ASSERT_TRUE(member->join(group));
  ASSERT_TRUE(receiver_->join(group));
  const OwnedSocket sender = open({.local = Address::any(60)});
  send(*sender, "x", group);
  EXPECT_EQ(take(*member), "x ");
  hosts_.pass(1s);
  EXPECT_EQ(take(*receiver_), "");
}

}  // namespace
}  // namespace weir::memory_datagram_network_test
