// Contract: who watches a connection learns that it is dead, and only then.
#include <gtest/gtest.h>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void a_reset_is_told_once(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const HangupProbe& watcher = bench.watch(server);
  bench.settle();
  EXPECT_EQ(watcher.calls, 0);
  bench.reset(client);
  EXPECT_TRUE(bench.until([&] { return watcher.calls > 0; }));
  bench.finish(bench.receive(server));
  bench.settle();
  EXPECT_EQ(watcher.calls, 1);
}

void a_half_close_is_not_told(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const HangupProbe& at_server = bench.watch(server);
  const HangupProbe& at_client = bench.watch(client);
  ASSERT_TRUE(bench.backend().shut_down_sending(client));
  EXPECT_EQ(bench.read_all(server), "");
  bench.write(server, "still here");
  EXPECT_EQ(bench.read(client, 10), "still here");
  bench.settle();
  EXPECT_EQ(at_server.calls, 0);
  EXPECT_EQ(at_client.calls, 0);

  ASSERT_TRUE(bench.backend().shut_down_sending(server));
  EXPECT_TRUE(bench.until([&] { return at_server.calls == 1 && at_client.calls == 1; }));
  bench.settle();
  EXPECT_EQ(at_client.calls, 1);
  bench.close(client);
  bench.settle();
  EXPECT_EQ(at_server.calls, 1);
}

void a_close_behind_the_own_end_is_told(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const HangupProbe& watcher = bench.watch(server);
  ASSERT_TRUE(bench.backend().shut_down_sending(server));
  bench.close(client);
  EXPECT_TRUE(bench.until([&] { return watcher.calls == 1; }));
}

void it_is_told_also_after_the_fact(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& pending = bench.receive(server);
  bench.reset(client);
  bench.finish(pending);
  bench.settle();
  const HangupProbe& known = bench.watch(server);
  EXPECT_EQ(known.calls, 1) << "a death that was reported is told inside watch()";

  const auto [quiet, unseen] = bench.connect();
  bench.reset(quiet);
  bench.settle();
  const HangupProbe& late = bench.watch(unseen);
  EXPECT_TRUE(bench.until([&] { return late.calls == 1; }));
}

void it_is_told_while_reading_pauses(ContractBench& bench) {
  constexpr std::size_t size = 1'000'000;
  const auto [client, server] = bench.connect();
  bench.write(client, "begin");
  EXPECT_EQ(bench.read(server, 5), "begin");
  const HangupProbe& watcher = bench.watch(server);
  SendProbe& sending = bench.send(client, pattern(size, 1));
  for (int i = 0; i < 3; ++i) bench.settle();
  EXPECT_EQ(watcher.calls, 0);
  bench.cancel(sending);
  bench.finish(sending);
  bench.reset(client);
  EXPECT_TRUE(bench.until([&] { return watcher.calls == 1; }));
}

void it_is_told_while_a_send_waits(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const HangupProbe& watcher = bench.watch(server);
  SendProbe& sending = bench.send(server, pattern(20'000'000, 2));
  bench.settle();
  EXPECT_EQ(watcher.calls, 0);
  bench.reset(client);
  EXPECT_TRUE(bench.until([&] { return watcher.calls == 1; }));
  EXPECT_TRUE(bench.finish(sending).error());
}

void only_the_present_watcher_is_told(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const HangupProbe& replaced = bench.watch(server);
  const HangupProbe& present = bench.watch(server);
  const auto [other_client, other_server] = bench.connect();
  const HangupProbe& removed = bench.watch(other_server);
  bench.backend().watch(other_server, nullptr);
  const auto [third_client, third_server] = bench.connect();
  const HangupProbe& closed = bench.watch(third_server);
  bench.close(third_server);
  bench.reset(client);
  bench.reset(other_client);
  EXPECT_TRUE(bench.until([&] { return present.calls == 1; }));
  bench.settle();
  EXPECT_EQ(present.calls, 1);
  EXPECT_EQ(replaced.calls, 0);
  EXPECT_EQ(removed.calls, 0);
  EXPECT_EQ(closed.calls, 0);
}

}  // namespace

std::vector<ContractClause> contract_of_hangups() {
  return {
      {"a_reset_is_told_once", a_reset_is_told_once},
      {"a_half_close_is_not_told", a_half_close_is_not_told},
      {"a_close_behind_the_own_end_is_told", a_close_behind_the_own_end_is_told},
      {"a_hang_up_is_told_also_after_the_fact", it_is_told_also_after_the_fact},
      {"a_hang_up_is_told_while_reading_pauses", it_is_told_while_reading_pauses},
      {"a_hang_up_is_told_while_a_send_waits", it_is_told_while_a_send_waits},
      {"only_the_present_watcher_is_told", only_the_present_watcher_is_told},
  };
}

}  // namespace weir
