// Contract of datagrams: each arrives whole, once, with its sender's address. Refusals on
// loopback are reported. The network, loopback included, may reorder datagrams.
#include <gtest/gtest.h>
#include <net/if.h>

#include <cerrno>
#include <map>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

using os::Address;

constexpr std::size_t datagram_bytes_max = 65'507;  // limit of IPv4

struct ReceivedDatagram {
  std::string text;
  Address peer;
  std::size_t truncated_bytes;
};

/// Returns the one datagram of a receive with one slot.
ReceivedDatagram received_by(ContractFixture& fixture, ReceiveDatagramsProbe& probe) {
  fixture.finish(probe);
  EXPECT_FALSE(probe.error()) << probe.error().message();
  EXPECT_EQ(probe.count, 1u);
  loop::Datagram& datagram = probe.target.front();
  ReceivedDatagram received{std::string(datagram.buffer.text()), datagram.peer,
                            datagram.truncated_bytes};
  datagram.buffer = {};
  return received;
}

ReceivedDatagram receive_one(ContractFixture& fixture, loop::Socket& socket,
                             std::uint32_t bytes_max = 65'535) {
  return received_by(fixture, fixture.receive_datagrams(socket, 1, bytes_max));
}

void send_one(ContractFixture& fixture, loop::Socket& socket, const std::string& text,
              const Address& peer = {}) {
  SendDatagramsProbe& sent = fixture.finish(fixture.send_datagrams(socket, {text}, peer));
  EXPECT_FALSE(sent.error()) << sent.error().message();
  EXPECT_EQ(sent.sent, 1u);
}

/// Returns the address of a socket that is connected to another peer, so datagrams to it are
/// refused.
Address refusing_address(ContractFixture& fixture) {
  return fixture.address_of(fixture.open_datagrams(
      {.local = Address::loopback(0), .peer = Address::ipv4({127, 0, 0, 2}, 9)}));
}

void exchange(ContractFixture& fixture, const Address& address) {
  loop::Socket& server = fixture.open_datagrams({.local = address});
  loop::Socket& client = fixture.open_datagrams({.local = address});
  ReceiveDatagramsProbe& waiting = fixture.receive_datagrams(server);
  EXPECT_FALSE(waiting.done());
  send_one(fixture, client, "question", fixture.address_of(server));
  const ReceivedDatagram question = received_by(fixture, waiting);
  EXPECT_EQ(question.text, "question");
  EXPECT_EQ(question.peer, fixture.address_of(client));
  EXPECT_EQ(question.truncated_bytes, 0u);
  send_one(fixture, server, "answer", question.peer);
  const ReceivedDatagram answer = receive_one(fixture, client);
  EXPECT_EQ(answer.text, "answer");
  EXPECT_EQ(answer.peer, fixture.address_of(server));
}

void datagrams_go_over_ipv4(ContractFixture& fixture) {
  exchange(fixture, Address::loopback(0));
}
void datagrams_go_over_ipv6(ContractFixture& fixture) {
  exchange(fixture, Address::parse("[::1]:0").value());
}

void a_connected_socket_exchanges_datagrams_with_its_peer_only(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams({.peer = fixture.address_of(server)});
  loop::Socket& stranger = fixture.open_datagrams();
  EXPECT_EQ(fixture.platform().peer_address(client.descriptor).value(), fixture.address_of(server));
  send_one(fixture, client, "question");
  EXPECT_EQ(receive_one(fixture, server).peer, fixture.address_of(client));
  send_one(fixture, stranger, "psst", fixture.address_of(client));
  send_one(fixture, server, "answer", fixture.address_of(client));
  EXPECT_EQ(receive_one(fixture, client).text, "answer");
  ReceiveDatagramsProbe& more = fixture.receive_datagrams(client);
  fixture.settle();
  EXPECT_FALSE(more.done());
  SendDatagramsProbe& nowhere = fixture.finish(fixture.send_datagrams(stranger, {"to whom?"}));
  EXPECT_EQ(nowhere.error(), system_error(EDESTADDRREQ));
  EXPECT_EQ(nowhere.sent, 0u);
}

/// Receives, with many slots each time, until all of `texts` have arrived. Any other datagram, or
/// a second copy, fails the test.
void expect_all(ContractFixture& fixture, loop::Socket& socket,
                const std::vector<std::string>& texts) {
  std::multiset<std::string> missing(texts.begin(), texts.end());
  while (!missing.empty()) {
    ReceiveDatagramsProbe& probe = fixture.finish(fixture.receive_datagrams(socket, 40, 2000));
    ASSERT_FALSE(probe.error()) << probe.error().message();
    ASSERT_GE(probe.count, 1u);
    for (const loop::Datagram& each : probe.target.first(probe.count)) {
      const auto found = missing.find(std::string(each.buffer.text()));
      ASSERT_NE(found, missing.end()) << each.buffer.size() << " bytes";
      missing.erase(found);
    }
    for (loop::Datagram& each : probe.target) each.buffer = {};
  }
}

// The sizes are equal, rising, falling and zero, because a backend may join neighbours of one
// size.
void datagrams_of_one_send_arrive_separately(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  const std::vector<std::size_t> sizes = {500, 500, 500, 100, 100, 0, 0, 1, 2, 3, 2, 1, 1, 1, 700};
  std::vector<std::string> texts;
  for (const std::size_t size : sizes) texts.push_back(pattern(size, texts.size()));
  for (int more = 0; more < 60; ++more) texts.push_back(pattern(200, texts.size()));
  SendDatagramsProbe& sent =
      fixture.finish(fixture.send_datagrams(client, texts, fixture.address_of(server)));
  EXPECT_TRUE(sent.succeeded()) << sent.error().message();
  EXPECT_EQ(sent.sent, texts.size());
  expect_all(fixture, server, texts);
}

// Neighbours have one size, but different peers.
void each_datagram_goes_to_its_own_peer(ContractFixture& fixture) {
  loop::Socket& client = fixture.open_datagrams();
  std::vector<loop::Socket*> servers;
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i) {
    servers.push_back(&fixture.open_datagrams());
    texts.push_back("to " + std::to_string(i));
  }
  std::vector<loop::OutgoingDatagram> datagrams;
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t to = i / 2;
    datagrams.push_back({to_bytes(texts[to]), fixture.address_of(*servers[to])});
  }
  SendDatagramsProbe sending;
  sending.datagrams = datagrams;
  start(fixture.backend(), client, sending);
  fixture.finish(sending);
  EXPECT_TRUE(sending.succeeded());
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(receive_one(fixture, *servers[i]).text, texts[i]);
    EXPECT_EQ(receive_one(fixture, *servers[i]).text, texts[i]);
  }
}

void truncation_is_reported(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  send_one(fixture, client, "0123456789abcde", fixture.address_of(server));
  const ReceivedDatagram cut = receive_one(fixture, server, 10);
  EXPECT_EQ(cut.text, "0123456789");
  EXPECT_EQ(cut.truncated_bytes, 5u);
  send_one(fixture, client, "0123456789", fixture.address_of(server));
  const ReceivedDatagram whole = receive_one(fixture, server, 10);
  EXPECT_EQ(whole.text, "0123456789");
  EXPECT_EQ(whole.truncated_bytes, 0u);
}

void an_empty_datagram_is_delivered(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  send_one(fixture, client, "", fixture.address_of(server));
  const ReceivedDatagram nothing = receive_one(fixture, server);
  EXPECT_EQ(nothing.text, "");
  EXPECT_EQ(nothing.peer, fixture.address_of(client));
  EXPECT_TRUE(fixture.finish(fixture.send_datagrams(client, {})).succeeded()) << "no datagram";
}

void the_longest_datagram_is_delivered_and_a_longer_one_is_refused(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  const Address address = fixture.address_of(server);
  const std::string longest = pattern(datagram_bytes_max, 1);
  SendDatagramsProbe& sent =
      fixture.finish(fixture.send_datagrams(client, {"before", longest + "!", "after"}, address));
  EXPECT_EQ(sent.error(), system_error(EMSGSIZE));
  EXPECT_EQ(sent.sent, 1u) << "datagrams are sent in order, each whole or not at all";
  EXPECT_EQ(receive_one(fixture, server).text, "before");
  send_one(fixture, client, longest, address);
  EXPECT_TRUE(receive_one(fixture, server).text == longest);
}

void a_refusal_is_reported_to_a_receive(ContractFixture& fixture) {
  loop::Socket& client = fixture.open_datagrams({.peer = refusing_address(fixture)});
  for (int round = 0; round < 3; ++round) {
    ReceiveDatagramsProbe& waiting = fixture.receive_datagrams(client);
    send_one(fixture, client, "anybody?");
    fixture.finish(waiting);
    EXPECT_EQ(waiting.error(), system_error(ECONNREFUSED));
    EXPECT_EQ(waiting.count, 0u);
  }
  ReceiveDatagramsProbe& once = fixture.receive_datagrams(client);
  fixture.settle();
  EXPECT_FALSE(once.done()) << "the refusal is reported once";
}

void a_refusal_is_reported_to_a_send(ContractFixture& fixture) {
  loop::Socket& client = fixture.open_datagrams({.peer = refusing_address(fixture)});
  int refused = 0;
  int sent = 0;
  EXPECT_TRUE(fixture.until([&] {
    SendDatagramsProbe& sending = fixture.finish(fixture.send_datagrams(client, {"anybody?"}));
    if (!sending.error()) {
      ++sent;
    } else {
      EXPECT_EQ(sending.error(), system_error(ECONNREFUSED));
      EXPECT_EQ(sending.sent, 0u);
      ++refused;
    }
    return refused == 3;
  }));
  EXPECT_GE(sent, 3) << "sending continues after a refusal";
}

void an_unconnected_socket_gets_no_refusal(ContractFixture& fixture) {
  loop::Socket& client = fixture.open_datagrams();
  const Address refusing = refusing_address(fixture);
  for (int i = 0; i < 5; ++i) send_one(fixture, client, "anybody?", refusing);
  ReceiveDatagramsProbe& waiting = fixture.receive_datagrams(client);
  fixture.settle();
  EXPECT_FALSE(waiting.done());
}

void a_cancelled_receive_loses_no_datagram(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  ReceiveDatagramsProbe& cancelled = fixture.receive_datagrams(server);
  fixture.turn();
  fixture.cancel(cancelled);
  fixture.cancel(cancelled);
  EXPECT_EQ(fixture.finish(cancelled).error(), Errc::cancelled);
  EXPECT_EQ(cancelled.count, 0u);
  EXPECT_FALSE(cancelled.target.front().buffer.owns_memory());
  send_one(fixture, client, "late", fixture.address_of(server));
  EXPECT_EQ(receive_one(fixture, server).text, "late");
}

// All datagrams arrive once, whatever each receive returns.
void cancelling_races_with_datagrams(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  std::multiset<std::string> missing;
  const auto take = [&](ReceiveDatagramsProbe& probe) {
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      return;
    }
    for (loop::Datagram& each : probe.target.first(probe.count)) {
      const auto found = missing.find(std::string(each.buffer.text()));
      ASSERT_NE(found, missing.end()) << each.buffer.text();
      missing.erase(found);
      each.buffer = {};
    }
  };
  for (int round = 0; round < 300; ++round) {
    ReceiveDatagramsProbe& probe = fixture.receive_datagrams(server, round % 3 == 0 ? 4 : 1);
    if (round % 8 < 4) fixture.cancel(probe);
    const std::string text = std::to_string(round);
    missing.insert(text);
    send_one(fixture, client, text, fixture.address_of(server));
    if (round % 4 >= 2) fixture.turn();
    fixture.cancel(probe);
    take(fixture.finish(probe));
    if (missing.size() < 20) continue;
    take(fixture.finish(fixture.receive_datagrams(server, 4)));
  }
  while (!missing.empty()) take(fixture.finish(fixture.receive_datagrams(server, 4)));
}

void a_pending_datagram_receive_holds_no_buffer(ContractFixture& fixture) {
  loop::Socket& server = fixture.open_datagrams();
  loop::Socket& client = fixture.open_datagrams();
  const std::size_t before = fixture.loop().blocks().blocks_in_use();
  ReceiveDatagramsProbe& waiting = fixture.receive_datagrams(server, 32);
  for (int i = 0; i < 3; ++i) fixture.turn();
  EXPECT_EQ(fixture.loop().blocks().blocks_in_use(), before);
  send_one(fixture, client, "here", fixture.address_of(server));
  fixture.finish(waiting);
  EXPECT_EQ(waiting.count, 1u);
}

// All datagrams of one peer go to one of the sockets.
void datagram_sockets_share_a_port(ContractFixture& fixture) {
  constexpr int peers = 30;
  loop::Socket& first = fixture.open_datagrams(
      {.local = Address::loopback(0), .reuse_port = true, .require_unused = true});
  const Address address = fixture.address_of(first);
  loop::Socket& second = fixture.open_datagrams({.local = address, .reuse_port = true});
  EXPECT_EQ(fixture.platform().open_datagrams({.local = address}).error(),
            system_error(EADDRINUSE));
  for (int i = 0; i < peers; ++i) {
    loop::Socket& client = fixture.open_datagrams();
    send_one(fixture, client, "one", address);
    send_one(fixture, client, "two", address);
  }
  std::map<std::string, std::set<const loop::Socket*>> received_at;  // sockets by peer
  int received = 0;
  std::vector<ReceiveDatagramsProbe*> receives = {&fixture.receive_datagrams(first),
                                                  &fixture.receive_datagrams(second)};
  EXPECT_TRUE(fixture.until([&] {
    for (std::size_t i = 0; i < 2; ++i) {
      loop::Socket& socket = i == 0 ? first : second;
      while (receives[i]->done()) {
        received_at[received_by(fixture, *receives[i]).peer.to_string()].insert(&socket);
        ++received;
        receives[i] = &fixture.receive_datagrams(socket);
      }
    }
    return received == 2 * peers;
  }));
  EXPECT_EQ(received_at.size(), std::size_t{peers});
  for (const auto& [peer, sockets] : received_at) EXPECT_EQ(sockets.size(), 1u) << peer;
}

void a_group_reaches_a_socket_while_it_is_a_member(ContractFixture& fixture) {
  const os::MulticastGroup group{Address::ipv4({239, 255, 77, 2}, 0), ::if_nametoindex("lo")};
  if (group.interface == 0) GTEST_SKIP() << "no interface called lo";
  loop::Socket& member = fixture.open_datagrams({.local = Address::ipv4({}, 0)});
  loop::Socket& sender = fixture.open_datagrams(
      {.local = Address::ipv4({}, 0), .multicast_interface = group.interface});
  const std::uint16_t port = fixture.address_of(member).port();
  const Address to_group = group.address.with_port(port);
  ASSERT_TRUE(fixture.platform().join_group(member.descriptor, group));
  EXPECT_EQ(fixture.platform().join_group(member.descriptor, group).error(),
            system_error(EADDRINUSE));
  send_one(fixture, sender, "to all", to_group);
  EXPECT_EQ(receive_one(fixture, member).text, "to all");
  ASSERT_TRUE(fixture.platform().leave_group(member.descriptor, group));
  EXPECT_EQ(fixture.platform().leave_group(member.descriptor, group).error(),
            system_error(EADDRNOTAVAIL));
  EXPECT_EQ(fixture.platform().join_group(member.descriptor, {Address::loopback(0), 0}).error(),
            system_error(EINVAL));
  send_one(fixture, sender, "to others", to_group);
  send_one(fixture, sender, "to you", Address::loopback(port));
  EXPECT_EQ(receive_one(fixture, member).text, "to you");
}

// The number of a closed descriptor is reused immediately. Operations of the old socket must not
// affect the new one.
void a_datagram_socket_can_be_closed_immediately(ContractFixture& fixture) {
  loop::Socket& client = fixture.open_datagrams();
  for (int round = 0; round < 100; ++round) {
    loop::Socket& server = fixture.open_datagrams();
    ReceiveDatagramsProbe& waiting = fixture.receive_datagrams(server);
    if (round % 2 == 0) fixture.turn();
    if (round % 3 == 0) send_one(fixture, client, "old", fixture.address_of(server));
    fixture.cancel(waiting);
    fixture.finish(waiting);
    fixture.close(server);
    loop::Socket& fresh = fixture.open_datagrams();
    ReceiveDatagramsProbe& receiving = fixture.receive_datagrams(fresh);
    send_one(fixture, client, "new", fixture.address_of(fresh));
    EXPECT_EQ(received_by(fixture, receiving).text, "new");
    fixture.close(fresh);
  }
}

void opening_a_datagram_socket_fails_without_descriptors(ContractFixture& fixture) {
  fixture.environment().forbid_descriptors();
  EXPECT_EQ(fixture.platform().open_datagrams({.local = Address::loopback(0)}).error(),
            system_error(EMFILE));
  fixture.environment().allow_descriptors();
  EXPECT_EQ(fixture.platform().open_datagrams({}).error(), system_error(EAFNOSUPPORT));
}

}  // namespace

std::vector<ContractClause> contract_of_datagrams() {
  return {
      {"datagrams_go_over_ipv4", datagrams_go_over_ipv4},
      {"datagrams_go_over_ipv6", datagrams_go_over_ipv6, ContractRequirement::ipv6},
      {"a_connected_socket_exchanges_datagrams_with_its_peer_only",
       a_connected_socket_exchanges_datagrams_with_its_peer_only},
      {"datagrams_of_one_send_arrive_separately", datagrams_of_one_send_arrive_separately},
      {"each_datagram_goes_to_its_own_peer", each_datagram_goes_to_its_own_peer},
      {"truncation_is_reported", truncation_is_reported},
      {"an_empty_datagram_is_delivered", an_empty_datagram_is_delivered},
      {"the_longest_datagram_is_delivered_and_a_longer_one_is_refused",
       the_longest_datagram_is_delivered_and_a_longer_one_is_refused},
      {"a_refusal_is_reported_to_a_receive", a_refusal_is_reported_to_a_receive},
      {"a_refusal_is_reported_to_a_send", a_refusal_is_reported_to_a_send},
      {"an_unconnected_socket_gets_no_refusal", an_unconnected_socket_gets_no_refusal},
      {"a_cancelled_receive_loses_no_datagram", a_cancelled_receive_loses_no_datagram},
      {"cancelling_races_with_datagrams", cancelling_races_with_datagrams},
      {"a_pending_datagram_receive_holds_no_buffer", a_pending_datagram_receive_holds_no_buffer},
      {"datagram_sockets_share_a_port", datagram_sockets_share_a_port},
      {"a_group_reaches_a_socket_while_it_is_a_member",
       a_group_reaches_a_socket_while_it_is_a_member},
      {"a_datagram_socket_can_be_closed_immediately", a_datagram_socket_can_be_closed_immediately},
      {"opening_a_datagram_socket_fails_without_descriptors",
       opening_a_datagram_socket_fails_without_descriptors},
  };
}

}  // namespace weir
