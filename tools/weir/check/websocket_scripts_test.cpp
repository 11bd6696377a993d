// Tests of the cases about WebSockets against servers with canned answers.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/test/script_fixture.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/http/ws/detail/handshake.hpp"

namespace weir::check::websocket_scripts_test {
namespace {

constexpr std::string_view end_of_head = "\r\n\r\n";

/// The behaviour of a server on each connection.
struct Manner {
  std::string head;         ///< the response to a handshake that is complete
  std::string refusal;      ///< the response to another request
  std::string frames = {};  ///< sent when something has come behind the handshake
  bool closes = false;      ///< the server closes then
};

class WebSocketScripts : public ScriptTest {
 protected:
  WebSocketScripts() {
    target_.get = {200, ""};
    target_.websocket_path = "/ws";
    const http::WsAccept accept = http::websocket_accept("dGhlIHNhbXBsZSBub25jZQ==");
    accepted_ =
        "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: " + std::string(accept.data(), accept.size()) +
        "\r\n\r\n";
  }
  std::string check_manner(std::string_view name, const Manner& manner) {
    const std::string verdict =
        check("websocket/" + std::string(name),
              [&manner](tcp::Stream stream) { return serve(std::move(stream), manner); });
    EXPECT_FALSE(verdict_.expected.empty());
    EXPECT_FALSE(verdict_.sent.empty());
    return verdict;
  }
  /// Refuses handshakes that lack a header of a complete one.
  static bool is_complete(std::string_view request) {
    const auto count = [request](std::string_view text) {
      std::size_t found = 0;
      for (std::size_t at = request.find(text); at != request.npos; at = request.find(text, at + 1))
        ++found;
      return found;
    };
    return count("Connection: Upgrade") == 1 && count("Upgrade: websocket") == 1 &&
           count("Version: 13") == 1 && count("dGhlIHNhbXBsZSBub25jZQ==") == 1 &&
           count("Origin") == 0;
  }
  static Task<> serve(tcp::Stream stream, const Manner& manner) {
    std::string input;
    bool answered = false;
    while (const auto piece = co_await stream.read()) {
      input += piece->text();
      const std::size_t end = input.find(end_of_head);
      if (end == input.npos) continue;
      if (!std::exchange(answered, true)) {
        const bool complete = is_complete(input.substr(0, end));
        const std::string& response = complete ? manner.head : manner.refusal;
        std::ignore = co_await stream.write(response);
        if (!complete) continue;
      }
      // The masked bytes of the last ping are at the end of all that is sent.
      const std::string last = websocket_frame(0x89, websocket_last_ping);
      if (!input.ends_with(last)) continue;
      std::ignore = co_await stream.write(manner.frames);
      if (manner.closes) co_return;
    }
  }
  static std::string close_frame(int code) {
    return {'\x88', 2, static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
  }

  std::string accepted_;
  const std::string refusal_ = "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n";
  const std::string pong_ = "\x8a\x04last";
};

TEST_F(WebSocketScripts, AcceptServersThatEndTheConnectionWithTheRightCode) {
  const auto closing = [&](int code) {
    return Manner{accepted_, refusal_, close_frame(code), true};
  };
  EXPECT_EQ(check_manner("no-mask", closing(1002)), "passed: 101, close 1002, closed");
  EXPECT_EQ(check_manner("text", closing(1007)), "passed: 101, close 1007, closed");
  EXPECT_EQ(check_manner("huge-length", closing(1009)), "passed: 101, close 1009, closed");
  EXPECT_EQ(check_manner("close", closing(4000)), "passed: 101, close 4000, closed");
  EXPECT_EQ(check_manner("text", closing(1002)),
            "failed: 101, close 1002, closed (--lenient accepts it)");
  EXPECT_EQ(check_manner("no-mask", {accepted_, refusal_, "", true}), "passed: 101, closed");
  target_.lenient = true;
  EXPECT_EQ(check_manner("text", closing(1002)), "passed: 101, close 1002, closed");
}

TEST_F(WebSocketScripts, RejectServersThatGoOn) {
  const Manner manner{accepted_, refusal_, pong_};
  for (const std::string_view name :
       {"no-mask",      "rsv1",        "rsv3",          "opcode-3",
        "opcode-11",    "long-ping",   "ping-fragment", "no-beginning",
        "two-messages", "long-length", "longer-length", "negative-length",
        "huge-length",  "text",        "text-end",      "close-1",
        "close-1005",   "close-999",   "close-5000",    "close-reason",
        "close"}) {
    EXPECT_EQ(check_manner(name, manner), "failed: 101, a pong, kept open") << name;
  }
  target_.timeout = std::chrono::seconds(2);
  EXPECT_EQ(check_manner("no-mask", {accepted_, refusal_}), "failed: 101, kept open");
}

TEST_F(WebSocketScripts, AcceptServersThatServe) {
  const Manner manner{accepted_, refusal_, pong_};
  for (const std::string_view name : {"fragments", "empty-fragments", "pong"}) {
    EXPECT_EQ(check_manner(name, manner), "passed: 101, a pong, kept open") << name;
    EXPECT_EQ(check_manner(name, {accepted_, refusal_, close_frame(1002), true}),
              "failed: 101, close 1002, closed");
  }
}

TEST_F(WebSocketScripts, ProbeTheServerAfterAFlood) {
  const std::string name = "fragment-flood";
  const std::string gone = "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n";
  target_.get.status = 400;  // as the refusal
  EXPECT_EQ(check_manner(name, {accepted_, refusal_, pong_}), "passed: 101, a pong, kept open");
  EXPECT_EQ(check_manner(name, {accepted_, refusal_, "", true}), "passed: 101, closed");
  const std::string verdict = check_manner(name, {accepted_, gone, pong_});
  EXPECT_TRUE(verdict.starts_with("failed: a GET behind the flood got: 500")) << verdict;
}

TEST_F(WebSocketScripts, CheckHandshakes) {
  const Manner right{accepted_, "HTTP/1.1 426 X\r\nContent-Length: 0\r\n\r\n", pong_};
  const Manner wrong{accepted_, accepted_, pong_};
  for (const std::string_view name :
       {"version", "no-version", "no-key", "short-key", "two-keys", "no-connection"}) {
    EXPECT_EQ(check_manner(name, right), "passed: 426, kept open") << name;
    EXPECT_TRUE(check_manner(name, wrong).starts_with("failed: 101")) << name;
  }
  EXPECT_EQ(check_manner("foreign-origin", right), "failed: 426, kept open");
  EXPECT_EQ(check_manner("foreign-origin",
                         {accepted_, "HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n", pong_}),
            "passed: 403, kept open");
}

TEST_F(WebSocketScripts, DoNotApplyToOtherPaths) {
  const std::string page = response(200);
  for (const std::string_view name : {"no-mask", "version", "bomb"}) {
    EXPECT_EQ(check_manner(name, {page, page}),
              "not applicable: 200, kept open: the path is no WebSocket");
  }
  const std::string wrong = "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: x\r\n\r\n";
  EXPECT_EQ(check_manner("no-mask", {wrong, refusal_, pong_}),
            "failed: 101 with a wrong Sec-WebSocket-Accept, a pong, kept open");
}

TEST_F(WebSocketScripts, SendABombOnlyToServersThatCompress) {
  EXPECT_EQ(check_manner("bomb", {accepted_, refusal_, pong_}),
            "not applicable: the server does not compress");
  std::string compressed = accepted_;
  compressed.insert(compressed.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_EQ(check_manner("bomb", {compressed, refusal_, pong_}), "failed: 101, a pong, kept open");
}

}  // namespace
}  // namespace weir::check::websocket_scripts_test
