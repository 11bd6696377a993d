// Contract: the end of a stream, half-closed streams, and peers that are gone.
#include <gtest/gtest.h>

#include <cerrno>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

bool is_peer_gone(std::error_code error) {
  return error == system_error(EPIPE) || error == system_error(ECONNRESET);
}

void the_end_comes_behind_the_bytes_again_and_again(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  const std::string sent = pattern(200'000, 1);
  SendProbe& sending = bench.send(client, sent);
  std::string got = bench.read(server, sent.size());
  ASSERT_TRUE(bench.finish(sending).succeeded());
  bench.write(client, "tail");
  ASSERT_TRUE(bench.backend().shut_down_sending(client));
  got += bench.read_all(server);
  EXPECT_TRUE(got == sent + "tail");
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(bench.finish(bench.receive(server)).error(), Errc::end_of_stream);
  }
}

void the_end_finishes_a_pending_receive(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& pending = bench.receive(server);
  bench.close(client);
  EXPECT_EQ(bench.finish(pending).error(), Errc::end_of_stream);
  EXPECT_FALSE(pending.buffer.owns_memory());
}

void closing_delivers_what_was_sent(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  bench.write(client, "last words");
  bench.close(client);
  EXPECT_EQ(bench.read_all(server), "last words");
}

void a_half_closed_stream_still_receives(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  bench.write(client, "request");
  ASSERT_TRUE(bench.backend().shut_down_sending(client));
  EXPECT_EQ(bench.read_all(server), "request");
  const std::string answer = pattern(3'000'000, 2);
  SendProbe& sending = bench.send(server, answer);
  EXPECT_TRUE(bench.read(client, answer.size()) == answer);
  EXPECT_TRUE(bench.finish(sending).succeeded());
  ASSERT_TRUE(bench.backend().shut_down_sending(server));
  EXPECT_EQ(bench.read_all(client), "");
}

void sending_after_the_own_end_fails(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ASSERT_TRUE(bench.backend().shut_down_sending(client));
  SendProbe& late = bench.finish(bench.send(client, "late"));
  EXPECT_EQ(late.error(), system_error(EPIPE));
  EXPECT_EQ(late.sent, 0u);
  EXPECT_EQ(bench.read_all(server), "");
}

void a_reset_fails_pending_and_later_receives(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& pending = bench.receive(server);
  bench.reset(client);
  EXPECT_EQ(bench.finish(pending).error(), system_error(ECONNRESET));
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(bench.finish(bench.receive(server)).error(), system_error(ECONNRESET));
  }
  EXPECT_TRUE(is_peer_gone(bench.finish(bench.send(server, "anybody?")).error()));
}

void a_reset_is_seen_by_the_first_receive(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  bench.reset(client);
  bench.settle();
  EXPECT_EQ(bench.finish(bench.receive(server)).error(), system_error(ECONNRESET));
  EXPECT_EQ(bench.finish(bench.receive(server)).error(), system_error(ECONNRESET));
}

// What is unread in the kernel, as nothing was ever received on this socket.
void closing_over_unread_bytes_resets(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  ReceiveProbe& pending = bench.receive(server);
  bench.write(server, "never read");
  bench.settle();
  bench.close(client);
  EXPECT_EQ(bench.finish(pending).error(), system_error(ECONNRESET));
}

// The kernel takes the first bytes: only the peer's answer tells that nobody is there.
void sending_to_a_closed_peer_fails_soon(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  bench.close(server);
  std::error_code error;
  for (int tries = 0; tries < 10 && !error; ++tries) {
    error = bench.finish(bench.send(client, "hello?")).error();
    bench.settle();
  }
  EXPECT_TRUE(is_peer_gone(error)) << error.message();
  EXPECT_TRUE(is_peer_gone(bench.finish(bench.send(client, "hello?")).error()));
}

void a_reset_fails_a_pending_send(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  SendProbe& pending = bench.send(client, pattern(20'000'000, 3));
  ASSERT_TRUE(bench.until([&] { return pending.sent > 0; }));
  ASSERT_FALSE(pending.done());
  bench.reset(server);
  EXPECT_TRUE(is_peer_gone(bench.finish(pending).error())) << pending.error().message();
  EXPECT_LT(pending.sent, 20'000'000u);
}

void a_reset_fails_both_directions_at_once(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  SendProbe& sending = bench.send(client, pattern(20'000'000, 4));
  ReceiveProbe& receiving = bench.receive(client);
  bench.settle();
  bench.reset(server);
  bench.finish(sending);
  bench.finish(receiving);
  EXPECT_TRUE(is_peer_gone(sending.error()));
  EXPECT_TRUE(is_peer_gone(receiving.error()) || receiving.error() == Errc::end_of_stream)
      << receiving.error().message();
}

void unix_sockets_end_and_reset_alike(ContractBench& bench) {
  Socket& listener = bench.listen(bench.world().fresh_local_address());
  const auto [client, server] = bench.connect_to(listener);
  bench.write(client, "through a file");
  bench.close(client);
  EXPECT_EQ(bench.read_all(server), "through a file");
  EXPECT_TRUE(is_peer_gone(bench.finish(bench.send(server, "gone")).error()));

  const auto [second, other] = bench.connect_to(listener);
  ReceiveProbe& pending = bench.receive(other);
  bench.write(other, "never read");
  bench.settle();
  bench.close(second);
  EXPECT_EQ(bench.finish(pending).error(), system_error(ECONNRESET));
}

}  // namespace

std::vector<ContractClause> contract_of_endings() {
  return {
      {"the_end_comes_behind_the_bytes_again_and_again",
       the_end_comes_behind_the_bytes_again_and_again},
      {"the_end_finishes_a_pending_receive", the_end_finishes_a_pending_receive},
      {"closing_delivers_what_was_sent", closing_delivers_what_was_sent},
      {"a_half_closed_stream_still_receives", a_half_closed_stream_still_receives},
      {"sending_after_the_own_end_fails", sending_after_the_own_end_fails},
      {"a_reset_fails_pending_and_later_receives", a_reset_fails_pending_and_later_receives},
      {"a_reset_is_seen_by_the_first_receive", a_reset_is_seen_by_the_first_receive},
      {"closing_over_unread_bytes_resets", closing_over_unread_bytes_resets},
      {"sending_to_a_closed_peer_fails_soon", sending_to_a_closed_peer_fails_soon},
      {"a_reset_fails_a_pending_send", a_reset_fails_a_pending_send},
      {"a_reset_fails_both_directions_at_once", a_reset_fails_both_directions_at_once},
      {"unix_sockets_end_and_reset_alike", unix_sockets_end_and_reset_alike},
  };
}

}  // namespace weir
