// Tests the limit of the bodies that the handlers of one HTTP/2 connection collect.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::h2_connection_bodies_test {
namespace {

using namespace frames;

constexpr std::size_t body_size = 150'000;
constexpr std::uint32_t uploads_max = 20;

/// A client that sends bodies in the windows that the server allows.
class H2ConnectionBodies : public H2ConnectionFixture, public ::testing::Test {
 protected:
  struct Upload {
    std::uint32_t id = 0;
    std::int64_t window = window_default;
    std::size_t left = body_size;
    bool answered = false;
  };

  H2ConnectionBodies() {
    limits_.body_max = body_size;
    limits_.h2.bodies_max = 200'000;
    routes_.post("/", [](Request& request) -> Task<Response> {
      const auto body = co_await request.body();
      if (!body) co_return Response(body.error());
      co_return text(std::to_string(body->size()));
    });
    routes_.post("/late", [](Request& request) -> Task<Response> {
      std::ignore = co_await request.body();
      std::ignore = co_await sleep(std::chrono::hours(1));
      co_return text("late");
    });
  }
  void begin_uploads() {
    begin(limits_);
    before_ = allocated_bytes();
    for (std::uint32_t index = 0; index < uploads_max; ++index) {
      uploads_.push_back({.id = 2 * index + 1});
      talk_once(post(uploads_.back().id, "/"));
    }
  }
  /// Sends a part of each body, if its window allows it. Returns false if none could be sent.
  bool send_parts() {
    bool sent = false;
    for (Upload& each : uploads_) {
      constexpr std::size_t part = 10'000;
      const auto size = std::min(
          {part, each.left,
           static_cast<std::size_t>(std::max<std::int64_t>(std::min(each.window, window_), 0))});
      if (size == 0) continue;
      sent = true;
      each.left -= size;
      each.window -= static_cast<std::int64_t>(size);
      window_ -= static_cast<std::int64_t>(size);
      const std::uint8_t flags = each.left == 0 ? FrameFlag::end_stream : 0;
      talk_once(data(each.id, std::string(size, 'x'), flags));
    }
    return sent;
  }
  void talk_once(std::string_view input) {
    std::istringstream lines(answer(input));
    held_ = std::max(held_, allocated_bytes());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind;
      std::uint32_t id = 0;
      std::int64_t increment = 0;
      words >> kind >> id;
      if (line.find(" :status=408 ") != line.npos) ++rejected_;
      const auto found = std::ranges::find(uploads_, id, &Upload::id);
      if (kind == "window_update") {
        words >> increment;
        if (id == 0) window_ += increment;
        if (found != uploads_.end()) found->window += increment;
      } else if (kind == "data") {
        if (found != uploads_.end()) found->answered = line.ends_with(" 150000 end");
      }
    }
  }
  std::size_t complete() const {
    return static_cast<std::size_t>(std::ranges::count(uploads_, 0U, &Upload::left));
  }

  Limits limits_;
  std::vector<Upload> uploads_;
  std::int64_t window_ = 1024 * 1024;
  std::size_t before_ = 0;
  std::size_t held_ = 0;
  std::size_t rejected_ = 0;
};

TEST_F(H2ConnectionBodies, AllArriveAlthoughTogetherTheyExceedTheLimit) {
  begin_uploads();
  while (send_parts()) {
  }
  EXPECT_TRUE(std::ranges::all_of(uploads_, &Upload::answered));
  if (before_ != 0) {
    const std::size_t windows = uploads_max * limits_.h2.stream_window;
    EXPECT_LE(held_ - before_, 2 * (limits_.h2.bodies_max + body_size + windows) + (64U << 10U));
    EXPECT_LT(held_ - before_, uploads_max * body_size) << "the bodies would fit";
  }
}

TEST_F(H2ConnectionBodies, WaitForOneThatHasARequest) {
  begin(limits_);
  // These requests hold the limit, and one more body.
  for (std::uint32_t id = 1; id < 8; id += 2) {
    uploads_.push_back({.id = id});
    talk_once(post(id, "/late"));
  }
  while (send_parts()) {
  }
  EXPECT_EQ(complete(), 1U);
  // Clients that may not send are not to blame.
  pass(std::chrono::seconds(60));
  talk_once({});
  EXPECT_FALSE(send_parts());
  // A short body never waits.
  EXPECT_TRUE(answer(post(9, "/") + data(9, std::string(16'000, 'x'), FrameFlag::end_stream))
                  .ends_with("data 9 16000 end\n"));
  // The end of one lets others go on.
  for (std::size_t round = 0; round < uploads_.size(); ++round) {
    for (Upload& each : uploads_) {
      if (each.left == 0 && !each.answered) talk_once(rst_stream(each.id));
      each.answered = each.left == 0;
    }
    while (send_parts()) {
    }
  }
  EXPECT_EQ(complete(), 4U);
  EXPECT_EQ(rejected_, 0U);
}

TEST_F(H2ConnectionBodies, ClientsThatMaySendAndDoNotAreRejected) {
  begin_uploads();
  for (int part = 0; part < 8; ++part) send_parts();  // all but one have used up their windows
  EXPECT_EQ(complete(), 0U);
  pass(std::chrono::seconds(22));
  talk_once({});
  EXPECT_EQ(rejected_, 1U);
  for (std::uint32_t round = 0; round < uploads_max; ++round) {
    pass(std::chrono::seconds(22));
    talk_once({});
  }
  EXPECT_EQ(rejected_, uploads_max);
}

TEST_F(H2ConnectionBodies, LeaveTheWindowToOthersIfNobodyReadsThem) {
  limits_.h2.bodies_max = Limits().h2.bodies_max;
  routes_.post("/unread", []() -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::hours(1));
    co_return text("late");
  });
  routes_.post("/first", [](Request& request) -> Task<Response> {
    std::ignore = co_await request.read();
    std::ignore = co_await sleep(std::chrono::hours(1));
    std::ignore = co_await request.body();
    co_return text("late");
  });
  begin(limits_);
  for (std::uint32_t index = 0; index < 100; ++index) {
    uploads_.push_back({.id = 2 * index + 1});
    talk_once(post(uploads_.back().id, index % 2 == 0 ? "/unread" : "/first"));
  }
  while (send_parts()) {
  }
  for (const Upload& each : uploads_) {
    EXPECT_EQ(each.window, 0) << "its stream alone limits the body";
  }
  EXPECT_GT(window_, 0);
  uploads_.push_back({.id = 201});
  talk_once(post(201, "/"));
  while (send_parts()) {
  }
  EXPECT_TRUE(uploads_.back().answered);
}

/// An upload that is answered before its end.
class H2LateBodies : public H2ConnectionFixture, public ::testing::Test {
 protected:
  H2LateBodies() {
    routes_.post("/refuses", [] { return Response(Status::forbidden); });
    routes_.post("/reads-a-part", [](Request& request) -> Task<Response> {
      std::ignore = co_await request.read();
      co_return Response(Status::too_many_requests);
    });
    routes_.post("/collects", [](Request& request) -> Task<Response> {
      std::ignore = co_await timeout(std::chrono::milliseconds(1), request.body());
      co_return Response(Status::too_many_requests);
    });
    routes_.get("/", [] { return text("hello"); });
  }
  std::uint64_t open_streams() { return server_->counters().http2_streams_open.value(); }
};

TEST_F(H2LateBodies, AreDroppedUntilTheirEnd) {
  begin();
  std::uint32_t id = 1;
  for (const char* const path : {"/refuses", "/reads-a-part", "/collects"}) {
    SCOPED_TRACE(path);
    std::string lines = answer(post(id, path) + data(id, std::string(16'000, 'x')));
    pass(std::chrono::milliseconds(1));
    lines += received();
    EXPECT_NE(lines.find("head " + std::to_string(id) + " :status=4"), lines.npos) << lines;
    // Much more than the windows that the client has at first.
    for (int count = 0; count < 200; ++count) lines += answer(data(id, std::string(16'000, 'x')));
    EXPECT_EQ(open_streams(), 1U);
    lines += answer(data(id, "", FrameFlag::end_stream));
    EXPECT_EQ(lines.find("reset"), lines.npos) << lines;
    EXPECT_EQ(lines.find("goaway"), lines.npos) << lines;
    EXPECT_EQ(open_streams(), 0U);
    id += 2;
  }
  EXPECT_TRUE(answer(get(id, "/")).ends_with("data " + std::to_string(id) + " hello end\n"));
}

TEST_F(H2LateBodies, EndWithoutProgress) {
  begin();
  EXPECT_EQ(answer(post(1, "/refuses")).find("reset"), std::string::npos);
  pass(std::chrono::milliseconds(900));
  EXPECT_EQ(received(), "");
  EXPECT_EQ(answer(data(1, "x")), "");
  pass(std::chrono::milliseconds(900));
  EXPECT_EQ(received(), "");
  pass(std::chrono::milliseconds(1200));  // it looks once per second
  EXPECT_EQ(received(), "reset 1 0\n");
  EXPECT_EQ(open_streams(), 0U);
}

TEST_F(H2LateBodies, EndAtTheirLimits) {
  Limits limits;
  limits.rejected_body_max = 100'000;
  limits.rejected_body_timeout = std::chrono::seconds(5);
  begin(limits);
  std::string lines = answer(post(1, "/refuses"));
  for (int count = 0; count < 10; ++count) lines += answer(data(1, std::string(10'000, 'x')));
  EXPECT_EQ(lines.find("reset"), lines.npos) << lines;
  EXPECT_TRUE(answer(data(1, "x")).ends_with("reset 1 0\n"));
  lines = answer(post(3, "/refuses"));
  for (int count = 0; count < 14; ++count) {
    pass(std::chrono::milliseconds(500));
    lines += answer(data(3, "x"));
  }
  EXPECT_NE(lines.find("reset 3 0\n"), lines.npos) << lines;
}

TEST_F(H2LateBodies, LeaveWithTheirClient) {
  begin();
  answer(post(1, "/refuses") + post(3, "/refuses"));
  EXPECT_EQ(open_streams(), 2U);
  EXPECT_EQ(answer(rst_stream(1)), "");
  EXPECT_EQ(open_streams(), 1U);
  peer_->reset();
  pass(std::chrono::seconds(1));
  EXPECT_EQ(open_streams(), 0U);
}

TEST_F(H2LateBodies, EndSoonWhenTheServerDrains) {
  begin();
  answer(post(1, "/refuses"));
  drain();
  for (int count = 0; count < 8; ++count) {
    pass(std::chrono::milliseconds(500));
    answer(data(1, "x"));
  }
  EXPECT_EQ(open_streams(), 0U);
  EXPECT_TRUE(peer_->ended());
}

TEST(H2BodiesBound, IsSmallForManyStreams) {
  const Limits limits;
  const MemoryBound bound = memory_bound(limits, {.connections_max = 1, .http2 = true});
  EXPECT_LT(bound.connection, 96U << 20U);
  Limits more = limits;
  more.h2.bodies_max *= 2;
  EXPECT_EQ(memory_bound(more, {.connections_max = 1, .http2 = true}).connection,
            bound.connection + 2 * limits.h2.bodies_max);
}

}  // namespace
}  // namespace weir::http::h2_connection_bodies_test
