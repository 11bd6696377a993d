// Contract: cancelling asks, finishing comes, and nothing is lost.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

// What one receive brought, or that it was cancelled; anything else is a failure.
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

void a_cancelled_receive_loses_nothing(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& lent = bench.receive(server);
  bench.settle();
  bench.cancel(lent);
  EXPECT_EQ(bench.finish(lent).error(), Errc::cancelled);
  std::string room(16, '-');
  ReceiveProbe& span =
      bench.receive(server, {reinterpret_cast<std::byte*>(room.data()), room.size()});
  bench.cancel(span);
  bench.cancel(span);
  EXPECT_EQ(bench.finish(span).error(), Errc::cancelled);
  EXPECT_EQ(span.count, 0u);

  bench.write(client, "late");
  bench.settle();
  EXPECT_EQ(room, std::string(16, '-')) << "a cancelled receive's memory is not written";
  EXPECT_EQ(bench.read(server, 4), "late");
}

// Bytes arrive just before, just after and at the moment of cancelling: whatever each receive says,
// all bytes come, once and in order.
void cancelling_races_with_bytes(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  std::string sent;
  std::string got;
  for (int round = 0; round < 400; ++round) {
    const std::string text = std::to_string(round) + ";";
    std::string room(64, '-');
    const bool lent = round % 2 == 0;
    const MutableBytes span{reinterpret_cast<std::byte*>(room.data()), lent ? 0 : room.size()};
    ReceiveProbe& probe = bench.receive(server, span);
    if (round % 8 < 4) bench.cancel(probe);
    bench.write(client, text);
    sent += text;
    if (round % 4 >= 2) bench.turn();
    bench.cancel(probe);
    got += taken(bench.finish(probe), room);
  }
  got += bench.read(server, sent.size() - got.size());
  EXPECT_EQ(got, sent);
}

void cancelling_what_is_not_pending_does_nothing(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe idle;
  bench.backend().cancel(idle);
  EXPECT_EQ(idle.state(), Operation::State::idle);
  bench.write(client, "here");
  ReceiveProbe& probe = bench.finish(bench.receive(server));
  bench.cancel(probe);
  bench.settle();
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(probe.buffer.text(), "here");
}

// Finished but not yet run: the result stays.
void completion_beats_cancellation(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& probe = bench.receive(server);
  bench.write(client, "first");
  ASSERT_TRUE(bench.until([&] {
    if (probe.state() == Operation::State::finished) return true;
    bench.backend().wait(after(bench.host().now(), 5ms));
    return probe.state() == Operation::State::finished;
  }));
  bench.cancel(probe);
  bench.finish(probe);
  EXPECT_TRUE(probe.succeeded());
  EXPECT_EQ(probe.buffer.text(), "first");
}

void a_cancelled_send_tells_its_part(ContractBench& bench) {
  constexpr std::size_t size = 20'000'000;
  const auto [client, server] = bench.connect();
  const std::string sent = pattern(size, 1);
  SendProbe& probe = bench.send(client, sent);
  ASSERT_TRUE(bench.until([&] { return probe.sent > 0; }));
  bench.cancel(probe);
  EXPECT_EQ(bench.finish(probe).error(), Errc::cancelled);
  ASSERT_LT(probe.sent, size);
  // The stream goes on where the part ended.
  SendProbe& rest = bench.send(client, "and then this");
  const std::string expected = sent.substr(0, probe.sent) + "and then this";
  EXPECT_TRUE(bench.read(server, expected.size()) == expected);
  EXPECT_TRUE(bench.finish(rest).succeeded());
}

// A small send that the kernel could take at any moment is cancelled at any moment.
void cancelling_races_with_a_send(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  std::string sent;
  for (int round = 0; round < 200; ++round) {
    const std::string text = pattern(1000, static_cast<std::uint64_t>(round));
    SendProbe& probe = bench.send_pieces(client, {text.substr(0, 300), text.substr(300)});
    if (round % 3 == 0) bench.turn();
    bench.cancel(probe);
    bench.finish(probe);
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      EXPECT_LT(probe.sent, text.size());
    } else {
      EXPECT_EQ(probe.sent, text.size());
    }
    sent += text.substr(0, probe.sent);
    if (sent.size() > 50'000) {
      EXPECT_TRUE(bench.read(server, sent.size()) == sent);
      sent.clear();
    }
  }
  bench.write(client, "end");
  EXPECT_TRUE(bench.read(server, sent.size() + 3) == sent + "end");
}

void receiving_and_sending_are_cancelled_apart(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& receiving = bench.receive(client);
  SendProbe& sending = bench.send(client, pattern(20'000'000, 2));
  ASSERT_TRUE(bench.until([&] { return sending.sent > 0; }));
  bench.cancel(sending);
  EXPECT_EQ(bench.finish(sending).error(), Errc::cancelled);
  EXPECT_EQ(receiving.state(), Operation::State::pending);
  bench.write(server, "to you");
  EXPECT_EQ(bench.finish(receiving).buffer.text(), "to you");
}

void a_cancelled_accept_loses_no_connection(ContractBench& bench) {
  Socket& listener = bench.listen();
  AcceptProbe& cancelled = bench.accept(listener);
  bench.settle();
  bench.cancel(cancelled);
  EXPECT_EQ(bench.finish(cancelled).error(), Errc::cancelled);
  EXPECT_FALSE(cancelled.accepted);
  const os::Address address = bench.address_of(listener);
  Socket& client = bench.open(address);
  ASSERT_TRUE(bench.finish(bench.start_connect(client, address)).succeeded());
  bench.settle();
  Socket& server = bench.accept_one(listener);
  bench.write(client, "in");
  EXPECT_EQ(bench.read(server, 2), "in");
}

void cancelling_races_with_connections(ContractBench& bench) {
  constexpr unsigned char rounds = 60;
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  std::vector<Socket*> accepted;
  const auto take = [&](AcceptProbe& probe) {
    if (probe.error()) {
      EXPECT_EQ(probe.error(), Errc::cancelled);
      EXPECT_FALSE(probe.accepted);
    } else {
      accepted.push_back(&bench.adopt(std::move(probe.accepted)));
    }
  };
  for (unsigned char round = 0; round < rounds; ++round) {
    AcceptProbe& probe = bench.accept(listener);
    if (round % 4 == 0) bench.cancel(probe);
    Socket& client = bench.open(address);
    ConnectProbe& connect = bench.start_connect(client, address);
    if (round % 2 == 0) bench.turn();
    bench.cancel(probe);
    take(bench.finish(probe));
    ASSERT_TRUE(bench.finish(connect).succeeded());
    bench.write(client, std::string(1, static_cast<char>(round)));
  }
  while (accepted.size() < rounds) accepted.push_back(&bench.accept_one(listener));
  std::set<std::string> heard;
  for (Socket* each : accepted) heard.insert(bench.read(*each, 1));
  EXPECT_EQ(heard.size(), rounds) << "each connection is accepted once";
}

void a_connect_can_be_cancelled_at_once(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  for (int round = 0; round < 20; ++round) {
    Socket& client = bench.open(address);
    ConnectProbe& connect = bench.start_connect(client, address);
    if (round % 2 == 1) bench.turn();
    bench.cancel(connect);
    bench.finish(connect);
    if (connect.error()) {
      EXPECT_EQ(connect.error(), Errc::cancelled);
    }
    bench.close(client);
  }
}

// A listener whose queue is full leaves handshakes unanswered.
void an_unanswered_connect_can_be_cancelled(ContractBench& bench) {
  Socket& listener = bench.listen(os::Address::loopback(0), {.backlog = 0});
  const os::Address address = bench.address_of(listener);
  std::vector<ConnectProbe*> connects;
  for (int i = 0; i < 6; ++i) {
    connects.push_back(&bench.start_connect(bench.open(address), address));
  }
  bench.settle();
  int cancelled = 0;
  for (ConnectProbe* each : connects) {
    bench.cancel(*each);
    bench.finish(*each);
    if (each->error() == Errc::cancelled) ++cancelled;
  }
  EXPECT_GE(cancelled, 1);
}

void a_cancelled_socket_can_be_closed_at_once(ContractBench& bench) {
  for (int round = 0; round < 50; ++round) {
    const auto [client, server] = bench.connect();
    ReceiveProbe& receiving = bench.receive(server);
    SendProbe& sending = bench.send(server, pattern(10'000'000, 5));
    bench.write(client, "unread");
    bench.cancel(receiving);
    bench.cancel(sending);
    bench.finish(receiving);
    bench.finish(sending);
    bench.close(server);
    bench.close(client);
  }
}

}  // namespace

std::vector<ContractClause> contract_of_cancelling() {
  return {
      {"a_cancelled_receive_loses_nothing", a_cancelled_receive_loses_nothing},
      {"cancelling_races_with_bytes", cancelling_races_with_bytes},
      {"cancelling_what_is_not_pending_does_nothing", cancelling_what_is_not_pending_does_nothing},
      {"completion_beats_cancellation", completion_beats_cancellation},
      {"a_cancelled_send_tells_its_part", a_cancelled_send_tells_its_part},
      {"cancelling_races_with_a_send", cancelling_races_with_a_send},
      {"receiving_and_sending_are_cancelled_apart", receiving_and_sending_are_cancelled_apart},
      {"a_cancelled_accept_loses_no_connection", a_cancelled_accept_loses_no_connection},
      {"cancelling_races_with_connections", cancelling_races_with_connections},
      {"a_connect_can_be_cancelled_at_once", a_connect_can_be_cancelled_at_once},
      {"an_unanswered_connect_can_be_cancelled", an_unanswered_connect_can_be_cancelled},
      {"a_cancelled_socket_can_be_closed_at_once", a_cancelled_socket_can_be_closed_at_once},
  };
}

}  // namespace weir
