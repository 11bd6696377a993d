// Tests of the cases that send too much: the verdict on servers of every behaviour.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::limit_scripts_test {
namespace {

class LimitScripts : public ScriptTest {
 protected:
  /// Runs the case against a server that replies to the first bytes of a connection, and drops
  /// the rest.
  std::string check_early(std::string_view name, Reply reply) {
    begin_.clear();
    return check(name, [&](tcp::Stream stream) { return serve(std::move(stream), reply); });
  }

  std::string begin_;  // first bytes that the server has received

 private:
  Task<> serve(tcp::Stream stream, const Reply& reply) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    begin_ = input->text();
    if (!reply.bytes.empty()) std::ignore = co_await stream.write(reply.bytes);
    if (reply.close) static_cast<void>(stream.finish_writing());
    co_await read_to_end(stream);
  }
};

TEST_F(LimitScripts, ALongTargetRequires414) {
  const std::string name = "limits/target";
  EXPECT_EQ(check_early(name, {response(414)}), "passed: 414, kept open");
  EXPECT_EQ(verdict_.expected, "414");
  EXPECT_EQ(verdict_.sent, "GET /" + std::string(195, 'a'));
  EXPECT_TRUE(begin_.starts_with(verdict_.sent));
  for (const int status : {400, 431, 499}) {
    EXPECT_EQ(check_early(name, {response(status)}),
              "failed: " + std::to_string(status) +
                  ", kept open (rejected with another status; --lenient accepts it)");
    target_.lenient = true;
    EXPECT_EQ(check_early(name, {response(status)}),
              "passed: " + std::to_string(status) + ", kept open");
    target_.lenient = false;
  }
  target_.lenient = true;
  for (const int status : {200, 399, 404, 405, 500}) {
    EXPECT_EQ(check_early(name, {response(status)}),
              "failed: " + std::to_string(status) + ", kept open: the server accepts 4 MiB");
  }
}

TEST_F(LimitScripts, ALongHeadRequiresA4xx) {
  for (const std::string name : {"limits/header-bytes", "limits/header-count"}) {
    for (const int status : {400, 431, 499}) {
      EXPECT_EQ(check_early(name, {response(status)}),
                "passed: " + std::to_string(status) + ", kept open");
    }
    EXPECT_EQ(verdict_.expected, "431 or another 4xx");
    for (const int status : {200, 399, 404, 405, 500}) {
      EXPECT_EQ(check_early(name, {response(status)}),
                "failed: " + std::to_string(status) + ", kept open: the server accepts 4 MiB");
    }
    EXPECT_EQ(check_early(name, {"", true}),
              "not applicable: closed without an answer: cut off without a response");
    EXPECT_EQ(check_early(name, {}), "failed: no answer");
    EXPECT_EQ(check_early(name, {"junk"}), "failed: bytes that are not a response");
    const std::string head = "GET / HTTP/1.1\r\nHost: a.test:8080\r\nX: ";
    EXPECT_TRUE(verdict_.sent.starts_with(
        head + (name == "limits/header-bytes" ? "aaaaaaaa" : "y\r\nX: y\r\n")));
    EXPECT_EQ(verdict_.sent.size(), 200U);
  }
}

TEST_F(LimitScripts, ManyHeaderLinesGetAnAnswer) {
  for (const std::string name : {"limits/lines-101", "limits/lines-1000"}) {
    for (const int status : {200, 400, 431}) {
      EXPECT_EQ(check_replies(name, {{response(status)}}),
                "passed: " + std::to_string(status) + ", kept open");
    }
    EXPECT_EQ(check_replies(name, {{response(500)}}), "failed: 500, kept open");
    EXPECT_EQ(check_replies(name, {{"", true}}), "failed: closed without an answer");
    EXPECT_EQ(check_replies(name, {}), "failed: no answer");
    EXPECT_TRUE(
        verdict_.sent.starts_with("GET / HTTP/1.1\r\nHost: a.test:8080\r\nX-Check-2: v\r\n"));
  }
}

/// Answers the head of an upload.
enum class Upload : std::uint8_t {
  read,     ///< and reads all of the body before
  dropped,  ///< and reads the rest
  cut,      ///< and closes, so that the rest of the body resets the connection
  lost,     ///< closes without an answer
};

Task<> take_upload(tcp::Stream stream, Upload manner) {
  std::size_t received = 0;
  bool answered = false;
  for (;;) {
    const auto piece = co_await stream.read();
    if (!piece) co_return;
    received += piece->size();
    const bool complete = received > (std::size_t{16} << 20);
    const bool answers = manner != Upload::read || complete;
    if (manner == Upload::lost) co_return;
    if (answers && !std::exchange(answered, true)) {
      const int status = manner == Upload::read ? 200 : 413;
      const auto sent = co_await stream.write(response(status));
      if (!sent) co_return;
    }
    if (manner == Upload::cut) co_return;
  }
}

TEST_F(LimitScripts, AnUploadThatIsRefusedEarlyGetsItsAnswer) {
  for (const std::string name : {"limits/upload", "limits/upload-chunked"}) {
    const auto check_upload = [&](Upload manner) {
      return check(name,
                   [=](tcp::Stream stream) { return take_upload(std::move(stream), manner); });
    };
    target_.lenient = false;
    EXPECT_EQ(check_upload(Upload::read), "passed: 200, kept open");
    EXPECT_EQ(check_upload(Upload::dropped), "passed: 413, kept open");
    EXPECT_TRUE(check_upload(Upload::cut).starts_with("failed: "));
    EXPECT_TRUE(verdict_.actual.contains(", and the body cannot be sent")) << verdict_.actual;
    EXPECT_EQ(check_upload(Upload::lost),
              "failed: reset without an answer, and the body cannot be sent");
    EXPECT_EQ(verdict_.expected, "an answer, after all of the body is sent");
    target_.lenient = true;
    EXPECT_EQ(check_upload(Upload::lost),
              "failed: reset without an answer, and the body cannot be sent");
  }
}

TEST_F(LimitScripts, AnAnnouncedBodyMayBeRefused) {
  const std::string name = "limits/body";
  for (const int status : {400, 413, 499}) {
    EXPECT_EQ(check_early(name, {response(status)}),
              "passed: " + std::to_string(status) + ", kept open");
  }
  EXPECT_EQ(verdict_.expected, "413 or another 4xx");
  EXPECT_TRUE(verdict_.sent.starts_with(
      "POST / HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 1099511627776\r\n\r\naaaa"));
  for (const int status : {200, 399, 500}) {
    EXPECT_EQ(check_early(name, {response(status)}), "not applicable: " + std::to_string(status) +
                                                         ", kept open: answered without the body");
  }
  EXPECT_EQ(check_early(name, {"", true}),
            "not applicable: closed without an answer: cut off without a response");
  EXPECT_EQ(check_early(name, {}), "not applicable: no answer: no limit below 1 TiB observed");
  EXPECT_EQ(check_early(name, {"junk"}), "failed: bytes that are not a response");
}

TEST_F(LimitScripts, UselessInputRequiresARefusalOrAClose) {
  for (const std::string name :
       {"limits/chunk-extensions", "limits/trailers", "limits/empty-lines"}) {
    EXPECT_EQ(check_early(name, {response(400)}), "passed: 400, kept open");
    EXPECT_EQ(verdict_.expected, "a 4xx answer or a closed connection");
    EXPECT_EQ(verdict_.sent.size(), 200U);
    EXPECT_TRUE(begin_.starts_with(verdict_.sent));
    EXPECT_EQ(check_early(name, {response(500)}), "passed: 500, kept open");
    EXPECT_EQ(check_early(name, {"", true}), "passed: closed without an answer");
    EXPECT_EQ(check_early(name, {}),
              "failed: no answer: the server accepts 4 MiB of useless input");
    EXPECT_EQ(check_early(name, {response(200)}),
              "failed: 200, kept open: the server accepts 4 MiB of useless input");
    EXPECT_EQ(check_early(name, {response(399), true}),
              "not applicable: 399, closed: the server answered before it read the whole request");
    EXPECT_EQ(check_early(name, {"junk"}), "failed: bytes that are not a response");
  }
}

}  // namespace
}  // namespace weir::check::limit_scripts_test
