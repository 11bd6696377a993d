// Contract: receiving and sending bytes while both sides are well.
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

MutableBytes room_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

void receives_into_a_lent_buffer(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& before = bench.receive(server);
  EXPECT_FALSE(before.done());
  EXPECT_EQ(before.state(), Operation::State::pending);
  EXPECT_EQ(before.socket(), &server);
  bench.write(client, "first");
  bench.finish(before);
  EXPECT_TRUE(before.succeeded());
  EXPECT_EQ(before.buffer.text(), "first");

  bench.write(client, "second");
  bench.settle();
  ReceiveProbe& late = bench.finish(bench.receive(server));
  EXPECT_EQ(late.buffer.text(), "second");
  EXPECT_EQ(before.buffer.text(), "first");  // a lent buffer is the receiver's to keep
}

void receives_into_a_span(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  std::string small(4, '-');
  ReceiveProbe& before = bench.receive(server, room_of(small));
  bench.write(client, "abcdefghij");
  bench.finish(before);
  ASSERT_TRUE(before.succeeded());
  EXPECT_FALSE(before.buffer.owns_memory());
  std::string got = small.substr(0, before.count);
  EXPECT_GE(before.count, 1u);
  while (got.size() < 10) {
    std::string next(3, '-');
    ReceiveProbe& received = bench.finish(bench.receive(server, room_of(next)));
    ASSERT_TRUE(received.succeeded());
    ASSERT_GE(received.count, 1u);
    ASSERT_LE(received.count, 3u);
    got += next.substr(0, received.count);
  }
  EXPECT_EQ(got, "abcdefghij");
}

void spans_and_lent_buffers_may_alternate(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const std::string sent = pattern(50'000, 1);
  SendProbe& sending = bench.send(client, sent);
  std::string got;
  for (bool lent = false; got.size() < sent.size(); lent = !lent) {
    std::string span(777, '-');
    ReceiveProbe& received =
        bench.finish(lent ? bench.receive(server) : bench.receive(server, room_of(span)));
    ASSERT_TRUE(received.succeeded()) << received.error().message();
    got += lent ? std::string(received.buffer.text()) : span.substr(0, received.count);
    received.buffer = {};
  }
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(bench.finish(sending).succeeded());
}

void large_transfers_go_both_ways_at_once(ContractBench& bench) {
  constexpr std::size_t size = 10'000'000;
  const auto [client, server] = bench.connect();
  const std::array<std::string, 2> sent = {pattern(size, 1), pattern(size, 2)};
  const std::array<Socket*, 2> from = {&client, &server};
  const std::array<Socket*, 2> to = {&server, &client};
  std::array<std::string, 2> got;
  std::array<SendProbe*, 2> sends{};
  std::array<ReceiveProbe*, 2> receives{};
  for (std::size_t way = 0; way < 2; ++way) sends[way] = &bench.send(*from[way], sent[way]);
  EXPECT_FALSE(sends[0]->done()) << "10 MB without a reader do not fit anywhere";
  for (std::size_t way = 0; way < 2; ++way) receives[way] = &bench.receive(*to[way]);
  // Takes what one direction has received; whether that is all, or has failed.
  const auto take = [&](std::size_t way) {
    while (receives[way]->succeeded() && got[way].size() < size) {
      got[way] += receives[way]->buffer.text();
      receives[way]->buffer = {};
      if (got[way].size() < size) receives[way] = &bench.receive(*to[way]);
    }
    return receives[way]->done();
  };
  EXPECT_TRUE(bench.until([&] { return take(0) & take(1); }));
  for (std::size_t way = 0; way < 2; ++way) {
    EXPECT_TRUE(got[way] == sent[way]) << got[way].size() << " of " << size << " bytes";
    EXPECT_TRUE(bench.finish(*sends[way]).succeeded());
    EXPECT_EQ(sends[way]->sent, size);
  }
  EXPECT_GE(bench.backend().counters().bytes_received.value(), 2 * size);
  EXPECT_GE(bench.backend().counters().bytes_sent.value(), 2 * size);
}

// More pieces than one system call takes (IOV_MAX is 1024), of all sizes, empty ones among them.
void sends_many_pieces_in_order(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  std::vector<std::string> pieces;
  std::string whole;
  for (std::size_t i = 0; i < 5000; ++i) {
    pieces.push_back(pattern(i % 5 == 0 ? 0 : i % 617, i));
    whole += pieces.back();
  }
  SendProbe& sending = bench.send_pieces(client, std::move(pieces));
  EXPECT_TRUE(bench.read(server, whole.size()) == whole);
  EXPECT_TRUE(bench.finish(sending).succeeded());
  EXPECT_EQ(sending.sent, whole.size());
}

void sends_nothing_successfully(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  EXPECT_TRUE(bench.finish(bench.send_pieces(client, {})).succeeded());
  SendProbe& empty = bench.finish(bench.send_pieces(client, {"", "", ""}));
  EXPECT_TRUE(empty.succeeded());
  EXPECT_EQ(empty.sent, 0u);
  bench.write(client, "still fine");
  EXPECT_EQ(bench.read(server, 10), "still fine");
}

void a_pending_send_tells_its_progress(ContractBench& bench) {
  constexpr std::size_t size = 20'000'000;
  const auto [client, server] = bench.connect();
  const std::string sent = pattern(size, 3);
  SendProbe& sending = bench.send(client, sent);
  ASSERT_TRUE(bench.until([&] { return sending.sent > 0; }));
  EXPECT_FALSE(sending.done());
  const std::size_t early = sending.sent;
  EXPECT_LT(early, size);
  std::string got;
  while (got.size() < size) {
    ReceiveProbe& received = bench.finish(bench.receive(server));
    ASSERT_TRUE(received.succeeded());
    got += received.buffer.text();
    received.buffer = {};
    ASSERT_LE(got.size(), size);
  }
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(bench.finish(sending).succeeded());
  EXPECT_EQ(sending.sent, size);
}

// Everything is started from within what finished before, as coroutines do.
void operations_start_the_next_ones(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  constexpr int rounds = 2000;
  int echoed = 0;
  int answered = 0;
  ReceiveProbe at_server, at_client;
  SendProbe from_server, from_client;
  const Bytes ping = to_bytes("ping");
  Bytes echo;
  Backend& backend = bench.backend();
  from_client.pieces = {&ping, 1};
  from_client.then = [&, &to = client] { start(backend, to, at_client); };
  at_server.then = [&, &to = server] {
    if (at_server.error()) return;
    echo = at_server.buffer.bytes();
    from_server.pieces = {&echo, 1};
    start(backend, to, from_server);
  };
  // An operation that finishes at once calls `then` inside its start: the queue breaks the chain.
  CallProbe again([&, &from = client] { start(backend, from, from_client); });
  CallProbe listen_again([&, &from = server] { start(backend, from, at_server); });
  from_server.then = [&] {
    ++echoed;
    bench.loop().ready(listen_again);
  };
  at_client.then = [&] {
    EXPECT_EQ(at_client.buffer.text(), "ping");
    if (++answered < rounds) bench.loop().ready(again);
  };
  start(backend, server, at_server);
  start(backend, client, from_client);
  EXPECT_TRUE(bench.until([&] { return answered == rounds && echoed == rounds; }));
  EXPECT_EQ(answered, rounds);
  for (Operation* each :
       std::initializer_list<Operation*>{&at_server, &at_client, &from_server, &from_client}) {
    bench.cancel(*each);
  }
  EXPECT_TRUE(bench.until([&] {
    return at_server.at_rest() && at_client.at_rest() && from_server.at_rest() &&
           from_client.at_rest();
  }));
}

void two_loops_talk(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  bench.use(bench.other_loop());
  Socket& client = bench.open(address);
  ConnectProbe& connect = bench.finish(bench.start_connect(client, address));
  ASSERT_TRUE(connect.succeeded());
  bench.use(bench.loop());
  Socket& server = bench.accept_one(listener);
  const std::string sent = pattern(1'000'000, 4);
  SendProbe& sending = bench.send(client, sent);
  EXPECT_TRUE(bench.read(server, sent.size()) == sent);
  bench.finish(sending);
  bench.write(server, "thanks");
  EXPECT_EQ(bench.read(client, 6), "thanks");
}

}  // namespace

std::vector<ContractClause> contract_of_streams() {
  return {
      {"receives_into_a_lent_buffer", receives_into_a_lent_buffer},
      {"receives_into_a_span", receives_into_a_span},
      {"spans_and_lent_buffers_may_alternate", spans_and_lent_buffers_may_alternate},
      {"large_transfers_go_both_ways_at_once", large_transfers_go_both_ways_at_once},
      {"sends_many_pieces_in_order", sends_many_pieces_in_order},
      {"sends_nothing_successfully", sends_nothing_successfully},
      {"a_pending_send_tells_its_progress", a_pending_send_tells_its_progress},
      {"operations_start_the_next_ones", operations_start_the_next_ones},
      {"two_loops_talk", two_loops_talk},
  };
}

}  // namespace weir
