// Contract of the end of a stream, of half-closed streams, and of closed peers.
#include <gtest/gtest.h>

#include <cerrno>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

bool is_peer_gone(std::error_code error) {
  return error == system_error(EPIPE) || error == system_error(ECONNRESET);
}

void every_receive_after_the_last_byte_reports_the_end(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const std::string sent = pattern(200'000, 1);
  SendProbe& sending = fixture.send(client, sent);
  std::string got = fixture.read(server, sent.size());
  ASSERT_TRUE(fixture.finish(sending).succeeded());
  fixture.write(client, "tail");
  ASSERT_TRUE(fixture.backend().shut_down_sending(client));
  got += fixture.read_all(server);
  EXPECT_TRUE(got == sent + "tail");
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(fixture.finish(fixture.receive(server)).error(), Errc::end_of_stream);
  }
}

void the_end_finishes_a_pending_receive(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& pending = fixture.receive(server);
  fixture.close(client);
  EXPECT_EQ(fixture.finish(pending).error(), Errc::end_of_stream);
  EXPECT_FALSE(pending.buffer.owns_memory());
}

void closing_delivers_what_was_sent(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  fixture.write(client, "last words");
  fixture.close(client);
  EXPECT_EQ(fixture.read_all(server), "last words");
}

void a_half_closed_stream_still_receives(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  fixture.write(client, "request");
  ASSERT_TRUE(fixture.backend().shut_down_sending(client));
  EXPECT_EQ(fixture.read_all(server), "request");
  const std::string answer = pattern(3'000'000, 2);
  SendProbe& sending = fixture.send(server, answer);
  EXPECT_TRUE(fixture.read(client, answer.size()) == answer);
  EXPECT_TRUE(fixture.finish(sending).succeeded());
  ASSERT_TRUE(fixture.backend().shut_down_sending(server));
  EXPECT_EQ(fixture.read_all(client), "");
}

void sending_after_the_own_end_fails(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ASSERT_TRUE(fixture.backend().shut_down_sending(client));
  SendProbe& late = fixture.finish(fixture.send(client, "late"));
  EXPECT_EQ(late.error(), system_error(EPIPE));
  EXPECT_EQ(late.sent, 0u);
  EXPECT_EQ(fixture.read_all(server), "");
}

void a_reset_fails_pending_and_later_receives(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& pending = fixture.receive(server);
  fixture.reset(client);
  EXPECT_EQ(fixture.finish(pending).error(), system_error(ECONNRESET));
  const auto peer = fixture.platform().peer_address(server.descriptor);
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error(), system_error(ENOTCONN));
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(fixture.finish(fixture.receive(server)).error(), system_error(ECONNRESET));
  }
  EXPECT_TRUE(is_peer_gone(fixture.finish(fixture.send(server, "anybody?")).error()));
}

void a_reset_is_seen_by_the_first_receive(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  fixture.reset(client);
  fixture.settle();
  EXPECT_EQ(fixture.finish(fixture.receive(server)).error(), system_error(ECONNRESET));
  EXPECT_EQ(fixture.finish(fixture.receive(server)).error(), system_error(ECONNRESET));
}

// The data is unread in the kernel, because nothing was ever received on this socket.
void closing_with_unread_bytes_resets(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& pending = fixture.receive(server);
  fixture.write(server, "never read");
  fixture.settle();
  fixture.close(client);
  EXPECT_EQ(fixture.finish(pending).error(), system_error(ECONNRESET));
}

// The kernel accepts the first bytes; only the peer's answer shows that the peer is closed.
void sending_to_a_closed_peer_fails_soon(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  fixture.close(server);
  std::error_code error;
  for (int tries = 0; tries < 10 && !error; ++tries) {
    error = fixture.finish(fixture.send(client, "hello?")).error();
    fixture.settle();
  }
  EXPECT_TRUE(is_peer_gone(error)) << error.message();
  EXPECT_TRUE(is_peer_gone(fixture.finish(fixture.send(client, "hello?")).error()));
}

void a_reset_fails_a_pending_send(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  SendProbe& pending = fixture.send(client, pattern(20'000'000, 3));
  ASSERT_TRUE(fixture.until([&] { return pending.sent > 0; }));
  ASSERT_FALSE(pending.done());
  fixture.reset(server);
  EXPECT_TRUE(is_peer_gone(fixture.finish(pending).error())) << pending.error().message();
  EXPECT_LT(pending.sent, 20'000'000u);
}

void a_reset_fails_a_pending_send_and_receive(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  SendProbe& sending = fixture.send(client, pattern(20'000'000, 4));
  ReceiveProbe& receiving = fixture.receive(client);
  fixture.settle();
  fixture.reset(server);
  fixture.finish(sending);
  fixture.finish(receiving);
  EXPECT_TRUE(is_peer_gone(sending.error()));
  EXPECT_TRUE(is_peer_gone(receiving.error()) || receiving.error() == Errc::end_of_stream)
      << receiving.error().message();
}

void unix_sockets_report_the_end_and_a_reset(ContractFixture& fixture) {
  loop::Socket& listener = fixture.listen(fixture.environment().fresh_local_address());
  const auto [client, server] = fixture.connect_to(listener);
  fixture.write(client, "through a file");
  fixture.close(client);
  EXPECT_EQ(fixture.read_all(server), "through a file");
  EXPECT_TRUE(is_peer_gone(fixture.finish(fixture.send(server, "gone")).error()));

  const auto [second, other] = fixture.connect_to(listener);
  ReceiveProbe& pending = fixture.receive(other);
  fixture.write(other, "never read");
  fixture.settle();
  fixture.close(second);
  EXPECT_EQ(fixture.finish(pending).error(), system_error(ECONNRESET));
}

}  // namespace

std::vector<ContractClause> contract_of_endings() {
  return {
      {"every_receive_after_the_last_byte_reports_the_end",
       every_receive_after_the_last_byte_reports_the_end},
      {"the_end_finishes_a_pending_receive", the_end_finishes_a_pending_receive},
      {"closing_delivers_what_was_sent", closing_delivers_what_was_sent},
      {"a_half_closed_stream_still_receives", a_half_closed_stream_still_receives},
      {"sending_after_the_own_end_fails", sending_after_the_own_end_fails},
      {"a_reset_fails_pending_and_later_receives", a_reset_fails_pending_and_later_receives},
      {"a_reset_is_seen_by_the_first_receive", a_reset_is_seen_by_the_first_receive},
      {"closing_with_unread_bytes_resets", closing_with_unread_bytes_resets},
      {"sending_to_a_closed_peer_fails_soon", sending_to_a_closed_peer_fails_soon},
      {"a_reset_fails_a_pending_send", a_reset_fails_a_pending_send},
      {"a_reset_fails_a_pending_send_and_receive", a_reset_fails_a_pending_send_and_receive},
      {"unix_sockets_report_the_end_and_a_reset", unix_sockets_report_the_end_and_a_reset},
  };
}

}  // namespace weir
