// Contract of the memory of sockets that are idle, paused, closed, or very many.
#include <gtest/gtest.h>

#include <algorithm>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

constexpr std::size_t buffer = Buffer::default_capacity;

// The first exchange allocates everything that a backend allocates once.
void warm_up(ContractFixture& fixture) {
  fixture.settle();
  fixture.settle();
}

void idle_sockets_hold_no_buffer(ContractFixture& fixture) {
  constexpr std::size_t count = 100;
  warm_up(fixture);
  loop::Socket& listener = fixture.listen();
  std::vector<ContractFixture::Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(fixture.connect_to(listener));
  const std::size_t before = fixture.loop().blocks().blocks_in_use();
  for (const auto& [client, server] : pairs) {
    fixture.write(client, "question");
    EXPECT_EQ(fixture.read(server, 8), "question");
    fixture.write(server, "answer");
    EXPECT_EQ(fixture.read(client, 6), "answer");
  }
  std::vector<ReceiveProbe*> idle;
  for (const auto& [client, server] : pairs) idle.push_back(&fixture.receive(server));
  fixture.settle();
  EXPECT_LE(fixture.loop().blocks().blocks_in_use(), before + 4);
  for (ReceiveProbe* each : idle) EXPECT_FALSE(each->done());
}

// The peer writes 8 MB without a reader. The backend may read only a little more than its budget.
void check_unread_bytes(ContractFixture& fixture, std::size_t unread_max) {
  constexpr std::size_t size = 8'000'000;
  warm_up(fixture);
  const auto [client, server] = fixture.connect({.unread_max = unread_max});
  fixture.write(client, "begin");
  EXPECT_EQ(fixture.read(server, 5), "begin");
  const std::size_t before = fixture.loop().blocks().blocks_in_use();
  const std::string sent = pattern(size, 1);
  SendProbe& sending = fixture.send(client, sent);
  for (int i = 0; i < 10; ++i) fixture.settle();
  const std::size_t held = fixture.loop().blocks().blocks_in_use() - before;
  EXPECT_LE(held, (unread_max + fixture.unread_overshoot()) / buffer)
      << "of " << size / buffer << " buffers";
  EXPECT_TRUE(fixture.read(server, size) == sent);
  EXPECT_TRUE(fixture.finish(sending).succeeded());
  fixture.write(client, "more");
  EXPECT_EQ(fixture.read(server, 4), "more");
}

void unread_bytes_are_bounded(ContractFixture& fixture) {
  check_unread_bytes(fixture, loop::SocketOptions{}.unread_max);
}
void a_small_unread_max_is_respected(ContractFixture& fixture) {
  check_unread_bytes(fixture, 1000);
}

// Reading pauses and resumes many times, in small steps, between many small writes.
void a_slow_reader_gets_everything(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect({.unread_max = 4096});
  std::string sent;
  std::string got;
  for (int round = 0; round < 100; ++round) {
    const std::string text = pattern(1500, static_cast<std::uint64_t>(round));
    fixture.write(client, text);
    sent += text;
    std::string room(1000, '-');
    ReceiveProbe& received = fixture.finish(
        fixture.receive(server, {reinterpret_cast<std::byte*>(room.data()), room.size()}));
    ASSERT_TRUE(received.succeeded());
    got += room.substr(0, received.count);
  }
  got += fixture.read(server, sent.size() - got.size());
  EXPECT_TRUE(got == sent);
}

void closing_drops_unread_bytes(ContractFixture& fixture) {
  warm_up(fixture);
  const std::size_t before = fixture.loop().blocks().blocks_in_use();
  for (int round = 0; round < 20; ++round) {
    const auto [client, server] = fixture.connect();
    fixture.write(client, "read");
    EXPECT_EQ(fixture.read(server, 4), "read");
    fixture.write(client, pattern(50'000, 1));
    fixture.settle();
    fixture.close(server);
    fixture.close(client);
  }
  fixture.settle();
  EXPECT_LE(fixture.loop().blocks().blocks_in_use(), before + 4);
}

// The number of a closed descriptor is reused immediately. Operations of the old socket must not
// affect the new one.
void a_reused_descriptor_starts_clean(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen();
  const os::Address address = fixture.address_of(listener);
  int reused = 0;
  for (int round = 0; round < 150; ++round) {
    const auto [client, server] = fixture.connect_to(listener);
    const HangupProbe& old_watcher = fixture.observe_hangup(server);
    ReceiveProbe& receiving = fixture.receive(server);
    fixture.cancel(receiving);
    if (round % 2 == 0) fixture.finish(receiving);
    fixture.write(client, "old");
    fixture.finish(receiving);
    const int number = server.descriptor;
    fixture.close(server);
    if (round % 5 == 0) fixture.turn();  // a backend may delay the close until its next submission
    loop::Socket& fresh = fixture.open(address);
    reused += fresh.descriptor == number;
    const HangupProbe& new_watcher = fixture.observe_hangup(fresh);
    ConnectProbe& connect = fixture.start_connect(fresh, address);
    if (round % 3 == 0) fixture.reset(client);
    ASSERT_TRUE(fixture.finish(connect).succeeded()) << connect.error().message();
    loop::Socket& peer = fixture.accept_one(listener);
    ReceiveProbe& probe = fixture.receive(fresh);
    fixture.write(peer, "new");
    ASSERT_TRUE(fixture.finish(probe).succeeded()) << probe.error().message();
    EXPECT_EQ(probe.buffer.text(), "new");
    EXPECT_EQ(old_watcher.calls + new_watcher.calls, 0);
    fixture.close(fresh);
    fixture.close(peer);
    if (round % 3 != 0) fixture.close(client);
  }
  EXPECT_GT(reused, 0) << "no descriptor was reused, so the test has no effect";
}

void thousands_of_sockets_are_served(ContractFixture& fixture) {
  const std::size_t may_open = fixture.platform().descriptor_limit().descriptors_max;
  const std::size_t count = std::min<std::size_t>(2000, (may_open - 100) / 2);
  loop::Socket& listener = fixture.listen();
  std::vector<ContractFixture::Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(fixture.connect_to(listener));
  std::vector<ReceiveProbe*> receives;
  for (const auto& [client, server] : pairs) receives.push_back(&fixture.receive(server));
  for (std::size_t i = 0; i < count; ++i) fixture.write(pairs[i].client, std::to_string(i));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(fixture.finish(*receives[i]).succeeded());
    EXPECT_EQ(receives[i]->buffer.text(), std::to_string(i));
    receives[i]->buffer = {};
  }
  // All clients close at the same time.
  for (std::size_t i = 0; i < count; ++i) receives[i] = &fixture.receive(pairs[i].server);
  for (const auto& [client, server] : pairs) fixture.close(client);
  for (ReceiveProbe* each : receives) {
    EXPECT_EQ(fixture.finish(*each).error(), Errc::end_of_stream);
  }
}

}  // namespace

std::vector<ContractClause> contract_of_memory() {
  return {
      {"idle_sockets_hold_no_buffer", idle_sockets_hold_no_buffer},
      {"unread_bytes_are_bounded", unread_bytes_are_bounded},
      {"a_small_unread_max_is_respected", a_small_unread_max_is_respected},
      {"a_slow_reader_gets_everything", a_slow_reader_gets_everything},
      {"closing_drops_unread_bytes", closing_drops_unread_bytes},
      {"a_reused_descriptor_starts_clean", a_reused_descriptor_starts_clean},
      {"thousands_of_sockets_are_served", thousands_of_sockets_are_served},
  };
}

}  // namespace weir
