// Contract: listening, accepting and connecting, and what happens when descriptors run out.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void talk(ContractBench& bench, const os::Address& address) {
  Socket& listener = bench.listen(address);
  const auto [client, server] = bench.connect_to(listener);
  const std::string question = pattern(300'000, 1);
  SendProbe& asking = bench.send(client, question);
  EXPECT_TRUE(bench.read(server, question.size()) == question);
  EXPECT_TRUE(bench.finish(asking).succeeded());
  bench.write(server, "answer");
  EXPECT_EQ(bench.read(client, 6), "answer");
  if (!address.is_inet()) return;
  EXPECT_EQ(bench.host().peer_address(client.descriptor).value(), bench.address_of(listener));
  EXPECT_EQ(bench.host().peer_address(server.descriptor).value(), bench.address_of(client));
  EXPECT_TRUE(bench.host().configure(client.descriptor, {}));
}

os::Address ipv6_loopback() {
  return os::Address::ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0);
}

void talks_over_ipv4(ContractBench& bench) {
  talk(bench, os::Address::loopback(0));
}
void talks_over_ipv6(ContractBench& bench) {
  talk(bench, ipv6_loopback());
}
void talks_over_unix_sockets(ContractBench& bench) {
  talk(bench, bench.world().fresh_local_address());
}

void a_connect_to_nobody_is_refused(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  bench.close(listener);
  bench.settle();
  for (int tries = 0; tries < 2; ++tries) {
    Socket& client = bench.open(address);
    ConnectProbe& connect = bench.finish(bench.start_connect(client, address));
    EXPECT_EQ(connect.error(), system_error(ECONNREFUSED));
    bench.close(client);
  }
  bench.settle();  // and the backend is none the worse
}

void a_burst_of_connections_is_accepted(ContractBench& bench) {
  constexpr std::size_t burst = 200;
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  AcceptProbe& first = bench.accept(listener);
  std::vector<ConnectProbe*> connects;
  for (std::size_t i = 0; i < burst; ++i) {
    connects.push_back(&bench.start_connect(bench.open(address), address));
  }
  std::set<int> descriptors;
  std::set<std::string> peers;
  const auto note = [&](Socket& socket) {
    descriptors.insert(socket.descriptor);
    peers.insert(bench.host().peer_address(socket.descriptor).value().to_string());
  };
  ASSERT_TRUE(bench.finish(first).succeeded());
  note(bench.adopt(std::move(first.accepted)));
  for (std::size_t i = 1; i < burst; ++i) note(bench.accept_one(listener));
  for (ConnectProbe* each : connects) EXPECT_TRUE(bench.finish(*each).succeeded());
  EXPECT_EQ(descriptors.size(), burst);
  EXPECT_EQ(peers.size(), burst);
}

// Each connection goes to one of them, and none is lost.
void listeners_share_an_address(ContractBench& bench) {
  constexpr int connections = 60;
  Socket& first = bench.listen();
  const os::Address address = bench.address_of(first);
  Socket& second = bench.listen(address);
  std::vector<AcceptProbe*> accepts = {&bench.accept(first), &bench.accept(second)};
  std::size_t accepted = 0;
  const auto take = [&] {
    for (std::size_t i = 0; i < 2; ++i) {
      while (accepts[i]->done()) {
        ASSERT_TRUE(accepts[i]->succeeded());
        bench.adopt(std::move(accepts[i]->accepted));
        ++accepted;
        accepts[i] = &bench.accept(i == 0 ? first : second);
      }
    }
  };
  for (int i = 0; i < connections; ++i) {
    ASSERT_TRUE(bench.finish(bench.start_connect(bench.open(address), address)).succeeded());
  }
  EXPECT_TRUE(bench.until([&] {
    take();
    return accepted == connections;
  }));
}

// A listener whose socket others have too: its descriptor, and another of the same socket.
struct SharedPair {
  Socket& ours;
  Socket& others;
};

SharedPair listen_together(ContractBench& bench) {
  const SocketOptions options{.role = SocketRole::listener, .shared = true};
  Descriptor first = bench.host().listen(os::Address::loopback(0), {}).value();
  Descriptor second = bench.host().share(first.value()).value();
  Socket& ours = bench.adopt(std::move(first), options);
  return {ours, bench.adopt(std::move(second), options)};
}

void connect_many(ContractBench& bench, const os::Address& address, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(bench.finish(bench.start_connect(bench.open(address), address)).succeeded());
  }
}

// What it had taken is given out, then it is closed; the rest is there for others.
void a_listener_that_stops_accepting_loses_nobody(ContractBench& bench) {
  constexpr int connections = 12;
  const auto [ours, others] = listen_together(bench);
  const os::Address address = bench.address_of(ours);
  connect_many(bench, address, connections);
  bench.accept_one(ours);
  bench.settle();
  bench.backend().stop_accepting(ours);
  bench.backend().stop_accepting(ours);
  int taken = 1;
  for (;;) {
    AcceptProbe& accept = bench.finish(bench.accept(ours));
    if (accept.error()) {
      EXPECT_EQ(accept.error(), Errc::closed);
      break;
    }
    bench.adopt(std::move(accept.accepted));
    ++taken;
  }
  for (; taken < connections; ++taken) bench.accept_one(others);
  connect_many(bench, address, 2);
  EXPECT_EQ(bench.finish(bench.accept(ours)).error(), Errc::closed);
  for (int i = 0; i < 2; ++i) bench.accept_one(others);
}

void an_accept_that_waits_ends_when_accepting_stops(ContractBench& bench) {
  const auto [ours, others] = listen_together(bench);
  AcceptProbe& waiting = bench.accept(ours);
  bench.settle();
  EXPECT_FALSE(waiting.done());
  bench.backend().stop_accepting(ours);
  EXPECT_EQ(bench.finish(waiting).error(), Errc::closed);
  connect_many(bench, bench.address_of(ours), 1);
  bench.accept_one(others);
}

void a_shared_listener_goes_on_when_it_is_closed_here(ContractBench& bench) {
  const auto [ours, others] = listen_together(bench);
  const os::Address address = bench.address_of(others);
  AcceptProbe& waiting = bench.accept(ours);
  bench.settle();
  bench.cancel(waiting);
  EXPECT_EQ(bench.finish(waiting).error(), Errc::cancelled);
  bench.backend().stop_accepting(ours);
  EXPECT_EQ(bench.finish(bench.accept(ours)).error(), Errc::closed);
  bench.close(ours);
  bench.settle();
  connect_many(bench, address, 3);
  for (int i = 0; i < 3; ++i) bench.accept_one(others);
}

// Draining: newcomers are turned away, who already knocked gets in and is not reset.
void a_listener_that_refuses_still_serves_its_queue(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  std::vector<Socket*> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(&bench.open(address));
    ASSERT_TRUE(bench.finish(bench.start_connect(*waiting.back(), address)).succeeded());
  }
  ASSERT_TRUE(bench.host().refuse_new_connections(listener.descriptor));
  ConnectProbe& late = bench.start_connect(bench.open(address), address);
  std::vector<Socket*> accepted;
  for (int i = 0; i < 5; ++i) accepted.push_back(&bench.accept_one(listener));
  AcceptProbe& nobody = bench.accept(listener);
  bench.settle();
  EXPECT_FALSE(nobody.done());
  EXPECT_FALSE(late.succeeded());
  bench.cancel(nobody);
  EXPECT_EQ(bench.finish(nobody).error(), Errc::cancelled);
  bench.close(listener);
  for (Socket* each : accepted) bench.write(*each, "welcome");
  for (Socket* each : waiting) EXPECT_EQ(bench.read(*each, 7), "welcome");
}

void accepting_rests_without_descriptors_and_recovers(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  std::vector<Socket*> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(&bench.open(address));
  const Instant begun = bench.host().now();
  bench.world().forbid_descriptors();
  AcceptProbe& accept = bench.accept(listener);
  for (Socket* each : clients) {
    ASSERT_TRUE(bench.finish(bench.start_connect(*each, address)).succeeded());
  }
  const auto pauses = [&] { return bench.backend().counters().accept_pauses.value(); };
  EXPECT_TRUE(bench.until([&] { return pauses() > 0; }));
  // It rests instead of spinning, and other sockets are served meanwhile.
  const std::uint64_t calls = bench.backend().counters().system_calls.value();
  EXPECT_TRUE(bench.until([&] { return bench.host().now() - begun > 100ms; }));
  EXPECT_LT(bench.backend().counters().system_calls.value() - calls, 500u);
  EXPECT_FALSE(accept.done());
  bench.world().allow_descriptors();
  ASSERT_TRUE(bench.finish(accept).succeeded());
  bench.adopt(std::move(accept.accepted));
  for (int i = 0; i < 2; ++i) bench.accept_one(listener);
}

}  // namespace

std::vector<ContractClause> contract_of_connecting() {
  return {
      {"talks_over_ipv4", talks_over_ipv4},
      {"talks_over_ipv6", talks_over_ipv6, ContractNeed::ipv6},
      {"talks_over_unix_sockets", talks_over_unix_sockets},
      {"a_connect_to_nobody_is_refused", a_connect_to_nobody_is_refused},
      {"a_burst_of_connections_is_accepted", a_burst_of_connections_is_accepted},
      {"listeners_share_an_address", listeners_share_an_address},
      {"a_listener_that_stops_accepting_loses_nobody",
       a_listener_that_stops_accepting_loses_nobody},
      {"an_accept_that_waits_ends_when_accepting_stops",
       an_accept_that_waits_ends_when_accepting_stops},
      {"a_shared_listener_goes_on_when_it_is_closed_here",
       a_shared_listener_goes_on_when_it_is_closed_here},
      {"a_listener_that_refuses_still_serves_its_queue",
       a_listener_that_refuses_still_serves_its_queue},
      {"accepting_rests_without_descriptors_and_recovers",
       accepting_rests_without_descriptors_and_recovers},
  };
}

}  // namespace weir
