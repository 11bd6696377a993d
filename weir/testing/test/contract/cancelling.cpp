// Contract of cancelling: a cancelled operation always finishes, and no data is lost.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

// Returns the data of a receive, or nothing if it was cancelled. Other errors fail the test.
std::string taken(ReceiveProbe& probe, std::string_view span = {}) {
  if (probe.error() == Errc::cancelled) {
    EXPECT_EQ(probe.count, 0u);
    EXPECT_TRUE(probe.buffer.empty());
    return {};
  }
  EXPECT_FALSE(probe.error()) << probe.error().message();
  std::string text(probe.target.empty() ? probe.buffer.text() : span.substr(0, probe.count));
  probe.buffer = {};
  return text;
}

void a_cancelled_receive_loses_nothing(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& lent = fixture.receive(server);
  fixture.settle();
  fixture.cancel(lent);
  EXPECT_EQ(fixture.finish(lent).error(), Errc::cancelled);
  std::string room(16, '-');
  ReceiveProbe& span =
      fixture.receive(server, {reinterpret_cast<std::byte*>(room.data()), room.size()});
  fixture.cancel(span);
  fixture.cancel(span);
  EXPECT_EQ(fixture.finish(span).error(), Errc::cancelled);
  EXPECT_EQ(span.count, 0u);

  fixture.write(client, "late");
  fixture.settle();
  EXPECT_EQ(room, std::string(16, '-')) << "a cancelled receive's memory is not written";
  EXPECT_EQ(fixture.read(server, 4), "late");
}

// Data arrives just before, just after and at the moment of cancelling. All data must be
// received, once and in order, whatever each receive returns.
void cancelling_races_with_bytes(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  std::string sent;
  std::string got;
  for (int round = 0; round < 400; ++round) {
    const std::string text = std::to_string(round) + ";";
    std::string room(64, '-');
    const bool lent = round % 2 == 0;
    const MutableBytes span{reinterpret_cast<std::byte*>(room.data()), lent ? 0 : room.size()};
    ReceiveProbe& probe = fixture.receive(server, span);
    if (round % 8 < 4) fixture.cancel(probe);
    fixture.write(client, text);
    sent += text;
    if (round % 4 >= 2) fixture.turn();
    fixture.cancel(probe);
    got += taken(fixture.finish(probe), room);
  }
  got += fixture.read(server, sent.size() - got.size());
  EXPECT_EQ(got, sent);
}

void cancelling_an_operation_that_is_not_pending_does_nothing(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe idle;
  fixture.backend().cancel(idle);
  EXPECT_EQ(idle.state(), loop::Operation::State::idle);
  fixture.write(client, "here");
  ReceiveProbe& probe = fixture.finish(fixture.receive(server));
  fixture.cancel(probe);
  fixture.settle();
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(probe.buffer.text(), "here");
}

// An operation that has finished but was not run yet keeps its result.
void completion_beats_cancellation(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& probe = fixture.receive(server);
  fixture.write(client, "first");
  ASSERT_TRUE(fixture.until([&] {
    if (probe.state() == loop::Operation::State::finished) return true;
    fixture.backend().wait(after(fixture.platform().now(), 5ms));
    return probe.state() == loop::Operation::State::finished;
  }));
  fixture.cancel(probe);
  fixture.finish(probe);
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(probe.buffer.text(), "first");
}

void a_cancelled_send_reports_the_bytes_sent(ContractFixture& fixture) {
  constexpr std::size_t size = 20'000'000;
  const auto [client, server] = fixture.connect();
  const std::string sent = pattern(size, 1);
  SendProbe& probe = fixture.send(client, sent);
  ASSERT_TRUE(fixture.until([&] { return probe.sent > 0; }));
  fixture.cancel(probe);
  EXPECT_EQ(fixture.finish(probe).error(), Errc::cancelled);
  ASSERT_LT(probe.sent, size);
  // The stream continues after the part that was sent.
  SendProbe& rest = fixture.send(client, "and then this");
  const std::string expected = sent.substr(0, probe.sent) + "and then this";
  EXPECT_TRUE(fixture.read(server, expected.size()) == expected);
  EXPECT_TRUE(fixture.finish(rest).succeeded());
}

// A small send, which the kernel could take at any moment, is cancelled at any moment.
void cancelling_races_with_a_send(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  std::string sent;
  for (int round = 0; round < 200; ++round) {
    const std::string text = pattern(1000, static_cast<std::uint64_t>(round));
    SendProbe& probe = fixture.send_pieces(client, {text.substr(0, 300), text.substr(300)});
    if (round % 3 == 0) fixture.turn();
    fixture.cancel(probe);
    fixture.finish(probe);
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      EXPECT_LT(probe.sent, text.size());
    } else {
      EXPECT_EQ(probe.sent, text.size());
    }
    sent += text.substr(0, probe.sent);
    if (sent.size() > 50'000) {
      EXPECT_TRUE(fixture.read(server, sent.size()) == sent);
      sent.clear();
    }
  }
  fixture.write(client, "end");
  EXPECT_TRUE(fixture.read(server, sent.size() + 3) == sent + "end");
}

void receiving_and_sending_are_cancelled_separately(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& receiving = fixture.receive(client);
  SendProbe& sending = fixture.send(client, pattern(20'000'000, 2));
  ASSERT_TRUE(fixture.until([&] { return sending.sent > 0; }));
  fixture.cancel(sending);
  EXPECT_EQ(fixture.finish(sending).error(), Errc::cancelled);
  EXPECT_EQ(receiving.state(), loop::Operation::State::pending);
  fixture.write(server, "to you");
  EXPECT_EQ(fixture.finish(receiving).buffer.text(), "to you");
}

void a_cancelled_accept_loses_no_connection(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  AcceptProbe& cancelled = fixture.accept(listener);
  fixture.settle();
  fixture.cancel(cancelled);
  EXPECT_EQ(fixture.finish(cancelled).error(), Errc::cancelled);
  EXPECT_FALSE(cancelled.accepted);
  const os::Address address = fixture.address_of(listener);
  loop::Socket& client = fixture.open(address);
  ASSERT_TRUE(fixture.finish(fixture.start_connect(client, address)).succeeded());
  fixture.settle();
  loop::Socket& server = fixture.accept_one(listener);
  fixture.write(client, "in");
  EXPECT_EQ(fixture.read(server, 2), "in");
}

void cancelling_races_with_connections(ContractFixture& fixture) {
  constexpr unsigned char rounds = 60;
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  std::vector<loop::Socket*> accepted;
  const auto take = [&](AcceptProbe& probe) {
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      EXPECT_FALSE(probe.accepted);
    } else {
      accepted.push_back(&fixture.adopt(std::move(probe.accepted)));
    }
  };
  for (unsigned char round = 0; round < rounds; ++round) {
    AcceptProbe& probe = fixture.accept(listener);
    if (round % 4 == 0) fixture.cancel(probe);
    loop::Socket& client = fixture.open(address);
    ConnectProbe& connect = fixture.start_connect(client, address);
    if (round % 2 == 0) fixture.turn();
    fixture.cancel(probe);
    take(fixture.finish(probe));
    ASSERT_TRUE(fixture.finish(connect).succeeded());
    fixture.write(client, std::string(1, static_cast<char>(round)));
  }
  while (accepted.size() < rounds) accepted.push_back(&fixture.accept_one(listener));
  std::set<std::string> received;
  for (loop::Socket* each : accepted) received.insert(fixture.read(*each, 1));
  EXPECT_EQ(received.size(), rounds) << "each connection is accepted once";
}

void a_connect_can_be_cancelled_immediately(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  for (int round = 0; round < 20; ++round) {
    loop::Socket& client = fixture.open(address);
    ConnectProbe& connect = fixture.start_connect(client, address);
    if (round % 2 == 1) fixture.turn();
    fixture.cancel(connect);
    fixture.finish(connect);
    if (connect.error()) {
      EXPECT_EQ(connect.error(), Errc::cancelled);
    }
    fixture.close(client);
  }
}

// A listener with a full queue leaves handshakes unanswered.
void an_unanswered_connect_can_be_cancelled(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen(os::Address::loopback(0), {.backlog = 0});
  const os::Address address = fixture.address_of(listener);
  std::vector<ConnectProbe*> connects;
  for (int i = 0; i < 6; ++i) {
    connects.push_back(&fixture.start_connect(fixture.open(address), address));
  }
  fixture.settle();
  int cancelled = 0;
  for (ConnectProbe* each : connects) {
    fixture.cancel(*each);
    fixture.finish(*each);
    if (each->error() == Errc::cancelled) ++cancelled;
  }
  EXPECT_GE(cancelled, 1);
}

void a_cancelled_socket_can_be_closed_immediately(ContractFixture& fixture) {
  for (int round = 0; round < 50; ++round) {
    const auto [client, server] = fixture.connect();
    ReceiveProbe& receiving = fixture.receive(server);
    SendProbe& sending = fixture.send(server, pattern(10'000'000, 5));
    fixture.write(client, "unread");
    fixture.cancel(receiving);
    fixture.cancel(sending);
    fixture.finish(receiving);
    fixture.finish(sending);
    fixture.close(server);
    fixture.close(client);
  }
}

}  // namespace

std::vector<ContractClause> contract_of_cancelling() {
  return {
      {"a_cancelled_receive_loses_nothing", a_cancelled_receive_loses_nothing},
      {"cancelling_races_with_bytes", cancelling_races_with_bytes},
      {"cancelling_an_operation_that_is_not_pending_does_nothing",
       cancelling_an_operation_that_is_not_pending_does_nothing},
      {"completion_beats_cancellation", completion_beats_cancellation},
      {"a_cancelled_send_reports_the_bytes_sent", a_cancelled_send_reports_the_bytes_sent},
      {"cancelling_races_with_a_send", cancelling_races_with_a_send},
      {"receiving_and_sending_are_cancelled_separately",
       receiving_and_sending_are_cancelled_separately},
      {"a_cancelled_accept_loses_no_connection", a_cancelled_accept_loses_no_connection},
      {"cancelling_races_with_connections", cancelling_races_with_connections},
      {"a_connect_can_be_cancelled_immediately", a_connect_can_be_cancelled_immediately},
      {"an_unanswered_connect_can_be_cancelled", an_unanswered_connect_can_be_cancelled},
      {"a_cancelled_socket_can_be_closed_immediately",
       a_cancelled_socket_can_be_closed_immediately},
  };
}

}  // namespace weir
