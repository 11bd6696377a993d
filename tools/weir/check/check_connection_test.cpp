// Tests of connections to a server under test: limits, ends and errors.
#include "tools/weir/check/check_connection.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/net/listen/listener.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::check::check_connection_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";

/// Serves one connection in the way that a test needs.
using Behaviour = Task<> (*)(tcp::Stream stream);
using Client = std::function<Task<>(CheckConnection& connection)>;

Task<> serve_all(Scope& scope, Endpoint endpoint, Behaviour behaviour) {
  auto listener = co_await tcp::listen(endpoint);
  if (!listener) co_return;
  for (;;) {
    auto stream = co_await listener->accept();
    if (!stream) co_return;
    scope.spawn(behaviour(std::move(*stream)));
  }
}

StopCondition until(std::size_t final_count, Duration wait_timeout) {
  StopCondition condition;
  condition.final_count = final_count;
  condition.wait_timeout = wait_timeout;
  return condition;
}

class CheckConnectionTest : public LoopTest {
 protected:
  CheckConnectionTest() {
    target_.endpoint = Endpoint::loopback(8080);
    target_.timeout = 2s;
  }

  /// Runs the client on an open connection, and stores its outcome.
  void run_client(Behaviour behaviour, const Client& client) {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(serve_all(scope, target_.endpoint, behaviour));
      CheckConnection connection(target_);
      const bool opened = co_await connection.open();
      EXPECT_TRUE(opened);
      begun_ = platform_.now();
      co_await client(connection);
      taken_ = platform_.now() - begun_;
      outcome_ = connection.outcome();
      scope.cancel();
    };
    static_cast<void>(run(with_scope(OnFailure::isolate, both)));
  }

  CheckTarget target_;
  Outcome outcome_;
  Instant begun_{};
  Duration taken_{};
};

TEST_F(CheckConnectionTest, AnAnswerEndsTheSendingToAServerThatDoesNotRead) {
  const Behaviour early = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await sleep(1s);
    std::ignore = co_await stream.write(hello);
    std::ignore = co_await sleep(60s);
  };
  const std::string flood(1 << 20, 'a');
  run_client(early, [&](CheckConnection& connection) -> Task<> {
    co_await connection.send_and_receive(flood, until(1, 5s));
    EXPECT_FALSE(connection.is_closed());
  });
  EXPECT_EQ(taken_, 1s);
  EXPECT_EQ(outcome_.final_count, 1U);
  EXPECT_FALSE(outcome_.closed_by_server || outcome_.reset);
}

TEST_F(CheckConnectionTest, BytesOfAnAnswerDoNotExtendTheWait) {
  const Behaviour dripping = [](tcp::Stream stream) -> Task<> {
    for (const char each : hello) {
      if (!co_await stream.write(std::string_view(&each, 1))) co_return;
      if (!co_await sleep(400ms)) co_return;
    }
  };
  run_client(dripping, [&](CheckConnection& connection) -> Task<> {
    for (const Duration end : {3s, 6s}) {
      co_await connection.receive(until(1, 3s));
      EXPECT_EQ(platform_.now() - begun_, end) << "each call has its own limit";
    }
  });
  EXPECT_EQ(outcome_.final_count, 0U);
  EXPECT_EQ(outcome_.protocol_error, "");
  EXPECT_FALSE(outcome_.closed_by_server || outcome_.reset);
}

TEST_F(CheckConnectionTest, AnInterimResponseEndsTheWaitOnRequest) {
  const Behaviour two_steps = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.write(interim);
    std::ignore = co_await sleep(1s);
    std::ignore = co_await stream.write(hello);
    std::ignore = co_await sleep(60s);
  };
  run_client(two_steps, [&](CheckConnection& connection) -> Task<> {
    StopCondition first = until(1, 5s);
    first.interim = true;
    co_await connection.receive(first);
    EXPECT_EQ(platform_.now(), begun_);
    EXPECT_EQ(connection.final_count(), 0U);
    co_await connection.receive(until(1, 5s));
  });
  EXPECT_EQ(taken_, 1s);
  EXPECT_TRUE(outcome_.interim);
  EXPECT_EQ(outcome_.final_count, 1U);
}

TEST_F(CheckConnectionTest, OnlyACloseBeforeTheEndOfSendingIsByTheServer) {
  const Behaviour closing = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await sleep(1s);
    static_cast<void>(stream.finish_writing());
    std::ignore = co_await stream.read();
  };
  for (const bool finishes : {false, true}) {
    run_client(closing, [&](CheckConnection& connection) -> Task<> {
      if (finishes) connection.finish_writing();
      const bool early = co_await connection.wait_for_close(999ms);
      EXPECT_FALSE(early);
      const bool ended = co_await connection.wait_for_close(5s);
      EXPECT_TRUE(ended);
      EXPECT_TRUE(connection.is_closed());
      const bool sent = co_await connection.send("x", 5s);
      EXPECT_FALSE(sent) << "the connection has ended";
    });
    EXPECT_EQ(taken_, 1s);
    EXPECT_EQ(outcome_.closed_by_server, !finishes);
    EXPECT_FALSE(outcome_.reset);
  }
}

TEST_F(CheckConnectionTest, AResetEndsTheConnection) {
  const Behaviour dropping = [](tcp::Stream) -> Task<> {
    std::ignore = co_await sleep(1s);  // the close with unread bytes is a reset
  };
  run_client(dropping, [&](CheckConnection& connection) -> Task<> {
    const bool sent = co_await connection.send("unread", 5s);
    EXPECT_TRUE(sent);
    const bool ended = co_await connection.wait_for_close(5s);
    EXPECT_TRUE(ended);
  });
  EXPECT_EQ(taken_, 1s);
  EXPECT_TRUE(outcome_.reset);
  EXPECT_FALSE(outcome_.closed_by_server);
  EXPECT_EQ(describe(outcome_), "reset without an answer");
}

TEST_F(CheckConnectionTest, ASendHasALimit) {
  const Behaviour silent = [](tcp::Stream) -> Task<> { std::ignore = co_await sleep(60s); };
  const std::string flood(1 << 20, 'a');
  run_client(silent, [&](CheckConnection& connection) -> Task<> {
    const bool sent = co_await connection.send(flood, 3s);
    EXPECT_FALSE(sent);
    EXPECT_FALSE(connection.is_closed());
  });
  EXPECT_EQ(taken_, 3s);
}

TEST_F(CheckConnectionTest, ACancellationEndsTheWait) {
  const Behaviour silent = [](tcp::Stream) -> Task<> { std::ignore = co_await sleep(60s); };
  run_client(silent, [&](CheckConnection& connection) -> Task<> {
    Context context = co_await this_context();
    CancelSource cancel(context.cancel);
    context.cancel = &cancel;
    platform_.at(platform_.now() + 1s, [&cancel] { cancel.cancel(); });
    auto waiting = in_context(context, connection.wait_for_close(10s));
    const bool ended = co_await std::move(waiting);
    EXPECT_FALSE(ended);
  });
  EXPECT_EQ(taken_, 1s);
  EXPECT_FALSE(outcome_.closed_by_server || outcome_.reset);
}

TEST_F(CheckConnectionTest, AFailedConnectHasAReason) {
  const auto connect = [&]() -> Task<> {
    CheckConnection connection(target_);
    const bool opened = co_await connection.open();
    EXPECT_FALSE(opened);
    EXPECT_TRUE(connection.is_closed());
    co_await connection.send_and_receive("x", until(1, 5s));
    const bool ended = co_await connection.wait_for_close(5s);
    EXPECT_TRUE(ended);
    connection.finish_writing();
    outcome_ = connection.outcome();
  };
  run(connect());
  EXPECT_TRUE(outcome_.connect_error.starts_with("no connection: ")) << outcome_.connect_error;
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(CheckConnectionTest, AConnectHasTheTimeoutOfTheTarget) {
  const auto connect = [&]() -> Task<> {
    const ListenOptions small{.backlog = 0};
    const auto listener = co_await tcp::listen(target_.endpoint, small);
    const auto first = co_await tcp::connect(target_.endpoint);
    EXPECT_TRUE(listener && first);
    CheckConnection connection(target_);
    const bool opened = co_await connection.open();
    EXPECT_FALSE(opened);
    outcome_ = connection.outcome();
  };
  run(connect());
  EXPECT_EQ(outcome_.connect_error, "no connection: " + make_error_code(Errc::timed_out).message());
  EXPECT_EQ(elapsed(), 2s);
}

}  // namespace
}  // namespace weir::check::check_connection_test
