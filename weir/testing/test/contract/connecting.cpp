// Contract of listening, accepting and connecting, with and without free descriptors.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void exchange(ContractFixture& fixture, const os::Address& address) {
  loop::Socket& listener = fixture.listen(address);
  const auto [client, server] = fixture.connect_to(listener);
  const std::string question = pattern(300'000, 1);
  SendProbe& asking = fixture.send(client, question);
  EXPECT_TRUE(fixture.read(server, question.size()) == question);
  EXPECT_TRUE(fixture.finish(asking).succeeded());
  fixture.write(server, "answer");
  EXPECT_EQ(fixture.read(client, 6), "answer");
  if (!address.is_inet()) return;
  EXPECT_EQ(fixture.platform().peer_address(client.descriptor).value(),
            fixture.address_of(listener));
  EXPECT_EQ(fixture.platform().peer_address(server.descriptor).value(), fixture.address_of(client));
  EXPECT_TRUE(fixture.platform().configure(client.descriptor, {}));
}

os::Address ipv6_loopback() {
  return os::Address::ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 0);
}

void connects_over_ipv4(ContractFixture& fixture) {
  exchange(fixture, os::Address::loopback(0));
}
void connects_over_ipv6(ContractFixture& fixture) {
  exchange(fixture, ipv6_loopback());
}
void connects_over_unix_sockets(ContractFixture& fixture) {
  exchange(fixture, fixture.environment().fresh_local_address());
}

void a_connect_to_an_unused_address_is_refused(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  fixture.close(listener);
  fixture.settle();
  for (int tries = 0; tries < 2; ++tries) {
    loop::Socket& client = fixture.open(address);
    ConnectProbe& connect = fixture.finish(fixture.start_connect(client, address));
    EXPECT_EQ(connect.error(), system_error(ECONNREFUSED));
    fixture.close(client);
  }
  fixture.settle();  // the backend still works
}

void a_burst_of_connections_is_accepted(ContractFixture& fixture) {
  constexpr std::size_t burst = 200;
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  AcceptProbe& first = fixture.accept(listener);
  std::vector<ConnectProbe*> connects;
  for (std::size_t i = 0; i < burst; ++i) {
    connects.push_back(&fixture.start_connect(fixture.open(address), address));
  }
  std::set<int> descriptors;
  std::set<std::string> peers;
  const auto note = [&](loop::Socket& socket) {
    descriptors.insert(socket.descriptor);
    peers.insert(fixture.platform().peer_address(socket.descriptor).value().to_string());
  };
  ASSERT_TRUE(fixture.finish(first).succeeded());
  note(fixture.adopt(std::move(first.accepted)));
  for (std::size_t i = 1; i < burst; ++i) note(fixture.accept_one(listener));
  for (ConnectProbe* each : connects) EXPECT_TRUE(fixture.finish(*each).succeeded());
  EXPECT_EQ(descriptors.size(), burst);
  EXPECT_EQ(peers.size(), burst);
}

// Each connection goes to one of the listeners, and none is lost.
void listeners_share_an_address(ContractFixture& fixture) {
  constexpr int connections = 60;
  loop::Socket& first = fixture.listen();
  const os::Address address = fixture.address_of(first);
  loop::Socket& second = fixture.listen(address);
  std::vector<AcceptProbe*> accepts = {&fixture.accept(first), &fixture.accept(second)};
  std::size_t accepted = 0;
  const auto take = [&] {
    for (std::size_t i = 0; i < 2; ++i) {
      while (accepts[i]->done()) {
        ASSERT_TRUE(accepts[i]->succeeded());
        fixture.adopt(std::move(accepts[i]->accepted));
        ++accepted;
        accepts[i] = &fixture.accept(i == 0 ? first : second);
      }
    }
  };
  for (int i = 0; i < connections; ++i) {
    ASSERT_TRUE(fixture.finish(fixture.start_connect(fixture.open(address), address)).succeeded());
  }
  EXPECT_TRUE(fixture.until([&] {
    take();
    return accepted == connections;
  }));
}

// A listening socket that others have too: the descriptor here, and another one of the same
// socket.
struct SharedPair {
  loop::Socket& ours;
  loop::Socket& others;
};

SharedPair listen_shared(ContractFixture& fixture) {
  const loop::SocketOptions options{.role = loop::SocketRole::listener, .shared = true};
  loop::Descriptor first = fixture.platform().listen(os::Address::loopback(0), {}).value();
  loop::Descriptor second = fixture.platform().share(first.value()).value();
  loop::Socket& ours = fixture.adopt(std::move(first), options);
  return {ours, fixture.adopt(std::move(second), options)};
}

void connect_many(ContractFixture& fixture, const os::Address& address, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(fixture.finish(fixture.start_connect(fixture.open(address), address)).succeeded());
  }
}

// Accepted connections are still given out, and the listener then reports its end. Others accept
// the rest.
void a_listener_that_stops_accepting_loses_no_connection(ContractFixture& fixture) {
  constexpr int connections = 12;
  const auto [ours, others] = listen_shared(fixture);
  const os::Address address = fixture.address_of(ours);
  connect_many(fixture, address, connections);
  fixture.accept_one(ours);
  fixture.settle();
  fixture.backend().stop_accepting(ours);
  fixture.backend().stop_accepting(ours);
  int taken = 1;
  for (;;) {
    AcceptProbe& accept = fixture.finish(fixture.accept(ours));
    if (accept.error()) {
      EXPECT_EQ(accept.error(), Errc::closed);
      break;
    }
    fixture.adopt(std::move(accept.accepted));
    ++taken;
  }
  for (; taken < connections; ++taken) fixture.accept_one(others);
  connect_many(fixture, address, 2);
  EXPECT_EQ(fixture.finish(fixture.accept(ours)).error(), Errc::closed);
  for (int i = 0; i < 2; ++i) fixture.accept_one(others);
}

void a_pending_accept_ends_when_accepting_stops(ContractFixture& fixture) {
  const auto [ours, others] = listen_shared(fixture);
  AcceptProbe& waiting = fixture.accept(ours);
  fixture.settle();
  EXPECT_FALSE(waiting.done());
  fixture.backend().stop_accepting(ours);
  EXPECT_EQ(fixture.finish(waiting).error(), Errc::closed);
  connect_many(fixture, fixture.address_of(ours), 1);
  fixture.accept_one(others);
}

void a_shared_listener_stays_open_after_a_local_close(ContractFixture& fixture) {
  const auto [ours, others] = listen_shared(fixture);
  const os::Address address = fixture.address_of(others);
  AcceptProbe& waiting = fixture.accept(ours);
  fixture.settle();
  fixture.cancel(waiting);
  EXPECT_EQ(fixture.finish(waiting).error(), Errc::cancelled);
  fixture.backend().stop_accepting(ours);
  EXPECT_EQ(fixture.finish(fixture.accept(ours)).error(), Errc::closed);
  fixture.close(ours);
  fixture.settle();
  connect_many(fixture, address, 3);
  for (int i = 0; i < 3; ++i) fixture.accept_one(others);
}

// The case of a drain: new connections are refused, and waiting ones are accepted without a
// reset.
void a_listener_that_refuses_still_serves_its_queue(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  std::vector<loop::Socket*> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(&fixture.open(address));
    ASSERT_TRUE(fixture.finish(fixture.start_connect(*waiting.back(), address)).succeeded());
  }
  ASSERT_TRUE(fixture.platform().refuse_new_connections(listener.descriptor));
  ConnectProbe& late = fixture.start_connect(fixture.open(address), address);
  std::vector<loop::Socket*> accepted;
  for (int i = 0; i < 5; ++i) accepted.push_back(&fixture.accept_one(listener));
  AcceptProbe& pending = fixture.accept(listener);
  fixture.settle();
  EXPECT_FALSE(pending.done());
  EXPECT_FALSE(late.succeeded());
  fixture.cancel(pending);
  EXPECT_EQ(fixture.finish(pending).error(), Errc::cancelled);
  fixture.close(listener);
  for (loop::Socket* each : accepted) fixture.write(*each, "welcome");
  for (loop::Socket* each : waiting) EXPECT_EQ(fixture.read(*each, 7), "welcome");
}

void accepting_pauses_without_descriptors_and_resumes(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  std::vector<loop::Socket*> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(&fixture.open(address));
  const Instant begun = fixture.platform().now();
  fixture.environment().forbid_descriptors();
  AcceptProbe& accept = fixture.accept(listener);
  for (loop::Socket* each : clients) {
    ASSERT_TRUE(fixture.finish(fixture.start_connect(*each, address)).succeeded());
  }
  const auto pauses = [&] { return fixture.backend().counters().accept_pauses.value(); };
  EXPECT_TRUE(fixture.until([&] { return pauses() > 0; }));
  // Accepting pauses instead of spinning, and the loop serves other sockets meanwhile.
  const std::uint64_t calls = fixture.backend().counters().system_calls.value();
  EXPECT_TRUE(fixture.until([&] { return fixture.platform().now() - begun > 100ms; }));
  EXPECT_LT(fixture.backend().counters().system_calls.value() - calls, 500u);
  EXPECT_FALSE(accept.done());
  fixture.environment().allow_descriptors();
  ASSERT_TRUE(fixture.finish(accept).succeeded());
  fixture.adopt(std::move(accept.accepted));
  for (int i = 0; i < 2; ++i) fixture.accept_one(listener);
}

}  // namespace

std::vector<ContractClause> contract_of_connecting() {
  return {
      {"connects_over_ipv4", connects_over_ipv4},
      {"connects_over_ipv6", connects_over_ipv6, ContractRequirement::ipv6},
      {"connects_over_unix_sockets", connects_over_unix_sockets},
      {"a_connect_to_an_unused_address_is_refused", a_connect_to_an_unused_address_is_refused},
      {"a_burst_of_connections_is_accepted", a_burst_of_connections_is_accepted},
      {"listeners_share_an_address", listeners_share_an_address},
      {"a_listener_that_stops_accepting_loses_no_connection",
       a_listener_that_stops_accepting_loses_no_connection},
      {"a_pending_accept_ends_when_accepting_stops", a_pending_accept_ends_when_accepting_stops},
      {"a_shared_listener_stays_open_after_a_local_close",
       a_shared_listener_stays_open_after_a_local_close},
      {"a_listener_that_refuses_still_serves_its_queue",
       a_listener_that_refuses_still_serves_its_queue},
      {"accepting_pauses_without_descriptors_and_resumes",
       accepting_pauses_without_descriptors_and_resumes},
  };
}

}  // namespace weir
