// Tests of the cases about bodies against servers that return other bodies.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::body_scripts_test {
namespace {

using http::FrameFlag;
using http::FrameType;

constexpr std::string_view json = R"({"scroll_id":"abc"})";
const std::string closing = "Connection: close\r\n";

class BodyScripts : public ScriptTest {
 protected:
  BodyScripts() { target_.echo_path = "/echo"; }

  /// Returns the body of the first connection, which asks whether the path returns bodies. Answers
  /// the second one with `bytes`.
  std::string check_echo(std::string_view name, const std::string& bytes) {
    received_.clear();
    return check("bodies/" + std::string(name), [this, bytes](tcp::Stream stream) {
      return serve(std::move(stream), connections_ == 1 ? response(200, "", "hello") : bytes,
                   received_);
    });
  }
  static std::string answer(std::string_view body, int status = 200) {
    return response(status, "", body) + response(200, closing);
  }
  std::string received_;

 private:
  static Task<> serve(tcp::Stream stream, std::string bytes, std::string& received) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    received = input->text();
    std::ignore = co_await stream.write(bytes);
    co_await read_to_end(stream);
  }
};

TEST_F(BodyScripts, TheBodyComesBackWhateverTheMethodAndTheFraming) {
  for (const std::string_view name :
       {"post-chunked", "post-trailers", "delete", "delete-chunked", "get", "get-chunked",
        "options", "options-chunked", "query", "connection-length", "connection-coding"}) {
    EXPECT_EQ(check_echo(name, answer(json)), "passed: 200 × 2, kept open") << name;
    EXPECT_EQ(check_echo(name, answer("")),
              "failed: 200 × 2, kept open with 0 of 19 bytes, or with others");
    EXPECT_EQ(check_echo(name, answer("", 400)), "passed: 400, 200, kept open");
    EXPECT_EQ(check_echo(name, answer("", 500)), "failed: 500, 200, kept open");
    EXPECT_EQ(check_echo(name, answer("", 405)),
              "not applicable: 405, 200, kept open: the path does not have this method");
    EXPECT_EQ(check_echo(name, response(200, "", json)),
              "failed: 200, kept open: the next request is not served");
    EXPECT_EQ(check_echo(name, response(200, closing, json)), "passed: 200, kept open");
    EXPECT_EQ(check_echo(name, answer(json) + "junk"),
              "failed: 200 × 2, bytes that are not a response");
    EXPECT_EQ(check_echo(name, ""), "failed: no answer");
  }
}

TEST_F(BodyScripts, ACompressedBodyComesBackWithOrWithoutItsCoding) {
  for (const std::string_view name : {"gzip", "gzip-chunked"}) {
    EXPECT_EQ(check_echo(name, answer("hello")), "passed: 200 × 2, kept open");
    const std::size_t at = received_.find("\x1f\x8b");
    ASSERT_NE(at, received_.npos);
    EXPECT_EQ(check_echo(name, answer(received_.substr(at, 28))), "passed: 200 × 2, kept open");
    EXPECT_EQ(check_echo(name, answer("", 415)), "passed: 415, 200, kept open");
    EXPECT_TRUE(check_echo(name, answer("hell")).starts_with("failed: "));
  }
}

TEST_F(BodyScripts, TheEndOfTheStreamEndsABodyOfHttp2) {
  const auto frames = [](std::string_view body) {
    return h2_frame(FrameType::settings, 0, 0, "") +
           h2_frame(FrameType::headers, FrameFlag::end_headers, 1, h2_block({{":status", "200"}})) +
           h2_frame(FrameType::data, FrameFlag::end_stream, 1, body);
  };
  for (const std::string_view name :
       {"http2-post", "http2-delete", "http2-get", "http2-options", "http2-query"}) {
    EXPECT_EQ(check_echo(name, frames(json)), "passed: 200") << name;
    EXPECT_EQ(check_echo(name, frames("")), "failed: 200 with 0 of 19 bytes, or with others");
  }
  EXPECT_EQ(check_echo("http2-gzip", frames("hello")), "passed: 200");
  EXPECT_EQ(check_echo("http2-get", response(400)),
            "not applicable: no HTTP/2: no HTTP/2 by prior knowledge");
}

TEST_F(BodyScripts, NeedAPathThatReturnsBodies) {
  EXPECT_EQ(check_replies("bodies/get", {Reply(), {response(200)}}),
            "not applicable: 200, kept open: a POST to --echo-path does not return its body");
  target_.echo_path.clear();
  EXPECT_EQ(check_echo("get", ""), "not applicable: there is no --echo-path");
}

TEST_F(BodyScripts, SendWhatTheirNamesSay) {
  check_echo("delete-chunked", answer(json));
  EXPECT_TRUE(verdict_.sent.starts_with(
      "DELETE /echo HTTP/1.1\r\nHost: a.test:8080\r\nContent-Type: text/plain\r\n"
      "Transfer-Encoding: chunked\r\n\r\n13\r\n{\"scroll_id\":\"abc\"}\r\n0\r\n\r\nGET / "))
      << verdict_.sent;
  check_echo("connection-length", answer(json));
  EXPECT_TRUE(verdict_.sent.contains("Connection: keep-alive, Content-Length\r\n"));
  EXPECT_TRUE(verdict_.sent.contains("Content-Length: 19\r\n\r\n{"));
}

}  // namespace
}  // namespace weir::check::body_scripts_test
