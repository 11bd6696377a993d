// Tests of the limits for answers that come before the end of the request's body, to clients that
// send on and read nothing before all is sent. tests/messages tests that such answers arrive. Over
// HTTP/2, they end only their own stream.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/test/carrier_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::early_answer_test {
namespace {

constexpr std::size_t mebibyte = 1024 * 1024;

/// What has become of one request.
struct Outcome {
  std::error_code write_error;  ///< why the client could not send all
  Duration took{};              ///< until the connection ended
};

class EarlyAnswerTest : public CarrierTest {
 protected:
  EarlyAnswerTest() {
    constexpr std::uint64_t most = 64 * mebibyte;
    routes_.post("/refuses", [] { return Response(Status::forbidden); }, {.body_max = most});
  }

  std::string head(std::size_t bytes) const {
    return std::string("POST /refuses ") + version() +
           "\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  }
  /// Sends the head and then `bytes` bytes of a body, `pause` after each `step`. Reads afterwards.
  Task<Outcome> send_all(std::string head, std::size_t bytes, std::size_t step, Duration pause) {
    Outcome outcome;
    const Instant start = loop_->now();
    auto connecting = connect_as_carrier();
    AnyStream stream = co_await std::move(connecting);
    EXPECT_TRUE(co_await stream->write(head));
    const std::string piece(step, 'x');
    for (std::size_t sent = 0; sent < bytes && !outcome.write_error; sent += step) {
      const Result<> written = co_await stream->write(piece);
      if (!written) outcome.write_error = written.error();
      if (pause > Duration::zero()) std::ignore = co_await sleep(pause);
    }
    for (bool open = true; open;) {
      const auto more = co_await stream->read();
      open = more.has_value();
    }
    outcome.took = loop_->now() - start;
    co_return outcome;
  }
  Outcome upload(std::string head, std::size_t bytes, std::size_t step = 64 * 1024,
                 Duration pause = Duration::zero()) {
    return weir::run(*loop_, send_all(std::move(head), bytes, step, pause));
  }
};
INSTANTIATE_TEST_SUITE_P(On, EarlyAnswerTest, carriers_of_http_1(), carrier_name);

TEST_P(EarlyAnswerTest, ConnectionReadsAtMostTheLimit) {
  serve({.rejected_body_max = mebibyte});
  EXPECT_TRUE(upload(head(8 * mebibyte), 8 * mebibyte).write_error);
  EXPECT_FALSE(upload(head(mebibyte), mebibyte).write_error);
}

TEST_P(EarlyAnswerTest, ConnectionEndsWithoutProgress) {
  serve();
  const auto open = [this] { return server_->counters().connections_open.value(); };
  const auto talk = [&]() -> Task<> {
    auto connecting = connect_as_carrier();
    AnyStream stream = co_await std::move(connecting);
    EXPECT_TRUE(co_await stream->write(head(8 * mebibyte) + "a part"));
    std::ignore = co_await sleep(900ms);
    EXPECT_EQ(open(), 1U);
    std::ignore = co_await sleep(200ms);
    EXPECT_EQ(open(), 0U);
  };
  weir::run(*loop_, talk());
}

TEST_P(EarlyAnswerTest, SlowBodyDoesNotHoldTheConnection) {
  serve({.rejected_body_timeout = 5s});
  const Outcome outcome = upload(head(8 * mebibyte), 20, 1, 500ms);
  EXPECT_TRUE(outcome.write_error);
  EXPECT_LT(outcome.took, 7s);
}

TEST_P(EarlyAnswerTest, DrainEndsTheWait) {
  serve();
  const auto drain_later = [this]() -> Task<> {
    std::ignore = co_await sleep(2s);
    drain();
  };
  Outcome outcome;
  const auto talk = [&](Scope& scope) -> Task<> {
    scope.spawn(drain_later());
    outcome = co_await send_all(head(8 * mebibyte), 40, 1, 500ms);
  };
  std::ignore = weir::run(*loop_, with_scope(OnFailure::isolate, talk));
  EXPECT_TRUE(outcome.write_error);
  EXPECT_LT(outcome.took, 5s);
}

}  // namespace
}  // namespace weir::http::early_answer_test
