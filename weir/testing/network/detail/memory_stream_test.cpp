// Tests of simulated connections over a link with delays, losses and faults.
#include "weir/testing/network/detail/memory_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/testing/test/two_hosts.hpp"

namespace weir::memory_stream_test {
namespace {

using os::Address;
using testing::ElementsAre;

const std::error_code again = system_error(EAGAIN);
const std::error_code was_reset = system_error(ECONNRESET);
const std::error_code timed_out = system_error(ETIMEDOUT);
const std::error_code broken_pipe = system_error(EPIPE);
const std::error_code not_connected = system_error(ENOTCONN);
const std::error_code none;

/// A connection from host `one` to host `other`. Segments take 10 ms in both directions.
class MemoryStreamTest : public testing::Test {
 protected:
  MemoryStreamTest() { connect(); }

  void connect() {
    client_ = hosts_.one.open_stream();
    ASSERT_EQ(hosts_.one.connect(*client_, server_address_),
              MemoryNetwork::ConnectResult::established);
    server_ = listener_->take();
    ASSERT_NE(server_, nullptr);
  }
  static std::string receive(MemoryStream& stream, std::size_t most = 1000) {
    std::string text(most, '\0');
    const auto count = stream.receive(std::as_writable_bytes(std::span(text)));
    text.resize(count.value_or(0));
    return text;
  }
  static std::size_t send(MemoryStream& stream, std::string_view text) {
    return stream.send(to_bytes(text)).value_or(0);
  }

  TwoHosts hosts_;
  Address server_address_ = hosts_.other_address.with_port(80);
  std::unique_ptr<MemoryListener> listener_ =
      hosts_.other
          .listen(Address::any(80), {.backlog = 5, .reuse_port = true, .require_unused = false})
          .value();
  std::unique_ptr<MemoryStream> client_;
  std::unique_ptr<MemoryStream> server_;
};

TEST_F(MemoryStreamTest, DataArrivesInOrderAfterTheDelaysOfItsLink) {
  hosts_.there.delays = {30ms, 10ms, 50ms};
  EXPECT_EQ(send(*client_, "ab"), 2U);
  EXPECT_EQ(send(*client_, "c"), 1U);
  EXPECT_EQ(send(*client_, "de"), 2U);
  EXPECT_EQ(client_->in_flight_bytes(), 5U);
  EXPECT_EQ(server_->in_flight_bytes(), 0U);
  hosts_.pass(30ms - 1ns);
  EXPECT_EQ(server_->unread(), 0U);
  EXPECT_EQ(server_->receivable(), again);
  hosts_.pass(1ns);
  EXPECT_EQ(server_->unread(), 3U) << "the second segment does not overtake the first one";
  EXPECT_EQ(client_->in_flight_bytes(), 2U);
  EXPECT_EQ(server_->receivable(), none);
  hosts_.pass(20ms - 1ns);
  EXPECT_EQ(server_->unread(), 3U);
  hosts_.pass(1ns);
  EXPECT_EQ(receive(*server_), "abcde");
  EXPECT_EQ(client_->in_flight_bytes(), 0U);
  EXPECT_EQ(server_->received(), 5U);
  EXPECT_EQ(client_->received(), 0U);
  EXPECT_EQ(hosts_.clock.next(), never);
}

TEST_F(MemoryStreamTest, EachDirectionHasItsOwnLink) {
  hosts_.there.usual_delay = 5ms;
  hosts_.back.usual_delay = 7ms;
  send(*client_, "there");
  send(*server_, "back");
  hosts_.pass(5ms);
  EXPECT_EQ(receive(*server_), "there");
  EXPECT_EQ(client_->unread(), 0U);
  hosts_.pass(2ms);
  EXPECT_EQ(receive(*client_), "back");
}

TEST_F(MemoryStreamTest, SegmentsOfOneSendArriveSeparately) {
  hosts_.there.segment_max = 2;
  hosts_.there.delays = {10ms, 20ms, 30ms};
  EXPECT_EQ(send(*client_, "abcde"), 5U);
  for (const char* const expected : {"ab", "cd", "e"}) {
    hosts_.pass(10ms);
    EXPECT_EQ(receive(*server_), expected);
  }
}

TEST_F(MemoryStreamTest, AReceiveTakesAPartOfTheData) {
  std::string all;
  for (char each = 'a'; each <= 'z'; ++each) all += each;
  send(*client_, all);
  hosts_.pass(10ms);
  std::string received = receive(*server_, 5);
  EXPECT_EQ(received, "abcde");
  received += receive(*server_, 13);
  EXPECT_EQ(server_->unread(), 8U);
  send(*client_, "0123");
  hosts_.pass(10ms);
  while (server_->unread() > 0) received += receive(*server_, 3);
  EXPECT_EQ(received, all + "0123");
  EXPECT_EQ(server_->received(), 30U);
  EXPECT_EQ(server_->receive({}).error(), again);
}

TEST_F(MemoryStreamTest, UnreadDataAndDataInFlightUseTheBuffer) {
  EXPECT_EQ(send(*client_, std::string(60, 'x')), 60U);
  EXPECT_EQ(send(*client_, std::string(60, 'y')), 40U) << "the buffer has 100 bytes";
  EXPECT_EQ(client_->sendable(), again);
  EXPECT_EQ(client_->send(to_bytes("z")).error(), again);
  hosts_.pass(10ms);
  EXPECT_EQ(client_->sendable(), again) << "the data is still unread";
  ChangeProbe room;
  client_->observe(room);
  EXPECT_EQ(receive(*server_, 99).size(), 99U);
  EXPECT_EQ(room.changes, 1);
  EXPECT_EQ(client_->sendable(), none);
  EXPECT_EQ(send(*client_, std::string(200, 'z')), 99U);
  client_->unobserve(room);
}

TEST_F(MemoryStreamTest, AClosedLinkRetransmitsUntilItGivesUp) {
  hosts_.there.is_open = false;
  send(*client_, "lost");
  std::vector<Duration> waits;
  for (Instant next; (next = hosts_.clock.next()) != never;) {
    waits.push_back(next - hosts_.clock.now());
    EXPECT_EQ(client_->sendable(), none);
    hosts_.clock.move_to(next);
  }
  EXPECT_THAT(waits, ElementsAre(10ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms,
                                 25600ms, 51200ms, 102400ms, 120s, 120s, 120s, 120s, 120s));
  EXPECT_EQ(client_->sendable(), timed_out);
  EXPECT_EQ(client_->receivable(), timed_out);
  EXPECT_EQ(client_->in_flight_bytes(), 0U);
  EXPECT_TRUE(client_->dead());
  EXPECT_EQ(server_->receivable(), again) << "the receiver does not notice";
  EXPECT_FALSE(server_->dead());
  // The answer to later data of the receiver is a reset.
  hosts_.there.is_open = true;
  send(*server_, "late");
  hosts_.pass(10ms);
  EXPECT_EQ(server_->receivable(), again);
  hosts_.pass(10ms);
  EXPECT_EQ(server_->receivable(), was_reset);
}

TEST_F(MemoryStreamTest, EachInterruptionBeginsWithTheShortestWait) {
  for (int interruption = 0; interruption < 20; ++interruption) {
    hosts_.there.is_open = false;
    send(*client_, "x");
    hosts_.pass(10ms);
    hosts_.pass(200ms);
    hosts_.there.is_open = true;
    hosts_.pass(400ms - 1ns);
    EXPECT_EQ(server_->unread(), 0U);
    hosts_.pass(1ns);
    EXPECT_EQ(receive(*server_), "x");
  }
}

TEST_F(MemoryStreamTest, AClosingPeerIsSeenAfterItsData) {
  ChangeProbe changes;
  server_->observe(changes);
  send(*client_, "bye");
  client_.reset();
  EXPECT_EQ(server_->receivable(), again);
  hosts_.pass(10ms);
  EXPECT_EQ(changes.changes, 2) << "the data and the end";
  EXPECT_EQ(receive(*server_), "bye");
  EXPECT_EQ(server_->receivable(), Errc::end_of_stream);
  EXPECT_EQ(server_->receive({}).error(), Errc::end_of_stream);
  EXPECT_EQ(server_->sendable(), none) << "a TCP peer has only ended its sending";
  EXPECT_FALSE(server_->dead());
  server_->unobserve(changes);
}

TEST_F(MemoryStreamTest, ClosingWithUnreadDataResetsThePeer) {
  send(*client_, "unread");
  hosts_.pass(10ms);
  server_.reset();
  EXPECT_EQ(client_->receivable(), again) << "the reset is on its way";
  hosts_.pass(10ms);
  EXPECT_EQ(client_->receivable(), was_reset);
  EXPECT_EQ(client_->sendable(), was_reset);
}

TEST_F(MemoryStreamTest, DataInFlightToAClosedSocketIsAnsweredByAReset) {
  send(*client_, "in flight");
  server_.reset();
  EXPECT_EQ(client_->in_flight_bytes(), 9U);
  hosts_.pass(10ms);
  EXPECT_EQ(client_->receivable(), Errc::end_of_stream);
  EXPECT_EQ(client_->sendable(), was_reset);
}

TEST_F(MemoryStreamTest, ASendToAClosedPeerIsAnsweredByAReset) {
  server_.reset();
  hosts_.pass(10ms);
  ASSERT_EQ(client_->sendable(), none);
  EXPECT_EQ(send(*client_, std::string(70, 'x')), 70U);
  EXPECT_EQ(client_->in_flight_bytes(), 70U);
  EXPECT_EQ(send(*client_, std::string(70, 'x')), 30U) << "the buffer is full";
  EXPECT_EQ(client_->sendable(), again);
  hosts_.pass(10ms);
  EXPECT_EQ(client_->sendable(), broken_pipe);
  EXPECT_TRUE(client_->dead());
  EXPECT_EQ(hosts_.clock.next(), never);
}

TEST_F(MemoryStreamTest, TheLossOfAnAnswerIsNoticedOnlyByASideThatHasSentData) {
  for (const bool has_sent : {false, true}) {
    connect();
    hosts_.there.is_open = false;
    client_.reset();
    if (has_sent) send(*server_, "x");
    hosts_.pass(1h);
    EXPECT_EQ(server_->receivable(), has_sent ? timed_out : again);
    hosts_.there.is_open = true;
  }
}

TEST_F(MemoryStreamTest, AResetIsSeenImmediatelyAtBothEnds) {
  ChangeProbe changes;
  server_->observe(changes);
  send(*client_, "arrived");
  hosts_.pass(10ms);
  send(*client_, "lost");
  changes.changes = 0;
  client_->reset();
  EXPECT_EQ(changes.changes, 1);
  EXPECT_EQ(client_->receivable(), was_reset);
  EXPECT_EQ(receive(*server_), "arrived");
  EXPECT_EQ(server_->receivable(), was_reset);
  EXPECT_EQ(server_->sendable(), was_reset);
  EXPECT_TRUE(server_->dead());
  EXPECT_EQ(hosts_.clock.next(), never) << "nothing is in flight any more";
  EXPECT_EQ(client_->shut_down_sending().error(), not_connected);
  client_->reset();
  server_->unobserve(changes);
}

TEST_F(MemoryStreamTest, AResetBeforeTheConnectRefusesItOnce) {
  MemoryStream stream(100);
  stream.reset();
  EXPECT_EQ(hosts_.one.connect(stream, server_address_), MemoryNetwork::ConnectResult::refused);
  EXPECT_EQ(stream.receivable(), not_connected);
  EXPECT_EQ(hosts_.one.connect(stream, server_address_), MemoryNetwork::ConnectResult::established);
}

TEST_F(MemoryStreamTest, AnUnconnectedStreamCannotBeUsed) {
  MemoryStream stream(100);
  EXPECT_FALSE(stream.connected());
  EXPECT_FALSE(stream.dead());
  EXPECT_EQ(stream.receivable(), not_connected);
  EXPECT_EQ(stream.sendable(), not_connected);
  EXPECT_EQ(stream.receive({}).error(), not_connected);
  EXPECT_EQ(stream.send(to_bytes("x")).error(), not_connected);
  EXPECT_EQ(stream.shut_down_sending().error(), not_connected);
  EXPECT_EQ(stream.in_flight_bytes(), 0U);
}

TEST_F(MemoryStreamTest, AStreamEndsInBothDirections) {
  ChangeProbe changes;
  client_->observe(changes);
  send(*client_, "last");
  ASSERT_TRUE(client_->shut_down_sending());
  EXPECT_EQ(changes.changes, 1);
  ASSERT_TRUE(client_->shut_down_sending()) << "a second call does nothing";
  EXPECT_EQ(changes.changes, 1);
  EXPECT_EQ(client_->sendable(), broken_pipe);
  EXPECT_FALSE(client_->dead());
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*server_), "last");
  EXPECT_EQ(server_->receivable(), Errc::end_of_stream);
  EXPECT_FALSE(server_->dead()) << "it can still send";
  send(*server_, "answer");
  ASSERT_TRUE(server_->shut_down_sending());
  EXPECT_TRUE(server_->dead());
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*client_), "answer");
  EXPECT_TRUE(client_->dead());
  client_->unobserve(changes);
}

TEST_F(MemoryStreamTest, EndReceivingEndsTheDataOfThePeer) {
  send(*server_, "before");
  client_->end_receiving();
  EXPECT_EQ(server_->sendable(), broken_pipe);
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*client_), "before");
  EXPECT_EQ(client_->receivable(), Errc::end_of_stream);
  EXPECT_EQ(client_->sendable(), none);

  MemoryStream early(100);
  early.end_receiving();
  ASSERT_EQ(hosts_.one.connect(early, server_address_), MemoryNetwork::ConnectResult::established);
  const auto accepted = listener_->take();
  EXPECT_EQ(accepted->sendable(), broken_pipe);
  hosts_.pass(10ms);
  EXPECT_EQ(early.receivable(), Errc::end_of_stream);
}

TEST_F(MemoryStreamTest, ADelayAppliesToDataThatIsSentLater) {
  send(*client_, "early");
  server_->delay_until(after(hosts_.clock.now(), 5s));
  send(*client_, "late");
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*server_), "early");
  hosts_.pass(5s - 10ms - 1ns);
  EXPECT_EQ(server_->unread(), 0U);
  hosts_.pass(1ns);
  EXPECT_EQ(receive(*server_), "late");
  send(*client_, "after");
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*server_), "after");
}

TEST_F(MemoryStreamTest, AFilledStreamHasNoRoomUntilItsMoment) {
  ChangeProbe changes;
  client_->observe(changes);
  client_->fill_until(hosts_.clock, after(hosts_.clock.now(), 2s));
  EXPECT_EQ(client_->sendable(), again);
  client_->fill_until(hosts_.clock, after(hosts_.clock.now(), 3s));
  hosts_.pass(3s - 1ns);
  EXPECT_EQ(client_->sendable(), again) << "the second call replaces the first one";
  EXPECT_EQ(changes.changes, 0);
  hosts_.pass(1ns);
  EXPECT_EQ(client_->sendable(), none);
  EXPECT_EQ(changes.changes, 1);
  client_->unobserve(changes);
  client_->fill_until(hosts_.clock, after(hosts_.clock.now(), 1h));
  client_.reset();
  server_.reset();
  hosts_.pass(1s);
  EXPECT_EQ(hosts_.clock.next(), never) << "a destroyed stream leaves no event";
}

TEST_F(MemoryStreamTest, TheDeathOfAProcessClosesItsConnections) {
  send(*client_, "before");
  client_->close_on_kill();
  EXPECT_EQ(client_->receivable(), was_reset);
  EXPECT_EQ(client_->sendable(), was_reset);
  hosts_.pass(10ms);
  EXPECT_EQ(receive(*server_), "before");
  EXPECT_EQ(server_->receivable(), Errc::end_of_stream);
}

TEST_F(MemoryStreamTest, TheDeathOfAProcessResetsConnectionsWithUnreadData) {
  send(*server_, "unread");
  hosts_.pass(10ms);
  ASSERT_EQ(client_->unread(), 6U);
  client_->close_on_kill();
  hosts_.pass(10ms - 1ns);
  EXPECT_EQ(server_->receivable(), again);
  hosts_.pass(1ns);
  EXPECT_EQ(server_->receivable(), was_reset);
  connect();
  send(*server_, "in flight");
  client_->close_on_kill();
  hosts_.pass(10ms);
  EXPECT_EQ(server_->receivable(), Errc::end_of_stream);
  EXPECT_EQ(server_->sendable(), was_reset);
}

TEST_F(MemoryStreamTest, UnreadDataOfAClosedPeerUsesTheBufferUntilTheReset) {
  send(*client_, std::string(60, 'x'));
  hosts_.pass(10ms);
  server_.reset();
  EXPECT_EQ(send(*client_, std::string(60, 'y')), 40U);
  EXPECT_EQ(client_->sendable(), again);
  hosts_.pass(10ms);
  EXPECT_EQ(client_->sendable(), was_reset);
}

TEST_F(MemoryStreamTest, AnEndAndAResetWaitForAClosedLinkToo) {
  for (const bool unread : {false, true}) {
    connect();
    if (unread) send(*server_, "unread");
    hosts_.pass(10ms);
    hosts_.there.is_open = false;
    client_.reset();
    hosts_.pass(10ms);
    hosts_.there.is_open = true;
    hosts_.pass(200ms - 1ns);
    EXPECT_EQ(server_->receivable(), again);
    hosts_.pass(1ns);
    EXPECT_EQ(server_->receivable(), unread ? was_reset : make_error_code(Errc::end_of_stream));
  }
}

TEST_F(MemoryStreamTest, EachObserverIsCalledUntilItLeaves) {
  ChangeProbe first;
  ChangeProbe second;
  server_->observe(first);
  server_->observe(second);
  send(*client_, "a");
  hosts_.pass(10ms);
  server_->unobserve(first);
  send(*client_, "b");
  hosts_.pass(10ms);
  EXPECT_EQ(first.changes, 1);
  EXPECT_EQ(second.changes, 2);
  server_->unobserve(second);
}

TEST_F(MemoryStreamTest, AListenerTakesConnectionsInOrder) {
  EXPECT_EQ(listener_->take(), nullptr);
  std::vector<std::unique_ptr<MemoryStream>> streams;
  for (int number = 0; number < 6; ++number) {
    streams.push_back(hosts_.one.open_stream());
    EXPECT_EQ(hosts_.one.connect(*streams.back(), server_address_),
              MemoryNetwork::ConnectResult::established);
  }
  EXPECT_EQ(listener_->waiting(), 6U);
  MemoryStream late(100);
  EXPECT_EQ(hosts_.one.connect(late, server_address_), MemoryNetwork::ConnectResult::no_reply)
      << "a backlog of 5 lets 6 connections wait";
  for (int number = 0; number < 3; ++number) {
    const auto accepted = listener_->take();
    EXPECT_EQ(accepted->peer_address(), streams[static_cast<std::size_t>(number)]->local());
  }
  listener_.reset();
  EXPECT_EQ(streams[3]->receivable(), was_reset) << "it was not accepted";
  EXPECT_EQ(hosts_.one.connect(late, server_address_), MemoryNetwork::ConnectResult::refused);
}

TEST(MemoryUnixStream, NoticesAClosedPeerImmediately) {
  Nondeterminism nothing_random;
  MemoryNetwork network(100, nothing_random);
  const Address path = Address::local("/run/socket").value();
  const auto listener =
      network.listen(path, {.backlog = 5, .reuse_port = false, .require_unused = false}).value();
  const auto client = network.open_stream();
  ASSERT_EQ(network.connect(*client, path), MemoryNetwork::ConnectResult::established);
  auto server = listener->take();
  ChangeProbe changes;
  server->observe(changes);
  EXPECT_EQ(client->send(to_bytes("hello")).value(), 5U);
  EXPECT_EQ(changes.changes, 1);
  EXPECT_EQ(server->unread(), 5U) << "it has no delay";
  EXPECT_EQ(client->in_flight_bytes(), 0U);
  std::string text(5, '\0');
  ASSERT_TRUE(server->receive(std::as_writable_bytes(std::span(text))));
  EXPECT_FALSE(client->dead());
  server.reset();
  EXPECT_TRUE(client->dead());
  EXPECT_EQ(client->receivable(), Errc::end_of_stream);
  EXPECT_EQ(client->sendable(), broken_pipe);
}

}  // namespace
}  // namespace weir::memory_stream_test
