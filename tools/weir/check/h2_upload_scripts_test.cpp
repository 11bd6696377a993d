// Tests of the cases about uploads over HTTP/2 against servers with faults.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::h2_upload_scripts_test {
namespace {

using http::FrameFlag;
using http::FrameType;

std::string answer(const std::string& status) {
  return h2_frame(FrameType::headers, FrameFlag::end_headers | FrameFlag::end_stream, 1,
                  h2_block({{":status", status}}));
}
const std::string settings = h2_frame(FrameType::settings, 0, 0, "");
const std::string pong = h2_frame(FrameType::ping, FrameFlag::ack, 0, h2_last_ping);
const std::string goaway = h2_frame(FrameType::goaway, 0, 0, h2_number(0) + h2_number(11));

/// The behaviour of a server behind its SETTINGS and its answer to the first GET.
struct Manner {
  std::string begin = {};            ///< frames behind them
  bool grants = true;                ///< gives all bytes back to the window of the connection
  std::size_t bytes_max = SIZE_MAX;  ///< after so many bytes it sends `end`, and reads no more
  std::string end = {};
  bool pongs = true;  ///< answers PING
};

class H2UploadScripts : public ScriptTest {
 protected:
  std::string check_manner(std::string_view name, const Manner& manner) {
    return check("http2/" + std::string(name),
                 [&manner](tcp::Stream stream) { return serve(std::move(stream), manner); });
  }
  std::string kind(std::string_view name, const Manner& manner) {
    const std::string text = check_manner(name, manner);
    return text.substr(0, text.find(':'));
  }
  std::string check_answer_of(const std::string& frames, bool closes = false) {
    return check("http2/early-answer", [=](tcp::Stream stream) {
      return answer_first(std::move(stream), settings + frames, closes);
    });
  }

 private:
  static Task<> answer_first(tcp::Stream stream, std::string frames, bool closes) {
    const auto input = co_await stream.read();
    if (!input) co_return;
    std::ignore = co_await stream.write(frames);
    if (closes) static_cast<void>(stream.finish_writing());
    co_await read_to_end(stream);
  }
  static Task<> serve(tcp::Stream stream, const Manner& manner) {
    std::size_t received = 0;
    auto sent = co_await stream.write(settings + answer("200") + manner.begin);
    std::string tail;
    while (sent) {
      const auto input = co_await stream.read();
      if (!input) co_return;
      received += input->size();
      tail.append(input->text());
      if (tail.size() > 17) tail.erase(0, tail.size() - 17);
      std::string output;
      if (manner.grants) {
        output = h2_window_update(0, static_cast<std::uint32_t>(input->size()));
      }
      if (manner.pongs && tail == h2_ping()) output += pong;
      if (received >= manner.bytes_max) break;
      if (!output.empty()) sent = co_await stream.write(output);
    }
    std::ignore = co_await stream.write(manner.end);
    co_await read_to_end(stream);
  }
};

TEST_F(H2UploadScripts, AnAnswerDoesNotWaitForAnUploadThatItDoesNotNeed) {
  EXPECT_EQ(check_answer_of(answer("404")), "passed: 404");
  EXPECT_EQ(check_answer_of(answer("413")), "passed: 413");
  EXPECT_EQ(check_answer_of(""), "failed: no answer (--lenient accepts it)");
  EXPECT_EQ(check_answer_of(h2_rst_stream(1)), "failed: RST_STREAM 8") << "the answer is lost";
  EXPECT_EQ(check_answer_of("", true), "failed: closed without an answer");
  target_.lenient = true;
  EXPECT_EQ(check_answer_of(""), "passed: no answer");
  EXPECT_EQ(check_answer_of(h2_rst_stream(1)), "failed: RST_STREAM 8");
}

TEST_F(H2UploadScripts, DataThatNoRequestNeedsReturnsToTheWindow) {
  for (const std::string_view name : {"window-ended", "window-reset", "window-unread"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(check_manner(name, {}), "passed: 160 KiB sent at a window of 64 KiB");
    EXPECT_EQ(check_manner(name, {.grants = false}),
              "failed: 32 KiB sent at a window of 63 KiB, then it stays closed");
    EXPECT_EQ(kind(name, {.grants = false, .bytes_max = 20'000, .end = goaway}), "passed");
    EXPECT_EQ(check_manner(name, {.begin = h2_window_update(0, 16 << 20)}),
              "not applicable: a window of 16 MiB, which would hide a loss");
    EXPECT_EQ(check_manner(name, {.begin = h2_setting(http::SettingId::initial_window_size, 0)}),
              "not applicable: the windows of new streams are closed");
  }
}

TEST_F(H2UploadScripts, SmallDataPaysForNoResets) {
  const std::string_view name = "flood-paid-resets";
  EXPECT_EQ(kind(name, {}), "failed");
  EXPECT_EQ(kind(name, {.bytes_max = 200'000, .end = goaway}), "passed");
  EXPECT_EQ(kind(name, {.bytes_max = 200'000}), "passed") << "it delays";
  EXPECT_EQ(kind(name, {.pongs = false}), "passed") << "it delays the end";
}

TEST_F(H2UploadScripts, DoNotJudgeServersWithoutHttp2) {
  const auto without = [this](std::string_view name) {
    return check_replies("http2/" + std::string(name), {{response(400), true}});
  };
  for (const std::string_view name : {"early-answer", "window-ended", "flood-paid-resets"}) {
    EXPECT_EQ(without(name), "not applicable: no HTTP/2: no HTTP/2 by prior knowledge");
  }
}

}  // namespace
}  // namespace weir::check::h2_upload_scripts_test
