// Contract of hang-ups: an observer is called when its connection is dead, and only then.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void a_reset_is_reported_once(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& observer = fixture.observe_hangup(server);
  fixture.settle();
  EXPECT_EQ(observer.calls, 0);
  fixture.reset(client);
  EXPECT_TRUE(fixture.until([&] { return observer.calls > 0; }));
  fixture.finish(fixture.receive(server));
  fixture.settle();
  EXPECT_EQ(observer.calls, 1);
}

void a_half_close_is_not_reported(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& at_server = fixture.observe_hangup(server);
  const HangupProbe& at_client = fixture.observe_hangup(client);
  ASSERT_TRUE(fixture.backend().shut_down_sending(client));
  EXPECT_EQ(fixture.read_all(server), "");
  fixture.write(server, "still here");
  EXPECT_EQ(fixture.read(client, 10), "still here");
  fixture.settle();
  EXPECT_EQ(at_server.calls, 0);
  EXPECT_EQ(at_client.calls, 0);

  ASSERT_TRUE(fixture.backend().shut_down_sending(server));
  EXPECT_TRUE(fixture.until([&] { return at_server.calls == 1 && at_client.calls == 1; }));
  fixture.settle();
  EXPECT_EQ(at_client.calls, 1);
  fixture.close(client);
  fixture.settle();
  EXPECT_EQ(at_server.calls, 1);
}

void a_close_after_the_own_end_is_reported(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& observer = fixture.observe_hangup(server);
  ASSERT_TRUE(fixture.backend().shut_down_sending(server));
  fixture.close(client);
  EXPECT_TRUE(fixture.until([&] { return observer.calls == 1; }));
}

void a_hang_up_is_reported_to_a_late_observer(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  ReceiveProbe& pending = fixture.receive(server);
  fixture.reset(client);
  fixture.finish(pending);
  fixture.settle();
  const HangupProbe& known = fixture.observe_hangup(server);
  EXPECT_EQ(known.calls, 1) << "observe_hangup() reports a death that a receive has reported";

  const auto [quiet, unseen] = fixture.connect();
  fixture.reset(quiet);
  fixture.settle();
  const HangupProbe& late = fixture.observe_hangup(unseen);
  EXPECT_TRUE(fixture.until([&] { return late.calls == 1; }));
}

void a_hang_up_is_reported_while_reading_pauses(ContractFixture& fixture) {
  constexpr std::size_t size = 1'000'000;
  const auto [client, server] = fixture.connect();
  fixture.write(client, "begin");
  EXPECT_EQ(fixture.read(server, 5), "begin");
  const HangupProbe& observer = fixture.observe_hangup(server);
  SendProbe& sending = fixture.send(client, pattern(size, 1));
  for (int i = 0; i < 3; ++i) fixture.settle();
  EXPECT_EQ(observer.calls, 0);
  fixture.cancel(sending);
  fixture.finish(sending);
  fixture.reset(client);
  EXPECT_TRUE(fixture.until([&] { return observer.calls == 1; }));
}

void a_hang_up_is_reported_while_a_send_is_pending(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& observer = fixture.observe_hangup(server);
  SendProbe& sending = fixture.send(server, pattern(20'000'000, 2));
  fixture.settle();
  EXPECT_EQ(observer.calls, 0);
  fixture.reset(client);
  EXPECT_TRUE(fixture.until([&] { return observer.calls == 1; }));
  EXPECT_TRUE(fixture.finish(sending).error());
}

void input_is_reported_to_its_observer(ContractFixture& fixture) {
  const auto [byte_client, byte_server] = fixture.connect();
  const HangupProbe& of_byte = fixture.observe_input(byte_server);
  const auto [end_client, end_server] = fixture.connect();
  const HangupProbe& of_end = fixture.observe_input(end_server);
  const auto [reset_client, reset_server] = fixture.connect();
  const HangupProbe& of_reset = fixture.observe_input(reset_server);
  fixture.settle();
  EXPECT_EQ(of_byte.calls + of_end.calls + of_reset.calls, 0);
  fixture.write(byte_client, "x");
  ASSERT_TRUE(fixture.backend().shut_down_sending(end_client));
  fixture.reset(reset_client);
  EXPECT_TRUE(fixture.until(
      [&] { return of_byte.calls == 1 && of_end.calls == 1 && of_reset.calls == 1; }));
  fixture.write(byte_client, "y");
  EXPECT_EQ(fixture.read(byte_server, 2), "xy");
  EXPECT_EQ(fixture.read_all(end_server), "");
  fixture.settle();
  EXPECT_EQ(of_byte.calls, 1);
  EXPECT_EQ(of_end.calls, 1);
}

void input_is_reported_after_earlier_reads(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  for (int round = 0; round < 3; ++round) {
    fixture.write(client, "request");
    EXPECT_EQ(fixture.read(server, 7), "request");
    const HangupProbe& observer = fixture.observe_input(server);
    fixture.settle();
    EXPECT_EQ(observer.calls, 0) << "there is nothing to read";
    fixture.backend().observe_hangup(server, nullptr);
  }
  const HangupProbe& observer = fixture.observe_input(server);
  fixture.write(client, "more");
  EXPECT_TRUE(fixture.until([&] { return observer.calls == 1; }));
  std::array<std::byte, 2> room{};
  fixture.finish(fixture.receive(server, room));
  const HangupProbe& rest = fixture.observe_input(server);
  EXPECT_TRUE(fixture.until([&] { return rest.calls == 1; })) << "unread bytes are input";
}

void input_that_a_receive_takes_is_not_reported(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& observer = fixture.observe_input(server);
  ReceiveProbe& pending = fixture.receive(server);
  fixture.settle();
  fixture.write(client, "x");
  fixture.finish(pending);
  fixture.settle();
  EXPECT_EQ(observer.calls, 0);
  fixture.reset(client);
  EXPECT_TRUE(fixture.until([&] { return observer.calls == 1; }));
}

void only_the_current_observer_is_called(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  const HangupProbe& replaced = fixture.observe_hangup(server);
  const HangupProbe& current = fixture.observe_hangup(server);
  const auto [other_client, other_server] = fixture.connect();
  const HangupProbe& removed = fixture.observe_hangup(other_server);
  fixture.backend().observe_hangup(other_server, nullptr);
  const auto [third_client, third_server] = fixture.connect();
  const HangupProbe& closed = fixture.observe_hangup(third_server);
  fixture.close(third_server);
  fixture.reset(client);
  fixture.reset(other_client);
  EXPECT_TRUE(fixture.until([&] { return current.calls == 1; }));
  fixture.settle();
  EXPECT_EQ(current.calls, 1);
  EXPECT_EQ(replaced.calls, 0);
  EXPECT_EQ(removed.calls, 0);
  EXPECT_EQ(closed.calls, 0);
}

}  // namespace

std::vector<ContractClause> contract_of_hangups() {
  return {
      {"a_reset_is_reported_once", a_reset_is_reported_once},
      {"a_half_close_is_not_reported", a_half_close_is_not_reported},
      {"a_close_after_the_own_end_is_reported", a_close_after_the_own_end_is_reported},
      {"a_hang_up_is_reported_to_a_late_observer", a_hang_up_is_reported_to_a_late_observer},
      {"a_hang_up_is_reported_while_reading_pauses", a_hang_up_is_reported_while_reading_pauses},
      {"a_hang_up_is_reported_while_a_send_is_pending",
       a_hang_up_is_reported_while_a_send_is_pending},
      {"input_is_reported_to_its_observer", input_is_reported_to_its_observer},
      {"input_is_reported_after_earlier_reads", input_is_reported_after_earlier_reads},
      {"input_that_a_receive_takes_is_not_reported", input_that_a_receive_takes_is_not_reported},
      {"only_the_current_observer_is_called", only_the_current_observer_is_called},
  };
}

}  // namespace weir
