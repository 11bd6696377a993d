// Tests of the contract of BodySink, through a server.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/message/body.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

/// Returns a request for "/" whose response is chunked in HTTP/1.1 only.
std::string get_of(int minor) {
  return "GET / HTTP/1." + std::to_string(minor) + "\r\nHost: a\r\n\r\n";
}

class BodySinkTest : public HttpTest {
 protected:
  bool gone() { return server_->counters().connections_open.value() == 0; }
};

#ifndef NDEBUG
Task<Result<>> write_twice(BodySink& sink, std::string piece) {
  auto one = sink.write(piece);
  auto other = sink.write(piece);
  static_cast<void>(co_await all(std::move(one), std::move(other)));
  co_return {};
}

// The client does not read, so the first call waits.
TEST_F(BodySinkTest, AssertsThatCallsDoNotOverlap) {
  routes_.get("/", [] { return stream(text_type, write_twice, std::string(1'000'000, 'x')); });
  serve();
  for (const int minor : {0, 1}) {
    MemoryPeer& peer = connect();
    const auto ask = [&] {
      peer.send(get_of(minor));
      settle();
    };
    EXPECT_DEATH(ask(), "BodySink::write\\(\\) must not overlap") << minor;
  }
}
#endif

/// Reuses one piece for calls that follow each other, some of which wait for the client.
Task<Result<>> write_numbers(BodySink& sink, int count) {
  std::string piece;
  for (int number = 0; number < count; ++number) {
    piece = std::to_string(number) + std::string(10'000, ' ') + "\n";
    if (auto sent = co_await sink.write(piece); !sent) co_return sent;
    piece.assign(piece.size(), '!');
    if (number % 7 == 0) static_cast<void>(co_await sleep(1ms));
  }
  co_return {};
}

TEST_F(BodySinkTest, PieceMayBeReusedWhenTheCallReturns) {
  constexpr int count = 50;
  routes_.get("/", [] { return stream(text_type, write_numbers, count); });
  serve();
  std::string expected;
  for (int number = 0; number < count; ++number) {
    expected += std::to_string(number) + std::string(10'000, ' ') + "\n";
  }
  for (const int minor : {0, 1}) {
    MemoryPeer& peer = connect();
    peer.send(get_of(minor));
    for (int round = 0; round < 200; ++round) {
      pass(1ms);
      peer.read(30'000);
    }
    const auto answers = sim::parse_http_responses(peer.received());
    ASSERT_EQ(sim::statuses_of(answers), "200") << minor;
    EXPECT_TRUE(answers[0].body == expected) << minor;
  }
}

std::error_code error_of(const Result<>& result) {
  return result ? std::error_code() : result.error();
}

/// Gives the client two seconds for a piece, and then continues as if nothing had happened.
Task<Result<>> write_with_timeout(BodySink& sink, std::vector<std::error_code>* seen) {
  const std::string piece(1'000'000, 'x');
  auto first = sink.write(piece);
  const auto cut = co_await timeout(2s, std::move(first));
  seen->push_back(error_of(cut));
  const auto later = co_await sink.write("more");
  seen->push_back(error_of(later));
  co_return {};
}

TEST_F(BodySinkTest, CancelledCallCutsTheResponseOff) {
  std::vector<std::error_code> seen;
  routes_.get("/", [&seen] { return stream(text_type, write_with_timeout, &seen); });
  serve();
  for (const int minor : {0, 1}) {
    SCOPED_TRACE(minor);
    seen.clear();
    MemoryPeer& peer = connect();
    peer.send(get_of(minor) + get_of(minor));
    settle();
    pass(1999ms);
    EXPECT_FALSE(gone());
    EXPECT_TRUE(seen.empty());
    pass(1ms);
    EXPECT_TRUE(gone()) << "the connection closes";
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0], Errc::timed_out);
    EXPECT_EQ(seen[1], Errc::cancelled);
    const std::string& received = peer.received();
    EXPECT_TRUE(received.starts_with("HTTP/1.1 200 ")) << received.substr(0, 40);
    EXPECT_TRUE(received.ends_with("xxx")) << "nothing follows the cut piece";
  }
  EXPECT_EQ(server_->counters().slow_readers.value(), 0U);
  EXPECT_EQ(server_->counters().handler_failures.value(), 0U);
}

}  // namespace
}  // namespace weir::http
