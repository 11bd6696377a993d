// Contract: what sockets hold while they are idle, paused, closed, or very many.
#include <gtest/gtest.h>

#include <algorithm>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

constexpr std::size_t buffer = Buffer::default_capacity;

// The first exchange makes whatever a backend makes once.
void warm_up(ContractBench& bench) {
  bench.settle();
  bench.settle();
}

void idle_sockets_hold_no_buffer(ContractBench& bench) {
  constexpr std::size_t count = 100;
  warm_up(bench);
  Socket& listener = bench.listen();
  std::vector<ContractBench::Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(bench.connect_to(listener));
  const std::size_t before = bench.loop().blocks().blocks_in_use();
  for (const auto& [client, server] : pairs) {
    bench.write(client, "question");
    EXPECT_EQ(bench.read(server, 8), "question");
    bench.write(server, "answer");
    EXPECT_EQ(bench.read(client, 6), "answer");
  }
  std::vector<ReceiveProbe*> idle;
  for (const auto& [client, server] : pairs) idle.push_back(&bench.receive(server));
  bench.settle();
  EXPECT_LE(bench.loop().blocks().blocks_in_use(), before + 4);
  for (ReceiveProbe* each : idle) EXPECT_FALSE(each->done());
}

// The peer writes 8 MB and nobody reads; the backend may not take much more than its budget.
void unread_bytes_are_bounded_and_come_in_the_end(ContractBench& bench, std::size_t unread_max) {
  constexpr std::size_t size = 8'000'000;
  warm_up(bench);
  const auto [client, server] = bench.connect({.unread_max = unread_max});
  bench.write(client, "begin");
  EXPECT_EQ(bench.read(server, 5), "begin");
  const std::size_t before = bench.loop().blocks().blocks_in_use();
  const std::string sent = pattern(size, 1);
  SendProbe& sending = bench.send(client, sent);
  for (int i = 0; i < 10; ++i) bench.settle();
  const std::size_t held = bench.loop().blocks().blocks_in_use() - before;
  EXPECT_LE(held, (unread_max + bench.unread_overshoot()) / buffer)
      << "of " << size / buffer << " buffers";
  EXPECT_TRUE(bench.read(server, size) == sent);
  EXPECT_TRUE(bench.finish(sending).succeeded());
  bench.write(client, "more");
  EXPECT_EQ(bench.read(server, 4), "more");
}

void unread_bytes_are_bounded(ContractBench& bench) {
  unread_bytes_are_bounded_and_come_in_the_end(bench, SocketOptions{}.unread_max);
}
void a_small_budget_is_kept_too(ContractBench& bench) {
  unread_bytes_are_bounded_and_come_in_the_end(bench, 1000);
}

// Reading pauses and resumes many times, in small steps, with many small writes in between.
void a_slow_reader_gets_everything(ContractBench& bench) {
  const auto [client, server] = bench.connect({.unread_max = 4096});
  std::string sent;
  std::string got;
  for (int round = 0; round < 100; ++round) {
    const std::string text = pattern(1500, static_cast<std::uint64_t>(round));
    bench.write(client, text);
    sent += text;
    std::string room(1000, '-');
    ReceiveProbe& received = bench.finish(
        bench.receive(server, {reinterpret_cast<std::byte*>(room.data()), room.size()}));
    ASSERT_TRUE(received.succeeded());
    got += room.substr(0, received.count);
  }
  got += bench.read(server, sent.size() - got.size());
  EXPECT_TRUE(got == sent);
}

void closing_drops_unread_bytes(ContractBench& bench) {
  warm_up(bench);
  const std::size_t before = bench.loop().blocks().blocks_in_use();
  for (int round = 0; round < 20; ++round) {
    const auto [client, server] = bench.connect();
    bench.write(client, "read");
    EXPECT_EQ(bench.read(server, 4), "read");
    bench.write(client, pattern(50'000, 1));
    bench.settle();
    bench.close(server);
    bench.close(client);
  }
  bench.settle();
  EXPECT_LE(bench.loop().blocks().blocks_in_use(), before + 4);
}

// The number of a closed descriptor is used again at once; what was under way on the old socket
// must not reach the new one.
void a_reused_descriptor_starts_clean(ContractBench& bench) {
  Socket& listener = bench.listen();
  const os::Address address = bench.address_of(listener);
  int reused = 0;
  for (int round = 0; round < 150; ++round) {
    const auto [client, server] = bench.connect_to(listener);
    const HangupProbe& old_watcher = bench.watch(server);
    ReceiveProbe& receiving = bench.receive(server);
    bench.cancel(receiving);
    if (round % 2 == 0) bench.finish(receiving);
    bench.write(client, "old");
    bench.finish(receiving);
    const int number = server.descriptor;
    bench.close(server);
    if (round % 5 == 0) bench.turn();  // a backend may close with the next submission only
    Socket& fresh = bench.open(address);
    reused += fresh.descriptor == number;
    const HangupProbe& new_watcher = bench.watch(fresh);
    ConnectProbe& connect = bench.start_connect(fresh, address);
    if (round % 3 == 0) bench.reset(client);
    ASSERT_TRUE(bench.finish(connect).succeeded()) << connect.error().message();
    Socket& peer = bench.accept_one(listener);
    ReceiveProbe& probe = bench.receive(fresh);
    bench.write(peer, "new");
    ASSERT_TRUE(bench.finish(probe).succeeded()) << probe.error().message();
    EXPECT_EQ(probe.buffer.text(), "new");
    EXPECT_EQ(old_watcher.calls + new_watcher.calls, 0);
    bench.close(fresh);
    bench.close(peer);
    if (round % 3 != 0) bench.close(client);
  }
  EXPECT_GT(reused, 0) << "the test has not met its case";
}

void thousands_of_sockets_are_served(ContractBench& bench) {
  const std::size_t may_open = bench.host().descriptor_limit().descriptors_max;
  const std::size_t count = std::min<std::size_t>(2000, (may_open - 100) / 2);
  Socket& listener = bench.listen();
  std::vector<ContractBench::Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(bench.connect_to(listener));
  std::vector<ReceiveProbe*> receives;
  for (const auto& [client, server] : pairs) receives.push_back(&bench.receive(server));
  for (std::size_t i = 0; i < count; ++i) bench.write(pairs[i].client, std::to_string(i));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(bench.finish(*receives[i]).succeeded());
    EXPECT_EQ(receives[i]->buffer.text(), std::to_string(i));
    receives[i]->buffer = {};
  }
  // All leave at once.
  for (std::size_t i = 0; i < count; ++i) receives[i] = &bench.receive(pairs[i].server);
  for (const auto& [client, server] : pairs) bench.close(client);
  for (ReceiveProbe* each : receives) {
    EXPECT_EQ(bench.finish(*each).error(), Errc::end_of_stream);
  }
}

}  // namespace

std::vector<ContractClause> contract_of_memory() {
  return {
      {"idle_sockets_hold_no_buffer", idle_sockets_hold_no_buffer},
      {"unread_bytes_are_bounded", unread_bytes_are_bounded},
      {"a_small_budget_is_kept_too", a_small_budget_is_kept_too},
      {"a_slow_reader_gets_everything", a_slow_reader_gets_everything},
      {"closing_drops_unread_bytes", closing_drops_unread_bytes},
      {"a_reused_descriptor_starts_clean", a_reused_descriptor_starts_clean},
      {"thousands_of_sockets_are_served", thousands_of_sockets_are_served},
  };
}

}  // namespace weir
