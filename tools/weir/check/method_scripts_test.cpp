// Tests of the cases about methods: the verdict on servers of every behaviour.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::method_scripts_test {
namespace {

using http::FrameFlag;
using http::FrameType;

const std::string allow = "Allow: GET, HEAD\r\n";

class MethodScripts : public ScriptTest {
 protected:
  /// Answers the head with `first` when its body has come, and the GET behind it with `second`.
  std::string check_method(std::string_view name, const Reply& first, const Reply& second) {
    return check_replies(name, {Reply(), first, second});
  }
  /// Answers with these frames when something has come.
  std::string check_frames(std::string_view name, const std::string& frames) {
    return check(name, [frames](tcp::Stream stream) { return serve(std::move(stream), frames); });
  }
  static Task<> serve(tcp::Stream stream, std::string frames) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    std::ignore = co_await stream.write(h2_frame(FrameType::settings, 0, 0, "") + frames);
    co_await read_to_end(stream);
  }
  static std::string answer(std::uint32_t stream, std::string status, std::string allowed = {}) {
    std::vector<H2Field> fields{{":status", std::move(status)}};
    if (!allowed.empty()) fields.push_back({"allow", std::move(allowed)});
    return h2_frame(FrameType::headers, FrameFlag::end_headers | FrameFlag::end_stream, stream,
                    h2_block(fields));
  }
};

TEST_F(MethodScripts, AMethodThatTheResourceLacksGets405WithAllowOr501) {
  for (const std::string name : {"method/query", "method/propfind", "method/purge"}) {
    EXPECT_EQ(check_method(name, {response(405, allow)}, {response(200)}),
              "passed: 405, 200, kept open");
    EXPECT_EQ(check_method(name, {response(405)}, {response(200)}),
              "failed: 405, 200, kept open without Allow");
    EXPECT_EQ(check_method(name, {response(501)}, {response(200)}), "passed: 501, 200, kept open");
    EXPECT_EQ(check_method(name, {response(200)}, {response(200)}), "passed: 200 × 2, kept open");
    EXPECT_EQ(check_method(name, {response(500)}, {response(200)}), "failed: 500, 200, kept open");
    EXPECT_EQ(check_method(name, {response(502)}, {response(200)}), "failed: 502, 200, kept open");
    EXPECT_EQ(check_method(name, {"", true}, {}), "failed: closed without an answer");
    EXPECT_EQ(check_method(name, {}, {}), "failed: no answer");
  }
  EXPECT_EQ(verdict_.sent,
            "PURGE / HTTP/1.1\r\nHost: a.test:8080\r\nContent-Type: text/plain\r\n"
            "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
}

TEST_F(MethodScripts, AMethodIsAValidToken) {
  const std::string name = "method/query";
  EXPECT_TRUE(check_method(name, {response(400)}, {response(200)}).starts_with("failed: 400, 200"));
  target_.lenient = true;
  EXPECT_TRUE(check_method(name, {response(400)}, {response(200)}).starts_with("passed: 400, 200"));
}

TEST_F(MethodScripts, TheNextRequestIsServedUnlessTheServerCloses) {
  const std::string name = "method/query";
  EXPECT_EQ(check_method(name, {response(501)}, {}),
            "failed: 501, kept open: the next request gets no answer");
  EXPECT_EQ(check_method(name, {response(501, "Connection: close\r\n"), true}, {}),
            "passed: 501, closed");
  EXPECT_EQ(check_method(name, {response(501)}, {"junk"}),
            "failed: 501, bytes that are not a response");
}

TEST_F(MethodScripts, TheSameHoldsOverHttp2) {
  const std::string name = "http2/method-query";
  EXPECT_EQ(check_frames(name, answer(1, "405", "GET") + answer(3, "200")), "passed: 405");
  EXPECT_EQ(check_frames(name, answer(1, "405") + answer(3, "200")), "failed: 405 without Allow");
  EXPECT_EQ(check_frames(name, answer(1, "501") + answer(3, "200")), "passed: 501");
  EXPECT_EQ(check_frames(name, answer(1, "500") + answer(3, "200")), "failed: 500");
  EXPECT_EQ(check_frames(name, answer(1, "501") + answer(3, "404")), "failed: 501, then 404");
  EXPECT_EQ(check_frames(name, answer(1, "501")), "failed: 501, then no answer");
  EXPECT_EQ(check_frames(name, ""), "failed: no answer");
}

}  // namespace
}  // namespace weir::check::method_scripts_test
