// Tests the deadlines and the bytes of a connection without a server.
#include "weir/http/server/detail/connection.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/http/server/detail/connection_io.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::http::connection_stream_test {
namespace {

using ReadState = Connection::ReadState;

class ConnectionStreamTest : public MultiCoreTest {
 public:
  using Use = Task<> (*)(ConnectionStreamTest& test, Connection connection);

  ConnectionStreamTest() : MultiCoreTest(1) {}
  void TearDown() override {
    peer_.reset();
    MultiCoreTest::TearDown();
  }

  /// Runs `use` with the stream of an accepted connection, whose client is peer().
  void run_with_stream(Use use) {
    const auto body = [this, use]() -> Task<> { return accept_one(*this, use); };
    run_on_cores({body});
  }
  MemoryPeer& peer() { return *peer_; }
  /// Returns the time since the last call, or since the stream was accepted.
  Duration passed() { return platform_.now() - std::exchange(since_, platform_.now()); }
  Instant in(Duration length) { return after(platform_.now(), length); }

 private:
  static Task<> accept_one(ConnectionStreamTest& test, Use use) {
    const os::Address address = os::Address::loopback(80);
    auto listener = co_await tcp::listen(address);
    EXPECT_TRUE(listener);
    test.peer_.emplace(test.platform_, address);
    auto stream = co_await listener->accept();
    EXPECT_TRUE(stream);
    test.since_ = test.platform_.now();
    Connection connection(std::move(*stream));
    co_await use(test, std::move(connection));
  }

  std::optional<MemoryPeer> peer_;
  Instant since_{};
};

/// Reads once and returns the error.
Task<std::error_code> read_error(Connection& connection, ReadState what, Instant deadline) {
  const auto read = co_await connection.read(what, deadline);
  co_return read ? std::error_code() : read.error();
}
/// Records the error of a read that may be cancelled.
Task<Result<>> record_error(Connection& connection, Instant deadline, std::error_code& error) {
  error = co_await read_error(connection, ReadState::body, deadline);
  co_return {};
}

Task<> read_until_deadlines(ConnectionStreamTest& test, Connection connection) {
  constexpr std::array<Duration, 3> lengths{5s, 3s, 4s};
  for (const Duration length : lengths) {
    EXPECT_EQ(co_await read_error(connection, ReadState::head, test.in(length)), Errc::timed_out);
    EXPECT_EQ(test.passed(), length);
    EXPECT_EQ(connection.read_state(), ReadState::none);
    std::array<std::byte, 8> room;
    const auto into =
        co_await connection.read_into(MutableBytes(room), ReadState::head, test.in(length));
    EXPECT_FALSE(into);
    EXPECT_EQ(into.error(), Errc::timed_out);
    EXPECT_EQ(test.passed(), length);
  }
  test.peer().reset();
  EXPECT_EQ(co_await read_error(connection, ReadState::head, test.in(1s)),
            system_error(ECONNRESET));
}
TEST_F(ConnectionStreamTest, EachReadHasItsOwnDeadline) {
  run_with_stream(read_until_deadlines);
}

/// Makes the deadline of the read in progress earlier, as a drain does.
Task<> shorten(Connection& connection, Instant deadline) {
  EXPECT_EQ(connection.read_state(), ReadState::request);
  connection.shorten_deadline(deadline);
  EXPECT_EQ(connection.read_state(), ReadState::request);
  co_return;
}
Task<> read_with_changed_deadline(ConnectionStreamTest& test, Connection connection) {
  const auto read_for_10s = [&](Scope& scope, Duration first, Duration second) -> Task<> {
    auto reading = connection.read(ReadState::request, test.in(10s));
    scope.spawn(shorten(connection, test.in(first)));
    scope.spawn(shorten(connection, test.in(second)));
    const auto read = co_await reading;
    EXPECT_FALSE(read);
    EXPECT_EQ(read.error(), Errc::timed_out);
  };
  std::ignore = co_await with_scope(read_for_10s, 20s, 10s);
  EXPECT_EQ(test.passed(), 10s);
  std::ignore = co_await with_scope(read_for_10s, 2s, 3s);
  EXPECT_EQ(test.passed(), 2s);
  connection.shorten_deadline(test.in(1s));
  EXPECT_EQ(connection.read_state(), ReadState::none) << "there is no read";
}
TEST_F(ConnectionStreamTest, DeadlineBecomesOnlyEarlier) {
  run_with_stream(read_with_changed_deadline);
}

Task<> read_and_be_cancelled(ConnectionStreamTest& test, Connection connection) {
  std::error_code error;
  std::ignore = co_await timeout(1s, record_error(connection, test.in(10s), error));
  EXPECT_EQ(error, Errc::cancelled) << "the deadline has not passed";
  EXPECT_EQ(test.passed(), 1s);
  EXPECT_EQ(co_await read_error(connection, ReadState::body, test.in(30s)), Errc::timed_out);
  EXPECT_EQ(test.passed(), 30s);
}
TEST_F(ConnectionStreamTest, CancelledReadIsNoTimeout) {
  run_with_stream(read_and_be_cancelled);
}

/// Returns the number of uses that a connection has in the present turn.
unsigned uses_of_turn(Connection& connection) {
  unsigned uses = 0;
  while (uses < 200 && !connection.turn_budget_used()) ++uses;
  return uses;
}
Task<> use_turns(ConnectionStreamTest&, Connection connection) {
  const unsigned uses = uses_of_turn(connection);
  EXPECT_GT(uses, 1U);
  EXPECT_LT(uses, 200U) << "other connections come first at some time";
  EXPECT_TRUE(connection.turn_budget_used());
  for (int turn = 0; turn < 5; ++turn) {
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(uses_of_turn(connection), uses) << "each turn has the same share";
  }
}
TEST_F(ConnectionStreamTest, EachTurnHasItsShare) {
  run_with_stream(use_turns);
}

Task<> linger_with_a_quiet_peer(ConnectionStreamTest& test, Connection connection) {
  const Limits limits{.linger_timeout = 3s};
  test.peer().send("some bytes");
  co_await connection.linger(limits);
  EXPECT_EQ(test.passed(), 3s);
  EXPECT_TRUE(test.peer().ended());
}
TEST_F(ConnectionStreamTest, LingersUntilItsTimeout) {
  run_with_stream(linger_with_a_quiet_peer);
}

Task<> linger_with_a_peer_that_ends(ConnectionStreamTest& test, Connection connection) {
  test.peer().send("some bytes");
  test.peer().finish();
  const Limits limits;
  co_await connection.linger(limits);
  EXPECT_EQ(test.passed(), 0s);
}
TEST_F(ConnectionStreamTest, LingersOnlyUntilThePeerEnds) {
  run_with_stream(linger_with_a_peer_that_ends);
}

Task<> linger_with_a_reset_peer(ConnectionStreamTest& test, Connection connection) {
  test.peer().reset();
  const Limits limits;
  co_await connection.linger(limits);
  EXPECT_EQ(test.passed(), 0s);
}
TEST_F(ConnectionStreamTest, DoesNotLingerAfterAReset) {
  run_with_stream(linger_with_a_reset_peer);
}

Task<> linger_with_bytes(ConnectionStreamTest& test, Connection connection) {
  const Limits limits{.linger_bytes_max = 1000};
  test.peer().send(std::string(1000, 'x'));
  co_await connection.linger(limits);
  EXPECT_EQ(test.passed(), 1s) << "the limit is not exceeded";
}
Task<> linger_with_more_bytes(ConnectionStreamTest& test, Connection connection) {
  const Limits limits{.linger_bytes_max = 1000};
  test.peer().send(std::string(1001, 'x'));
  co_await connection.linger(limits);
  EXPECT_EQ(test.passed(), 0s);
}
template <std::uint64_t most>
Task<> linger_with_far_more_bytes(ConnectionStreamTest& test, Connection connection) {
  const weir::detail::Counter& received = connection.loop().backend().counters().bytes_received;
  const std::uint64_t before = received.value();
  test.peer().send(std::string(45'000, 'x'));
  const Limits limits{.linger_bytes_max = most};
  co_await connection.linger(limits);
  EXPECT_EQ(received.value() - before, most + 1) << "one more byte ends the connection";
}
TEST_F(ConnectionStreamTest, LingersForAtMostTheLimitOfBytes) {
  run_with_stream(linger_with_bytes);
  run_with_stream(linger_with_more_bytes);
  run_with_stream(linger_with_far_more_bytes<0>);
  run_with_stream(linger_with_far_more_bytes<1000>);
  run_with_stream(linger_with_far_more_bytes<40'000>);
}

Task<> send_pieces(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  EXPECT_FALSE(connection.was_active());
  {
    ConnectionIo io(connection, limits);
    EXPECT_EQ(connection.io(), &io);
    EXPECT_TRUE(connection.was_active());
    EXPECT_TRUE(co_await io.send()) << "there is nothing to send";
    EXPECT_EQ(test.peer().received(), "");
    EXPECT_TRUE(io.append(0, [](char* out) { return out; }, "output "));
    EXPECT_TRUE(co_await io.send(to_bytes("one "), Bytes(), to_bytes("three")));
    EXPECT_TRUE(io.output().empty());
    EXPECT_FALSE(io.writing());
    EXPECT_EQ(test.peer().received(), "output one three");
    EXPECT_TRUE(co_await io.send(Bytes(), to_bytes("!")));
    EXPECT_EQ(test.peer().received(), "output one three!");
  }
  EXPECT_EQ(connection.io(), nullptr);
  EXPECT_TRUE(connection.was_active());
}
TEST_F(ConnectionStreamTest, OutputIsSentBeforeThePieces) {
  run_with_stream(send_pieces);
}

Task<> send_to_a_peer_that_does_not_read(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  ConnectionIo io(connection, limits);
  const std::string large(100'000, 'x');
  const auto sent = co_await io.send(to_bytes(large));
  EXPECT_EQ(test.passed(), 10s);
  EXPECT_EQ(io.broken(), Errc::timed_out);
  EXPECT_FALSE(sent);
  const auto later = co_await io.send(to_bytes("later"));
  EXPECT_FALSE(later);
  EXPECT_EQ(later.error(), Errc::timed_out);
  EXPECT_EQ(test.passed(), 0s);
}
TEST_F(ConnectionStreamTest, SlowReaderBreaksTheConnection) {
  run_with_stream(send_to_a_peer_that_does_not_read);
}

Task<> send_and_be_cancelled(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  ConnectionIo io(connection, limits);
  const std::string large(100'000, 'x');
  const auto in_time = co_await timeout(2s, io.send(to_bytes(large)));
  EXPECT_FALSE(in_time);
  EXPECT_EQ(test.passed(), 2s);
  EXPECT_EQ(io.broken(), Errc::cancelled) << "the peer was not too slow";
  EXPECT_FALSE(io.writing());
  EXPECT_FALSE(co_await io.send(to_bytes("later"))) << "a part may have been sent";
}
TEST_F(ConnectionStreamTest, CancelledSendIsNoTimeout) {
  run_with_stream(send_and_be_cancelled);
}

Task<> send_second(ConnectionStreamTest& test, ConnectionIo& io) {
  EXPECT_TRUE(io.writing());
  const auto sent = co_await io.send(to_bytes("second"));
  EXPECT_TRUE(sent);
  EXPECT_EQ(test.passed(), 4s);
}
Task<> send_first(ConnectionIo& io, std::string_view large) {
  const auto sent = co_await io.send(to_bytes(large));
  EXPECT_TRUE(sent);
}
Task<> send_two_at_a_time(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  ConnectionIo io(connection, limits);
  const std::string large(100'000, 'x');
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(send_first(io, large));
    scope.spawn(send_second(test, io));
    std::ignore = co_await sleep(4s);
    while (test.peer().received().size() < large.size()) co_await yield();
  };
  std::ignore = co_await with_scope(both);
  EXPECT_EQ(test.peer().received(), large + "second");
  EXPECT_EQ(io.broken(), std::error_code());
}
TEST_F(ConnectionStreamTest, SecondSendWaitsForTheFirst) {
  run_with_stream(send_two_at_a_time);
}

Task<> drop_buffers(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  Buffer input = Buffer::with_capacity();
  input.commit(3);
  ConnectionIo io(connection, limits, std::move(input));
  EXPECT_TRUE(io.append(0, [](char* out) { return out; }, "ab"));
  io.drop_empty_buffers();
  EXPECT_EQ(io.input().size(), 3U);
  EXPECT_EQ(io.output().size(), 2U);
  io.input().consume(3);
  io.output().clear();
  EXPECT_TRUE(io.input().owns_memory() && io.output().owns_memory());
  io.drop_empty_buffers();
  EXPECT_FALSE(io.input().owns_memory() || io.output().owns_memory());
  EXPECT_EQ(test.passed(), 0s);
  co_return;
}
TEST_F(ConnectionStreamTest, OnlyEmptyBuffersAreDropped) {
  run_with_stream(drop_buffers);
}

Task<> send_second_and_fail(ConnectionStreamTest& test, ConnectionIo& io) {
  EXPECT_TRUE(io.writing());
  const auto sent = co_await io.send(to_bytes("second"));
  EXPECT_FALSE(sent);
  EXPECT_EQ(sent ? std::error_code() : sent.error(), Errc::timed_out);
  EXPECT_EQ(test.passed(), 10s);
}
Task<> send_first_and_fail(ConnectionIo& io, std::string_view large) {
  const auto sent = co_await io.send(to_bytes(large));
  EXPECT_FALSE(sent);
}
Task<> send_two_to_a_slow_reader(ConnectionStreamTest& test, Connection connection) {
  const Limits limits;
  ConnectionIo io(connection, limits);
  const std::string large(100'000, 'x');
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(send_first_and_fail(io, large));
    scope.spawn(send_second_and_fail(test, io));
    co_return;
  };
  std::ignore = co_await with_scope(both);
  const std::string& received = test.peer().received();
  EXPECT_EQ(received, large.substr(0, received.size())) << "nothing follows a cut write";
}
TEST_F(ConnectionStreamTest, WaitingSendFailsWithTheFirst) {
  run_with_stream(send_two_to_a_slow_reader);
}

}  // namespace
}  // namespace weir::http::connection_stream_test
