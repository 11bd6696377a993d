// Tests HTTP/2 connections whose clients are slow, fast or unusual, in virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/server/detail/turn_share.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_connection_load_test {
namespace {

using namespace frames;

constexpr std::uint8_t end_stream = FrameFlag::end_stream;

class H2ConnectionLoadTest : public H2ConnectionFixture, public ::testing::Test {
 public:
  /// Sends as much as the server accepts without reading. Returns the number of bytes.
  std::size_t push(std::string_view input) {
    const std::size_t all = input.size();
    while (!input.empty()) {
      const std::size_t sent = peer_->send(input);
      input.remove_prefix(sent);
      settle();
      if (sent == 0) break;
    }
    return all - input.size();
  }
};

Task<Response> count_body(Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return Response(body.error());
  co_return text(std::to_string(body->size()));
}

TEST_F(H2ConnectionLoadTest, StopsReadingWhileTheClientDoesNotRead) {
  routes_.get("/", [] { return text("hello"); });
  begin();
  std::string input;
  for (std::uint32_t id = 1; id < 20'000; id += 2) input += request(id, "HEAD", "/");
  const std::size_t sent = push(input);
  EXPECT_LT(sent, input.size());
  // The client goes on later, and gets all answers.
  std::string_view rest(input);
  rest.remove_prefix(sent);
  std::string answers = peer_->take();
  while (!rest.empty()) {
    const std::size_t more = push(rest);
    rest.remove_prefix(more);
    const std::string bytes = peer_->take();
    answers += bytes;
    ASSERT_TRUE(more != 0 || !bytes.empty());
  }
  for (std::string bytes(1, 'x'); !bytes.empty();) {
    settle();
    bytes = peer_->take();
    answers += bytes;
  }
  EXPECT_NE(receiver_.read(answers).find("head 19999 "), std::string::npos);
}

TEST_F(H2ConnectionLoadTest, RequestsOfOneTurnAreLimited) {
  routes_.get("/", [] { return text("hello"); });
  routes_.get("/slow", [this] {
    platform_.clock().move_to(platform_.now() + std::chrono::microseconds(60));
    return text("hello");
  });
  const auto turns = [this] { return loop_->counters().turns.value(); };
  begin();
  std::string many;
  for (std::uint32_t id = 1; id < 1200; id += 2) many += request(id, "HEAD", "/");
  std::uint64_t before = turns();
  std::string lines = answer(many);
  EXPECT_NE(lines.find("head 1199 :status=200"), lines.npos);
  EXPECT_GE(turns() - before, 600 / TurnShare::requests_max);
  std::string slow;
  for (std::uint32_t id = 1201; id < 1401; id += 2) slow += request(id, "HEAD", "/slow");
  before = turns();
  lines = answer(slow);
  EXPECT_NE(lines.find("head 1399 :status=200"), lines.npos);
  EXPECT_GE(turns() - before, 100U / 9) << "200 us, and the requests until the next look";
}

TEST_F(H2ConnectionLoadTest, ReadsABodyWhoseFrameIsIncomplete) {
  const auto late = [](Request& request) -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::seconds(1));
    co_return co_await count_body(request);
  };
  routes_.post("/", late);
  Limits limits;
  limits.body_max = 10'000'000;
  begin(limits);
  const std::string whole = data(1, std::string(16'384, 'x'));
  EXPECT_EQ(answer(post(1, "/") + whole.substr(0, 8'000)), "");
  pass(std::chrono::seconds(1));
  EXPECT_EQ(answer(whole.substr(8'000)), "");
  // All of the window was returned: more than it can follow.
  for (int count = 0; count < 100; ++count) answer(whole);
  const std::string last = answer(data(1, "", end_stream));
  EXPECT_TRUE(last.ends_with("data 1 1654784 end\n")) << last;
}

TEST_F(H2ConnectionLoadTest, AcceptsAnUploadThatNeverPausesBetweenFrames) {
  routes_.post("/", count_body);
  Limits limits;
  limits.body_max = 10'000'000;
  begin(limits);
  answer(post(1, "/"));
  const std::string whole = data(1, std::string(16'384, 'x'));
  std::string lines = answer(whole.substr(0, 5));
  for (int count = 0; count < 30; ++count) {
    pass(std::chrono::seconds(1));
    lines += answer(whole.substr(5) + whole.substr(0, 5));
  }
  EXPECT_EQ(lines.find("goaway"), std::string::npos) << lines;
  // One frame may take longer than a head may.
  answer(whole.substr(5));
  answer(whole.substr(0, 20));
  for (int count = 0; count < 30; ++count) {
    pass(std::chrono::seconds(1));
    lines += answer(whole.substr(20 + 300 * static_cast<std::size_t>(count), 300));
  }
  answer(whole.substr(20 + 9'000));
  lines = answer(data(1, "", end_stream));
  EXPECT_TRUE(lines.ends_with("data 1 524288 end\n")) << lines;
}

/// Returns the bytes of DATA on each stream in complete frames.
std::map<std::uint32_t, std::string> bodies_of(std::string_view bytes) {
  std::map<std::uint32_t, std::string> bodies;
  FrameReader reader;
  for (Bytes left = to_bytes(bytes);;) {
    const FrameEvent event = reader.next(left);
    if (event.kind == FrameEvent::Kind::need_more) return bodies;
    if (event.kind == FrameEvent::Kind::data) bodies[event.stream] += to_text(event.bytes);
    left = left.subspan(event.consumed);
  }
}

std::string pattern(std::size_t size, char first) {
  std::string text(size, first);
  for (std::size_t at = 0; at < size; ++at) {
    text[at] = static_cast<char>(first + static_cast<int>(at / 7 % 26));
  }
  return text;
}

/// A client with large windows that reads a part of the responses at a time.
class LargeResponses : public H2ConnectionFixture {
 public:
  LargeResponses() {
    routes_.get("/text", [this] { return text(large); });
    routes_.get("/stream", [this] {
      return stream("text/plain", {}, [this](BodySink& body) -> Task<Result<>> {
        for (int count = 0; count < 3; ++count) {
          const std::string piece = large;  // its memory ends with the handler
          WEIR_CO_TRY(co_await body.write(to_bytes(piece)));
        }
        co_return {};
      });
    });
    begin({}, setting(SettingId::initial_window_size, 10'000'000));
    answer(window_update(0, 100'000'000));
  }
  /// Sends `input`, and returns what the server sends until it has nothing more.
  std::string read_all(std::string_view input) {
    std::string bytes = talk(*peer_, input);
    for (std::string more(1, 'x'); !more.empty(); bytes += more) more = read_more();
    return bytes;
  }
  std::string read_more() { return settle(), peer_->take(); }

  const std::string large = pattern(300'000, 'a');
};

TEST(H2LargeResponses, ArriveWhole) {
  LargeResponses run;
  const auto got = bodies_of(run.read_all(get(1, "/text") + get(3, "/stream") + get(5, "/text")));
  EXPECT_TRUE(got.at(1) == run.large);
  EXPECT_TRUE(got.at(3) == run.large + run.large + run.large);
  EXPECT_TRUE(got.at(5) == run.large);
}

TEST(H2LargeResponses, AreResetWithoutHarmToOthers) {
  for (std::size_t size = 10; size < 200'000; size = size * 5 / 3) {
    SCOPED_TRACE(size);
    LargeResponses run;
    std::string bytes = run.talk(*run.peer_, get(1, "/stream") + get(3, "/text"));
    for (std::string more(1, 'x'); !more.empty() && bytes.size() < size; bytes += more) {
      more = run.read_more();
    }
    bytes += run.read_all(rst_stream(1));
    const auto got = bodies_of(bytes);
    EXPECT_TRUE(got.at(3) == run.large);
    EXPECT_LT(got.at(1).size(), 3 * run.large.size());
    EXPECT_TRUE((run.large + run.large + run.large).starts_with(got.at(1)));
  }
}

TEST_F(H2ConnectionLoadTest, EndsFramesThatStall) {
  begin();
  answer(headers(1, "", 0) + get(1, "/").substr(0, 5));
  pass(std::chrono::seconds(9));
  EXPECT_EQ(received(), "");
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(received().ends_with(" e11\n"));
}

TEST_F(H2ConnectionLoadTest, KeepsAStreamThatWaitsBehindAnother) {
  routes_.get("/", [] { return text(std::string(100'000, 'x')); });
  begin({}, setting(SettingId::initial_window_size, 1'000'000));
  answer(get(1, "/") + get(3, "/"));
  std::string lines;
  for (int count = 0; count < 30; ++count) {
    pass(std::chrono::seconds(1));
    lines += answer(window_update(0, 1'000));
  }
  EXPECT_EQ(lines.find("reset"), std::string::npos);
  lines += answer(window_update(0, 200'000));
  EXPECT_TRUE(lines.ends_with(" end\n"));
}

// Each body keeps its share of the window until its handler reads it.
TEST_F(H2ConnectionLoadTest, LeavesTheWindowOfUnreadBodiesToOthers) {
  routes_.post("/", count_body);
  routes_.post("/late", []() -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::seconds(60));
    co_return text("late");
  });
  begin();
  std::string lines;
  for (std::uint32_t id = 1; id < 65; id += 2) {
    const std::string piece = data(id, std::string(16'000, 'x'));
    lines += answer(post(id, "/late") + piece + piece + piece + piece);
  }
  EXPECT_NE(lines.find("window_update 0 "), std::string::npos) << lines;
  EXPECT_EQ(lines.find("reset"), std::string::npos) << "2 MB in a window of 1 MiB";
  EXPECT_TRUE(answer(post(65, "/") + data(65, "hello", end_stream)).ends_with("data 65 5 end\n"));
  for (std::uint32_t id = 1; id < 65; id += 2) answer(data(id, "", end_stream));
  pass(std::chrono::seconds(62));
  lines = received();
  EXPECT_NE(lines.find("late"), std::string::npos) << lines;
}

TEST_F(H2ConnectionLoadTest, EndsConnectionsWithoutARequest) {
  begin();
  pass(std::chrono::seconds(16));
  EXPECT_EQ(received(), "goaway 0 e0\n");
}

TEST_F(H2ConnectionLoadTest, ObeysTheSmallestTableSizeOfItsSettings) {
  routes_.get("/", [] { return text("hello"); });
  begin({},
        setting(SettingId::header_table_size, 100) + setting(SettingId::header_table_size, 4'096));
  const std::string bytes = talk(*peer_, get(1, "/"));
  ASSERT_GT(bytes.size(), frame_header_size);
  EXPECT_EQ(bytes[frame_header_size], '\x20');
}

/// A server that drains while it works on the input of its client.
class DrainRun : public H2ConnectionFixture {
 public:
  DrainRun() : H2ConnectionFixture({.buffer_bytes = 1024 * 1024}) {}

  /// Drains in turn `at`. Returns false if the server has finished its work before.
  bool run(std::size_t frames, std::size_t at) {
    routes_.post("/", count_body);
    begin();
    answer(post(1, "/"));
    const std::string part = data(1, std::string(1'000, 'x'));
    std::string input;
    for (std::size_t count = 0; count < frames; ++count) input += part;
    peer_->send(input);
    bool worked = true;
    for (std::size_t count = 0; worked && count < at; ++count) worked = turn();
    drain();
    EXPECT_NE(received().find("goaway 2147483647 e0\n"), std::string::npos);
    return worked;
  }
};

// The reader ends its share of the turn at different places in the input.
TEST(H2ConnectionDrain, IsNoticedInEachTurn) {
  for (std::size_t frames = 200; frames < 400; frames += 7) {
    for (std::size_t at = 0;; ++at) {
      SCOPED_TRACE(testing::Message() << frames << " frames, turn " << at);
      DrainRun run;
      const bool worked = run.run(frames, at);
      run.shut_down();
      if (!worked || ::testing::Test::HasFailure()) break;
    }
  }
}

}  // namespace
}  // namespace weir::http::h2_connection_load_test
