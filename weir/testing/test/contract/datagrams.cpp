// Contract: datagrams come whole, with their sender, once; what happens to them on loopback is
// told. In which order they come is up to the network, loopback included.
#include <gtest/gtest.h>
#include <net/if.h>

#include <cerrno>
#include <map>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

using os::Address;

constexpr std::size_t datagram_bytes_max = 65'507;  // of IPv4

struct Heard {
  std::string text;
  Address peer;
  std::size_t cut_off;
};

/// The one datagram of a receive with one slot.
Heard heard_by(ContractBench& bench, ReceiveDatagramsProbe& probe) {
  bench.finish(probe);
  EXPECT_FALSE(probe.error()) << probe.error().message();
  EXPECT_EQ(probe.count, 1u);
  Datagram& datagram = probe.target.front();
  Heard heard{std::string(datagram.buffer.text()), datagram.peer, datagram.cut_off};
  datagram.buffer = {};
  return heard;
}

Heard hear(ContractBench& bench, Socket& socket, std::uint32_t bytes_max = 65'535) {
  return heard_by(bench, bench.receive_datagrams(socket, 1, bytes_max));
}

void say(ContractBench& bench, Socket& socket, const std::string& text, const Address& peer = {}) {
  SendDatagramsProbe& sent = bench.finish(bench.send_datagrams(socket, {text}, peer));
  EXPECT_FALSE(sent.error()) << sent.error().message();
  EXPECT_EQ(sent.sent, 1u);
}

/// A socket that has a port, but hears nobody here: what is sent to it is refused.
Address address_of_nobody(ContractBench& bench) {
  return bench.address_of(bench.open_datagrams(
      {.local = Address::loopback(0), .peer = Address::ipv4({127, 0, 0, 2}, 9)}));
}

void talk(ContractBench& bench, const Address& address) {
  Socket& server = bench.open_datagrams({.local = address});
  Socket& client = bench.open_datagrams({.local = address});
  ReceiveDatagramsProbe& waiting = bench.receive_datagrams(server);
  EXPECT_FALSE(waiting.done());
  say(bench, client, "question", bench.address_of(server));
  const Heard question = heard_by(bench, waiting);
  EXPECT_EQ(question.text, "question");
  EXPECT_EQ(question.peer, bench.address_of(client));
  EXPECT_EQ(question.cut_off, 0u);
  say(bench, server, "answer", question.peer);
  const Heard answer = hear(bench, client);
  EXPECT_EQ(answer.text, "answer");
  EXPECT_EQ(answer.peer, bench.address_of(server));
}

void datagrams_go_over_ipv4(ContractBench& bench) {
  talk(bench, Address::loopback(0));
}
void datagrams_go_over_ipv6(ContractBench& bench) {
  talk(bench, Address::parse("[::1]:0").value());
}

void a_connected_socket_talks_with_its_peer_alone(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams({.peer = bench.address_of(server)});
  Socket& stranger = bench.open_datagrams();
  EXPECT_EQ(bench.host().peer_address(client.descriptor).value(), bench.address_of(server));
  say(bench, client, "question");
  EXPECT_EQ(hear(bench, server).peer, bench.address_of(client));
  say(bench, stranger, "psst", bench.address_of(client));
  say(bench, server, "answer", bench.address_of(client));
  EXPECT_EQ(hear(bench, client).text, "answer");
  ReceiveDatagramsProbe& more = bench.receive_datagrams(client);
  bench.settle();
  EXPECT_FALSE(more.done());
  SendDatagramsProbe& nowhere = bench.finish(bench.send_datagrams(stranger, {"to whom?"}));
  EXPECT_EQ(nowhere.error(), system_error(EDESTADDRREQ));
  EXPECT_EQ(nowhere.sent, 0u);
}

/// Receives, with many slots each time, until all of `texts` have come; whatever else comes, or
/// comes twice, is a failure.
void expect_all(ContractBench& bench, Socket& socket, const std::vector<std::string>& texts) {
  std::multiset<std::string> missing(texts.begin(), texts.end());
  while (!missing.empty()) {
    ReceiveDatagramsProbe& probe = bench.finish(bench.receive_datagrams(socket, 40, 2000));
    ASSERT_FALSE(probe.error()) << probe.error().message();
    ASSERT_GE(probe.count, 1u);
    for (const Datagram& each : probe.target.first(probe.count)) {
      const auto found = missing.find(std::string(each.buffer.text()));
      ASSERT_NE(found, missing.end()) << each.buffer.size() << " bytes";
      missing.erase(found);
    }
    for (Datagram& each : probe.target) each.buffer = {};
  }
}

// Of one size, of falling and rising sizes, of none: whatever a backend makes of neighbours.
void many_are_sent_at_once_and_come_apart(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  const std::vector<std::size_t> sizes = {500, 500, 500, 100, 100, 0, 0, 1, 2, 3, 2, 1, 1, 1, 700};
  std::vector<std::string> texts;
  for (const std::size_t size : sizes) texts.push_back(pattern(size, texts.size()));
  for (int more = 0; more < 60; ++more) texts.push_back(pattern(200, texts.size()));
  SendDatagramsProbe& sent =
      bench.finish(bench.send_datagrams(client, texts, bench.address_of(server)));
  EXPECT_TRUE(sent.succeeded()) << sent.error().message();
  EXPECT_EQ(sent.sent, texts.size());
  expect_all(bench, server, texts);
}

// Neighbours of one size, each to another peer.
void each_goes_to_its_own_peer(ContractBench& bench) {
  Socket& client = bench.open_datagrams();
  std::vector<Socket*> servers;
  std::vector<std::string> texts;
  for (int i = 0; i < 5; ++i) {
    servers.push_back(&bench.open_datagrams());
    texts.push_back("to " + std::to_string(i));
  }
  std::vector<OutgoingDatagram> datagrams;
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t to = i / 2;
    datagrams.push_back({to_bytes(texts[to]), bench.address_of(*servers[to])});
  }
  SendDatagramsProbe sending;
  sending.datagrams = datagrams;
  start(bench.backend(), client, sending);
  bench.finish(sending);
  EXPECT_TRUE(sending.succeeded());
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(hear(bench, *servers[i]).text, texts[i]);
    EXPECT_EQ(hear(bench, *servers[i]).text, texts[i]);
  }
}

void what_is_cut_off_is_told(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  say(bench, client, "0123456789abcde", bench.address_of(server));
  const Heard cut = hear(bench, server, 10);
  EXPECT_EQ(cut.text, "0123456789");
  EXPECT_EQ(cut.cut_off, 5u);
  say(bench, client, "0123456789", bench.address_of(server));
  const Heard whole = hear(bench, server, 10);
  EXPECT_EQ(whole.text, "0123456789");
  EXPECT_EQ(whole.cut_off, 0u);
}

void an_empty_datagram_is_one(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  say(bench, client, "", bench.address_of(server));
  const Heard nothing = hear(bench, server);
  EXPECT_EQ(nothing.text, "");
  EXPECT_EQ(nothing.peer, bench.address_of(client));
  EXPECT_TRUE(bench.finish(bench.send_datagrams(client, {})).succeeded()) << "none at all";
}

void the_longest_goes_through_and_a_longer_one_is_refused(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  const Address address = bench.address_of(server);
  const std::string longest = pattern(datagram_bytes_max, 1);
  SendDatagramsProbe& sent =
      bench.finish(bench.send_datagrams(client, {"before", longest + "!", "after"}, address));
  EXPECT_EQ(sent.error(), system_error(EMSGSIZE));
  EXPECT_EQ(sent.sent, 1u) << "each whole or not at all, and in order";
  EXPECT_EQ(hear(bench, server).text, "before");
  say(bench, client, longest, address);
  EXPECT_TRUE(hear(bench, server).text == longest);
}

void that_nobody_is_there_is_told_to_a_receive(ContractBench& bench) {
  Socket& client = bench.open_datagrams({.peer = address_of_nobody(bench)});
  for (int round = 0; round < 3; ++round) {
    ReceiveDatagramsProbe& waiting = bench.receive_datagrams(client);
    say(bench, client, "anybody?");
    bench.finish(waiting);
    EXPECT_EQ(waiting.error(), system_error(ECONNREFUSED));
    EXPECT_EQ(waiting.count, 0u);
  }
  ReceiveDatagramsProbe& once = bench.receive_datagrams(client);
  bench.settle();
  EXPECT_FALSE(once.done()) << "it is told once";
}

void that_nobody_is_there_is_told_to_a_send(ContractBench& bench) {
  Socket& client = bench.open_datagrams({.peer = address_of_nobody(bench)});
  int refused = 0;
  int sent = 0;
  EXPECT_TRUE(bench.until([&] {
    SendDatagramsProbe& sending = bench.finish(bench.send_datagrams(client, {"anybody?"}));
    if (!sending.error()) {
      ++sent;
    } else {
      EXPECT_EQ(sending.error(), system_error(ECONNREFUSED));
      EXPECT_EQ(sending.sent, 0u);
      ++refused;
    }
    return refused == 3;
  }));
  EXPECT_GE(sent, 3) << "and it goes on";
}

void an_unconnected_socket_is_not_told(ContractBench& bench) {
  Socket& client = bench.open_datagrams();
  const Address nobody = address_of_nobody(bench);
  for (int i = 0; i < 5; ++i) say(bench, client, "anybody?", nobody);
  ReceiveDatagramsProbe& waiting = bench.receive_datagrams(client);
  bench.settle();
  EXPECT_FALSE(waiting.done());
}

void a_cancelled_receive_loses_no_datagram(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  ReceiveDatagramsProbe& cancelled = bench.receive_datagrams(server);
  bench.turn();
  bench.cancel(cancelled);
  bench.cancel(cancelled);
  EXPECT_EQ(bench.finish(cancelled).error(), Errc::cancelled);
  EXPECT_EQ(cancelled.count, 0u);
  EXPECT_FALSE(cancelled.target.front().buffer.owns_memory());
  say(bench, client, "late", bench.address_of(server));
  EXPECT_EQ(hear(bench, server).text, "late");
}

// Whatever each receive says, all datagrams come, once.
void cancelling_races_with_datagrams(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  std::multiset<std::string> missing;
  const auto take = [&](ReceiveDatagramsProbe& probe) {
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      return;
    }
    for (Datagram& each : probe.target.first(probe.count)) {
      const auto found = missing.find(std::string(each.buffer.text()));
      ASSERT_NE(found, missing.end()) << each.buffer.text();
      missing.erase(found);
      each.buffer = {};
    }
  };
  for (int round = 0; round < 300; ++round) {
    ReceiveDatagramsProbe& probe = bench.receive_datagrams(server, round % 3 == 0 ? 4 : 1);
    if (round % 8 < 4) bench.cancel(probe);
    const std::string text = std::to_string(round);
    missing.insert(text);
    say(bench, client, text, bench.address_of(server));
    if (round % 4 >= 2) bench.turn();
    bench.cancel(probe);
    take(bench.finish(probe));
    if (missing.size() < 20) continue;
    take(bench.finish(bench.receive_datagrams(server, 4)));
  }
  while (!missing.empty()) take(bench.finish(bench.receive_datagrams(server, 4)));
}

void who_waits_for_datagrams_holds_no_buffer(ContractBench& bench) {
  Socket& server = bench.open_datagrams();
  Socket& client = bench.open_datagrams();
  const std::size_t before = bench.loop().blocks().blocks_in_use();
  ReceiveDatagramsProbe& waiting = bench.receive_datagrams(server, 32);
  for (int i = 0; i < 3; ++i) bench.turn();
  EXPECT_EQ(bench.loop().blocks().blocks_in_use(), before);
  say(bench, client, "here", bench.address_of(server));
  bench.finish(waiting);
  EXPECT_EQ(waiting.count, 1u);
}

// All that one peer sends goes to one of them.
void datagram_sockets_share_a_port(ContractBench& bench) {
  constexpr int peers = 30;
  Socket& first =
      bench.open_datagrams({.local = Address::loopback(0), .reuse_port = true, .first = true});
  const Address address = bench.address_of(first);
  Socket& second = bench.open_datagrams({.local = address, .reuse_port = true});
  EXPECT_EQ(bench.host().open_datagrams({.local = address}).error(), system_error(EADDRINUSE));
  for (int i = 0; i < peers; ++i) {
    Socket& client = bench.open_datagrams();
    say(bench, client, "one", address);
    say(bench, client, "two", address);
  }
  std::map<std::string, std::set<const Socket*>> heard_at;  // by peer
  int heard = 0;
  std::vector<ReceiveDatagramsProbe*> receives = {&bench.receive_datagrams(first),
                                                  &bench.receive_datagrams(second)};
  EXPECT_TRUE(bench.until([&] {
    for (std::size_t i = 0; i < 2; ++i) {
      Socket& socket = i == 0 ? first : second;
      while (receives[i]->done()) {
        heard_at[heard_by(bench, *receives[i]).peer.to_string()].insert(&socket);
        ++heard;
        receives[i] = &bench.receive_datagrams(socket);
      }
    }
    return heard == 2 * peers;
  }));
  EXPECT_EQ(heard_at.size(), std::size_t{peers});
  for (const auto& [peer, sockets] : heard_at) EXPECT_EQ(sockets.size(), 1u) << peer;
}

void a_group_is_heard_while_one_is_in_it(ContractBench& bench) {
  const os::MulticastGroup group{Address::ipv4({239, 255, 77, 2}, 0), ::if_nametoindex("lo")};
  if (group.interface == 0) GTEST_SKIP() << "no interface called lo";
  Socket& member = bench.open_datagrams({.local = Address::ipv4({}, 0)});
  Socket& sender =
      bench.open_datagrams({.local = Address::ipv4({}, 0), .multicast_interface = group.interface});
  const std::uint16_t port = bench.address_of(member).port();
  const Address to_group = group.address.with_port(port);
  ASSERT_TRUE(bench.host().join(member.descriptor, group));
  EXPECT_EQ(bench.host().join(member.descriptor, group).error(), system_error(EADDRINUSE));
  say(bench, sender, "to all", to_group);
  EXPECT_EQ(hear(bench, member).text, "to all");
  ASSERT_TRUE(bench.host().leave(member.descriptor, group));
  EXPECT_EQ(bench.host().leave(member.descriptor, group).error(), system_error(EADDRNOTAVAIL));
  EXPECT_EQ(bench.host().join(member.descriptor, {Address::loopback(0), 0}).error(),
            system_error(EINVAL));
  say(bench, sender, "to others", to_group);
  say(bench, sender, "to you", Address::loopback(port));
  EXPECT_EQ(hear(bench, member).text, "to you");
}

// The number of a closed descriptor is used again at once; what was under way on the old socket
// must not reach the new one.
void a_datagram_socket_can_be_closed_at_once(ContractBench& bench) {
  Socket& client = bench.open_datagrams();
  for (int round = 0; round < 100; ++round) {
    Socket& server = bench.open_datagrams();
    ReceiveDatagramsProbe& waiting = bench.receive_datagrams(server);
    if (round % 2 == 0) bench.turn();
    if (round % 3 == 0) say(bench, client, "old", bench.address_of(server));
    bench.cancel(waiting);
    bench.finish(waiting);
    bench.close(server);
    Socket& fresh = bench.open_datagrams();
    ReceiveDatagramsProbe& hearing = bench.receive_datagrams(fresh);
    say(bench, client, "new", bench.address_of(fresh));
    EXPECT_EQ(heard_by(bench, hearing).text, "new");
    bench.close(fresh);
  }
}

void without_descriptors_there_is_no_datagram_socket(ContractBench& bench) {
  bench.world().forbid_descriptors();
  EXPECT_EQ(bench.host().open_datagrams({.local = Address::loopback(0)}).error(),
            system_error(EMFILE));
  bench.world().allow_descriptors();
  EXPECT_EQ(bench.host().open_datagrams({}).error(), system_error(EAFNOSUPPORT));
}

}  // namespace

std::vector<ContractClause> contract_of_datagrams() {
  return {
      {"datagrams_go_over_ipv4", datagrams_go_over_ipv4},
      {"datagrams_go_over_ipv6", datagrams_go_over_ipv6, ContractNeed::ipv6},
      {"a_connected_socket_talks_with_its_peer_alone",
       a_connected_socket_talks_with_its_peer_alone},
      {"many_are_sent_at_once_and_come_apart", many_are_sent_at_once_and_come_apart},
      {"each_goes_to_its_own_peer", each_goes_to_its_own_peer},
      {"what_is_cut_off_is_told", what_is_cut_off_is_told},
      {"an_empty_datagram_is_one", an_empty_datagram_is_one},
      {"the_longest_goes_through_and_a_longer_one_is_refused",
       the_longest_goes_through_and_a_longer_one_is_refused},
      {"that_nobody_is_there_is_told_to_a_receive", that_nobody_is_there_is_told_to_a_receive},
      {"that_nobody_is_there_is_told_to_a_send", that_nobody_is_there_is_told_to_a_send},
      {"an_unconnected_socket_is_not_told", an_unconnected_socket_is_not_told},
      {"a_cancelled_receive_loses_no_datagram", a_cancelled_receive_loses_no_datagram},
      {"cancelling_races_with_datagrams", cancelling_races_with_datagrams},
      {"who_waits_for_datagrams_holds_no_buffer", who_waits_for_datagrams_holds_no_buffer},
      {"datagram_sockets_share_a_port", datagram_sockets_share_a_port},
      {"a_group_is_heard_while_one_is_in_it", a_group_is_heard_while_one_is_in_it},
      {"a_datagram_socket_can_be_closed_at_once", a_datagram_socket_can_be_closed_at_once},
      {"without_descriptors_there_is_no_datagram_socket",
       without_descriptors_there_is_no_datagram_socket},
  };
}

}  // namespace weir
