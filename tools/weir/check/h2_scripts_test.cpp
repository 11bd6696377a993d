// Tests of the cases about HTTP/2 against servers with canned answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/h2_cases.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;
using http::H2Error;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

const std::string settings = h2_frame(FrameType::settings, 0, 0, "");

std::string reset(H2Error error) {
  return settings + h2_frame(FrameType::rst_stream, 0, 1, number(static_cast<unsigned>(error)));
}
std::string goaway(H2Error error) {
  return settings +
         h2_frame(FrameType::goaway, 0, 0, number(0) + number(static_cast<unsigned>(error)));
}
std::string answer(const std::string& status) {
  return settings +
         h2_frame(FrameType::headers, FrameFlag::end_headers, 1,
                  h2_block({{":status", status}, {"x", std::string(300, 'v')}})) +
         h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello\n");
}
const std::string pong = settings + h2_frame(FrameType::ping, FrameFlag::ack, 0, "8 bytes!");

class H2Scripts : public ScriptTest {
 protected:
  /// Returns the kind of the verdict on a server that gives this answer, and closes or not.
  std::string kind(const H2Case& test_case, const std::string& bytes, bool close = false) {
    const std::string text = check("http2/" + std::string(test_case.name), [&](tcp::Stream stream) {
      return serve(std::move(stream), bytes, close);
    });
    EXPECT_FALSE(verdict_.expected.empty()) << test_case.name;
    EXPECT_FALSE(verdict_.sent.empty()) << test_case.name;
    return text.substr(0, text.find(':'));
  }
  static Task<> serve(tcp::Stream stream, const std::string& bytes, bool close) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    const auto sent = co_await stream.write(bytes);
    if (sent && !close) co_await read_to_end(stream);
  }
  static std::vector<H2Case> cases_of(H2Wanted wanted) {
    std::vector<H2Case> all = h2_cases();
    std::erase_if(all, [wanted](const H2Case& each) { return each.wanted != wanted; });
    EXPECT_FALSE(all.empty());
    return all;
  }
};

TEST_F(H2Scripts, AGetNeedsTheAnswerOfTheBaseline) {
  const H2Case get = cases_of(H2Wanted::served).front();
  EXPECT_EQ(kind(get, answer("200")), "passed");
  EXPECT_EQ(verdict_.actual, "200");
  EXPECT_EQ(kind(get, answer("404")), "failed");
  EXPECT_EQ(kind(get, reset(H2Error::refused_stream)), "failed");
  EXPECT_EQ(kind(get, settings, true), "failed");
  EXPECT_EQ(kind(get, settings), "failed");
}

TEST_F(H2Scripts, MalformedRequestsNeedAStreamError) {
  for (const H2Case& each : cases_of(H2Wanted::stream_error)) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, reset(each.error)), "passed");
    EXPECT_EQ(kind(each, answer("400")), "passed");
    EXPECT_EQ(kind(each, goaway(H2Error::protocol_error)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, answer("200")), "failed");
    EXPECT_EQ(kind(each, answer("500")), "failed");
    EXPECT_EQ(kind(each, settings), "failed");
    EXPECT_EQ(kind(each, reset(H2Error::internal_error)), "failed");
  }
}

TEST_F(H2Scripts, InvalidFramesNeedAConnectionError) {
  for (const H2Case& each : cases_of(H2Wanted::connection_error)) {
    SCOPED_TRACE(each.name);
    target_.lenient = false;
    EXPECT_EQ(kind(each, goaway(each.error)), "passed");
    EXPECT_EQ(kind(each, goaway(H2Error::internal_error)), "failed");
    EXPECT_EQ(kind(each, settings, true), "failed");
    EXPECT_EQ(kind(each, answer("200")), "failed");
    target_.lenient = true;
    EXPECT_EQ(kind(each, goaway(H2Error::internal_error)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, settings), "failed");
  }
}

TEST_F(H2Scripts, FloodsMustNotBeServedToTheirEnd) {
  for (const H2Case& each : cases_of(H2Wanted::bounded)) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, goaway(H2Error::enhance_your_calm)), "passed");
    EXPECT_EQ(kind(each, settings, true), "passed");
    EXPECT_EQ(kind(each, settings), "passed");
    EXPECT_EQ(kind(each, pong), "failed");
  }
}

TEST_F(H2Scripts, AServerWithoutHttp2IsNotJudged) {
  const H2Case get = cases_of(H2Wanted::served).front();
  EXPECT_EQ(kind(get, response(505), true), "not applicable");
  EXPECT_EQ(verdict_.actual, "no HTTP/2: no HTTP/2 by prior knowledge");
  EXPECT_EQ(kind(get, "", true), "not applicable");
  EXPECT_EQ(kind(cases_of(H2Wanted::bounded).front(), response(400)), "not applicable");
}

TEST(H2Answers, ReadsFramesInPieces) {
  const std::string bytes = answer("200") + pong + goaway(H2Error::no_error);
  H2Answers answers;
  for (const char each : bytes) answers.read({&each, 1});
  EXPECT_TRUE(answers.speaks_h2());
  EXPECT_EQ(answers.on(1).status, 200);
  EXPECT_TRUE(answers.on(1).complete());
  EXPECT_FALSE(answers.on(3).complete());
  EXPECT_EQ(answers.pings(), 1U);
  EXPECT_EQ(answers.goaway(), H2Error::no_error);
}

TEST(H2Answers, ReadsABlockInContinuation) {
  const std::string block = h2_block({{":status", "204"}});
  H2Answers answers;
  answers.read(settings +
               h2_frame(FrameType::headers, FrameFlag::end_stream, 1, block.substr(0, 4)));
  EXPECT_FALSE(answers.on(1).ended);
  answers.read(h2_frame(FrameType::continuation, FrameFlag::end_headers, 1, block.substr(4)));
  EXPECT_EQ(answers.on(1).status, 204);
  EXPECT_TRUE(answers.on(1).ended);
}

TEST(H2Cases, HaveUniqueNamesAndSendFrames) {
  CheckTarget target;
  target.authority = "a.test";
  std::vector<std::string_view> names;
  for (const H2Case& each : h2_cases()) {
    names.push_back(each.name);
    EXPECT_GT(each.frames(target).size(), http::frame_header_size - 1) << each.name;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace weir::check
