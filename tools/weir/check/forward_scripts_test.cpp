// Tests of the cases about TRACE and about names with a dot at their end.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::forward_scripts_test {
namespace {

using http::FrameFlag;
using http::FrameType;

class ForwardScripts : public ScriptTest {
 protected:
  /// Answers stream 1 with this status and body.
  std::string check_frames(std::string_view name, const std::string& status,
                           const std::string& body = {}) {
    std::string frames = h2_frame(FrameType::settings, 0, 0, "");
    if (!status.empty()) {
      frames +=
          h2_frame(FrameType::headers, FrameFlag::end_headers, 1, h2_block({{":status", status}})) +
          h2_frame(FrameType::data, FrameFlag::end_stream, 1, body);
    }
    return check(name, [this, frames](tcp::Stream stream) {
      return serve(std::move(stream), frames, received_);
    });
  }
  std::string received_;

 private:
  static Task<> serve(tcp::Stream stream, std::string frames, std::string& received) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    received = input->text();
    std::ignore = co_await stream.write(frames);
    co_await read_to_end(stream);
  }
};

TEST_F(ForwardScripts, TraceOfNoHopEchoesNothing) {
  const std::string name = "answers/trace-of-no-hop";
  EXPECT_EQ(check_replies(name, {{response(405)}}), "passed: 405, kept open");
  EXPECT_EQ(
      verdict_.sent,
      "TRACE / HTTP/1.1\r\nHost: a.test:8080\r\nMax-Forwards: 0\r\nX-Weir-Check: echo\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{response(200)}}), "failed: 200, kept open");
  EXPECT_EQ(check_replies(name, {{response(405, "", "X-Weir-Check: echo")}}),
            "failed: 405, kept open");
  EXPECT_EQ(check_replies(name, {{"", true}}), "passed: closed without an answer");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
}

TEST_F(ForwardScripts, TraceOverHttp2EchoesNothing) {
  const std::string name = "http2/trace";
  EXPECT_EQ(check_frames(name, "405"), "passed: 405");
  EXPECT_EQ(check_frames(name, "501"), "passed: 501");
  EXPECT_EQ(check_frames(name, "200"), "failed: 200");
  EXPECT_EQ(check_frames(name, "405", "x-weir-check: echo"), "failed: 405");
  EXPECT_EQ(check_frames(name, ""), "failed: no answer");
}

TEST_F(ForwardScripts, ANameWithADotIsTheSameName) {
  const std::string name = "host/trailing-dot";
  EXPECT_EQ(check_replies(name, {{response(200)}}), "passed: 200, kept open");
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: a.test.:8080\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{response(421)}}),
            "failed: 421, kept open (--lenient accepts it)");
  EXPECT_EQ(check_replies(name, {{response(500)}}), "failed: 500, kept open");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
  target_.lenient = true;
  EXPECT_EQ(check_replies(name, {{response(421)}}), "passed: 421, kept open");
  EXPECT_EQ(check_replies(name, {{response(500)}}), "failed: 500, kept open");
  target_.authority = "a.test";
  EXPECT_EQ(check_replies(name, {{response(200)}}), "passed: 200, kept open");
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: a.test.\r\n\r\n");
  target_.authority = "[::1]:80";
  check_replies(name, {{response(200)}});
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
}

TEST_F(ForwardScripts, ANameWithADotIsTheSameNameOverHttp2) {
  const std::string name = "http2/trailing-dot";
  EXPECT_EQ(check_frames(name, "200"), "passed: 200");
  EXPECT_TRUE(received_.contains("a.test.:8080"));
  EXPECT_EQ(check_frames(name, "421"), "failed: 421 (--lenient accepts it)");
  EXPECT_EQ(check_frames(name, ""), "failed: no answer");
}

}  // namespace
}  // namespace weir::check::forward_scripts_test
