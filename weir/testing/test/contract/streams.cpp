// Contract of receiving and sending on healthy connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

MutableBytes room_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

void receives_into_a_lent_buffer(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& before = fixture.receive(server);
  EXPECT_FALSE(before.done());
  EXPECT_EQ(before.state(), loop::Operation::State::pending);
  EXPECT_EQ(before.socket(), &server);
  fixture.write(client, "first");
  fixture.finish(before);
  EXPECT_TRUE(before.succeeded());
  EXPECT_EQ(before.buffer.text(), "first");

  fixture.write(client, "second");
  fixture.settle();
  ReceiveProbe& late = fixture.finish(fixture.receive(server));
  EXPECT_EQ(late.buffer.text(), "second");
  EXPECT_EQ(before.buffer.text(),
            "first");  // a lent buffer stays valid until the receiver drops it
}

void receives_into_a_span(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  std::string small(4, '-');
  ReceiveProbe& before = fixture.receive(server, room_of(small));
  fixture.write(client, "abcdefghij");
  fixture.finish(before);
  ASSERT_TRUE(before.succeeded());
  EXPECT_FALSE(before.buffer.owns_memory());
  std::string got = small.substr(0, before.count);
  EXPECT_GE(before.count, 1u);
  while (got.size() < 10) {
    std::string next(3, '-');
    ReceiveProbe& received = fixture.finish(fixture.receive(server, room_of(next)));
    ASSERT_TRUE(received.succeeded());
    ASSERT_GE(received.count, 1u);
    ASSERT_LE(received.count, 3u);
    got += next.substr(0, received.count);
  }
  EXPECT_EQ(got, "abcdefghij");
}

void spans_and_lent_buffers_may_alternate(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const std::string sent = pattern(50'000, 1);
  SendProbe& sending = fixture.send(client, sent);
  std::string got;
  for (bool lent = false; got.size() < sent.size(); lent = !lent) {
    std::string span(777, '-');
    ReceiveProbe& received =
        fixture.finish(lent ? fixture.receive(server) : fixture.receive(server, room_of(span)));
    ASSERT_TRUE(received.succeeded()) << received.error().message();
    got += lent ? std::string(received.buffer.text()) : span.substr(0, received.count);
    received.buffer = {};
  }
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(fixture.finish(sending).succeeded());
}

void large_transfers_go_both_ways_at_the_same_time(ContractFixture& fixture) {
  constexpr std::size_t size = 10'000'000;
  const auto [client, server] = fixture.connect();
  const std::array<std::string, 2> sent = {pattern(size, 1), pattern(size, 2)};
  const std::array<loop::Socket*, 2> from = {&client, &server};
  const std::array<loop::Socket*, 2> to = {&server, &client};
  std::array<std::string, 2> got;
  std::array<SendProbe*, 2> sends{};
  std::array<ReceiveProbe*, 2> receives{};
  for (std::size_t way = 0; way < 2; ++way) sends[way] = &fixture.send(*from[way], sent[way]);
  EXPECT_FALSE(sends[0]->done()) << "no buffer has room for 10 MB without a reader";
  for (std::size_t way = 0; way < 2; ++way) receives[way] = &fixture.receive(*to[way]);
  // Takes the data of one direction. Returns true if all data has arrived, or a receive has
  // failed.
  const auto take = [&](std::size_t way) {
    while (receives[way]->succeeded() && got[way].size() < size) {
      got[way] += receives[way]->buffer.text();
      receives[way]->buffer = {};
      if (got[way].size() < size) receives[way] = &fixture.receive(*to[way]);
    }
    return receives[way]->done();
  };
  EXPECT_TRUE(fixture.until([&] { return take(0) & take(1); }));
  for (std::size_t way = 0; way < 2; ++way) {
    EXPECT_TRUE(got[way] == sent[way]) << got[way].size() << " of " << size << " bytes";
    EXPECT_TRUE(fixture.finish(*sends[way]).succeeded());
    EXPECT_EQ(sends[way]->sent, size);
  }
  EXPECT_GE(fixture.backend().counters().bytes_received.value(), 2 * size);
  EXPECT_GE(fixture.backend().counters().bytes_sent.value(), 2 * size);
}

// The number of pieces exceeds that of one system call (IOV_MAX is 1024). Some pieces are empty.
void sends_many_pieces_in_order(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  std::vector<std::string> pieces;
  std::string whole;
  for (std::size_t i = 0; i < 5000; ++i) {
    pieces.push_back(pattern(i % 5 == 0 ? 0 : i % 617, i));
    whole += pieces.back();
  }
  SendProbe& sending = fixture.send_pieces(client, std::move(pieces));
  EXPECT_TRUE(fixture.read(server, whole.size()) == whole);
  EXPECT_TRUE(fixture.finish(sending).succeeded());
  EXPECT_EQ(sending.sent, whole.size());
}

void an_empty_send_succeeds(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  EXPECT_TRUE(fixture.finish(fixture.send_pieces(client, {})).succeeded());
  SendProbe& empty = fixture.finish(fixture.send_pieces(client, {"", "", ""}));
  EXPECT_TRUE(empty.succeeded());
  EXPECT_EQ(empty.sent, 0u);
  fixture.write(client, "still fine");
  EXPECT_EQ(fixture.read(server, 10), "still fine");
}

void a_pending_send_reports_its_progress(ContractFixture& fixture) {
  constexpr std::size_t size = 20'000'000;
  const auto [client, server] = fixture.connect();
  const std::string sent = pattern(size, 3);
  SendProbe& sending = fixture.send(client, sent);
  ASSERT_TRUE(fixture.until([&] { return sending.sent > 0; }));
  EXPECT_FALSE(sending.done());
  const std::size_t early = sending.sent;
  EXPECT_LT(early, size);
  std::string got;
  while (got.size() < size) {
    ReceiveProbe& received = fixture.finish(fixture.receive(server));
    ASSERT_TRUE(received.succeeded());
    got += received.buffer.text();
    received.buffer = {};
    ASSERT_LE(got.size(), size);
  }
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(fixture.finish(sending).succeeded());
  EXPECT_EQ(sending.sent, size);
}

// Partial sends alternate with one that waits. The bytes keep their order.
void a_partial_send_never_waits(ContractFixture& fixture) {
  constexpr std::size_t size = 20'000'000;
  const auto [client, server] = fixture.connect();
  const std::string sent = pattern(size, 4);
  std::string got;
  ReceiveProbe* receiving = &fixture.receive(server);
  const auto take = [&, &from = server] {
    for (; receiving->succeeded(); receiving = &fixture.receive(from)) {
      got += receiving->buffer.text();
      receiving->buffer = {};
    }
  };
  for (std::size_t taken = 0; taken < size;) {
    SendProbe probe;
    const Bytes rest = to_bytes(sent).subspan(taken);
    const std::array pieces{Bytes(), rest.first(rest.size() / 2), rest.subspan(rest.size() / 2)};
    probe.pieces = pieces;
    probe.partial = true;
    start(fixture.backend(), client, probe);
    ASSERT_TRUE(probe.succeeded()) << probe.error().message();
    taken += probe.sent;
    const std::size_t next = std::min<std::size_t>(size - taken, 1000);
    SendProbe& waiting = fixture.send(client, sent.substr(taken, next));
    taken += next;
    ASSERT_TRUE(fixture.until([&] { return take(), waiting.done(); }));
    ASSERT_TRUE(waiting.succeeded());
  }
  EXPECT_TRUE(fixture.until([&] { return take(), got.size() >= size; }));
  EXPECT_TRUE(got == sent);
}

// Each operation is started in the callback of the previous one, as coroutines do.
void an_operation_can_start_the_next_one(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  constexpr int rounds = 2000;
  int echoed = 0;
  int answered = 0;
  ReceiveProbe at_server, at_client;
  SendProbe from_server, from_client;
  const Bytes ping = to_bytes("ping");
  Bytes echo;
  loop::Backend& backend = fixture.backend();
  from_client.pieces = {&ping, 1};
  from_client.then = [&, &to = client] { start(backend, to, at_client); };
  at_server.then = [&, &to = server] {
    if (at_server.error()) return;
    echo = at_server.buffer.bytes();
    from_server.pieces = {&echo, 1};
    start(backend, to, from_server);
  };
  // An operation that finishes immediately calls `then` inside its start. The ready queue ends
  // this recursion.
  CallProbe again([&, &from = client] { start(backend, from, from_client); });
  CallProbe listen_again([&, &from = server] { start(backend, from, at_server); });
  from_server.then = [&] {
    ++echoed;
    fixture.loop().ready(listen_again);
  };
  at_client.then = [&] {
    EXPECT_EQ(at_client.buffer.text(), "ping");
    if (++answered < rounds) fixture.loop().ready(again);
  };
  start(backend, server, at_server);
  start(backend, client, from_client);
  EXPECT_TRUE(fixture.until([&] { return answered == rounds && echoed == rounds; }));
  EXPECT_EQ(answered, rounds);
  for (loop::Operation* each : std::initializer_list<loop::Operation*>{
           &at_server, &at_client, &from_server, &from_client}) {
    fixture.cancel(*each);
  }
  EXPECT_TRUE(fixture.until([&] {
    return at_server.at_rest() && at_client.at_rest() && from_server.at_rest() &&
           from_client.at_rest();
  }));
}

void two_loops_exchange_data(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  fixture.use(fixture.other_loop());
  loop::Socket& client = fixture.open(address);
  ConnectProbe& connect = fixture.finish(fixture.start_connect(client, address));
  ASSERT_TRUE(connect.succeeded());
  fixture.use(fixture.loop());
  loop::Socket& server = fixture.accept_one(listener);
  const std::string sent = pattern(1'000'000, 4);
  SendProbe& sending = fixture.send(client, sent);
  EXPECT_TRUE(fixture.read(server, sent.size()) == sent);
  fixture.finish(sending);
  fixture.write(server, "thanks");
  EXPECT_EQ(fixture.read(client, 6), "thanks");
}

}  // namespace

std::vector<ContractClause> contract_of_streams() {
  return {
      {"receives_into_a_lent_buffer", receives_into_a_lent_buffer},
      {"receives_into_a_span", receives_into_a_span},
      {"spans_and_lent_buffers_may_alternate", spans_and_lent_buffers_may_alternate},
      {"large_transfers_go_both_ways_at_the_same_time",
       large_transfers_go_both_ways_at_the_same_time},
      {"sends_many_pieces_in_order", sends_many_pieces_in_order},
      {"an_empty_send_succeeds", an_empty_send_succeeds},
      {"a_pending_send_reports_its_progress", a_pending_send_reports_its_progress},
      {"a_partial_send_never_waits", a_partial_send_never_waits},
      {"an_operation_can_start_the_next_one", an_operation_can_start_the_next_one},
      {"two_loops_exchange_data", two_loops_exchange_data},
  };
}

}  // namespace weir
