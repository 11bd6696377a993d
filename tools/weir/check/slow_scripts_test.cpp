// Tests of the cases about slow clients: the verdict on servers of every behaviour.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::slow_scripts_test {
namespace {

using namespace std::chrono_literals;

class SlowScripts : public ScriptTest {
 protected:
  /// Runs the case against a server that sends `reply` after `reads_max` pieces of input.
  std::string check_after(std::string_view name, unsigned reads_max, Reply reply) {
    received_.clear();
    reads_ = 0;
    return check(name, [&, reads_max](tcp::Stream stream) {
      return reply_after(std::move(stream), reads_max, reply);
    });
  }
  /// Runs the case against a server that sends `bytes` and closes after `delay`.
  std::string check_delay(std::string_view name, std::string bytes, Duration delay) {
    return check(name, [&, delay](tcp::Stream stream) {
      return close_after(std::move(stream), bytes, delay);
    });
  }

  std::string received_;
  unsigned reads_ = 0;

 private:
  Task<> reply_after(tcp::Stream stream, unsigned reads_max, const Reply& reply) {
    while (const auto input = co_await stream.read()) {
      received_ += input->text();
      if (++reads_ != reads_max) continue;
      if (!reply.bytes.empty()) std::ignore = co_await stream.write(reply.bytes);
      if (reply.close) co_return;
    }
  }
  static Task<> close_after(tcp::Stream stream, const std::string& bytes, Duration delay) {
    if (!bytes.empty()) std::ignore = co_await stream.write(bytes);
    std::ignore = co_await sleep(delay);
  }
};

TEST_F(SlowScripts, DripsOnePieceEveryHalfASecond) {
  const std::string get = "GET / HTTP/1.1\r\nHost: a.test:8080\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: a.test:8080\r\n";
  const auto drips = [this](std::string_view name, const std::string& first,
                            const std::string& piece) {
    EXPECT_EQ(check_after(name, 4, {"", true}), "passed: closed without an answer after 1.5 s");
    EXPECT_EQ(verdict_.expected, "cut off within 20.0 s");
    EXPECT_EQ(verdict_.sent, first + piece);
    EXPECT_EQ(received_, first + piece + piece + piece);
  };
  drips("slow/head-bytes", get + "X: ", "a");
  drips("slow/head-lines", get, "X: y\r\n");
  drips("slow/body", post + "Content-Length: 10000\r\n\r\n", "a");
  drips("slow/chunks", post + "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n");
}

TEST_F(SlowScripts, ADrippingClientMustBeCutOffInTime) {
  const std::string name = "slow/head-bytes";
  target_.slow_timeout = 7s;
  EXPECT_EQ(check_after(name, 0, {}), "failed: no answer after 7.0 s");
  EXPECT_EQ(verdict_.expected, "cut off within 7.0 s");
  EXPECT_EQ(check_after(name, 3, {response(408), true}), "passed: 408, closed after 1.0 s");
  EXPECT_EQ(check_after(name, 3, {response(408)}), "failed: 408, kept open after 7.0 s");
  EXPECT_EQ(reads_, 3U) << "the client sends nothing after an answer";
  EXPECT_EQ(check_after(name, 3, {"junk", true}),
            "failed: bytes that are not a response after 1.0 s");
}

TEST_F(SlowScripts, ASilentConnectionIsClosedInTimeIfALimitIsGiven) {
  target_.idle_timeout = 9s;
  const std::string name = "slow/idle";
  EXPECT_EQ(check_delay(name, "", 3s), "passed: closed without an answer after 3.0 s");
  EXPECT_EQ(verdict_.expected, "closed within 9.0 s");
  EXPECT_EQ(check_delay(name, response(408), 2s), "passed: 408, closed after 2.0 s");
  EXPECT_EQ(check_delay(name, "junk", 2s), "failed: bytes that are not a response after 0.0 s");
  EXPECT_EQ(check_delay(name, "", 60s),
            "not applicable: no answer after 9.0 s: no rule sets a limit (use --idle-timeout)");
  target_.idle_must_close = true;
  EXPECT_EQ(check_delay(name, "", 60s), "failed: no answer after 9.0 s");
}

TEST_F(SlowScripts, AConnectionIsIdleAfterAnAnswer) {
  const std::string name = "slow/idle-after-an-answer";
  EXPECT_EQ(check_after(name, 1, {response(200), true}), "passed: 200, closed after 0.0 s");
  EXPECT_EQ(received_, "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  target_.idle_must_close = true;
  EXPECT_EQ(check_after(name, 1, {response(200)}), "failed: 200, kept open after 20.0 s");
}

TEST_F(SlowScripts, HalfCloseRequiresTheAnswerAndTheClose) {
  const std::string name = "slow/half-close";
  EXPECT_EQ(check_replies(name, {{response(200)}}), "passed: 200, kept open");
  EXPECT_EQ(verdict_.expected, "the answer, then the server closes");
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{response(200) + response(200)}}), "failed: 200 × 2, kept open");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
  EXPECT_EQ(check_delay(name, response(200), 60s), "failed: 200, kept open, not closed");
  EXPECT_EQ(check_delay(name, response(200), 4s), "failed: 200, reset");
}

TEST_F(SlowScripts, HalfAHeadRequiresTheClose) {
  const std::string name = "slow/half-a-head";
  EXPECT_EQ(check_after(name, 0, {}), "passed: closed");
  EXPECT_EQ(verdict_.expected, "the server closes the connection");
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: a.test:8080\r\n");
  EXPECT_EQ(received_, verdict_.sent);
  EXPECT_EQ(check_delay(name, "", 60s), "failed: no answer");
}

TEST_F(SlowScripts, OtherClientsAreServedInACrowd) {
  struct Crowd {
    const char* name;
    unsigned clients;
    std::string sent;
  };
  const std::string get = "GET / HTTP/1.1\r\nHost: a.test:8080\r\n";
  for (const Crowd& crowd :
       {Crowd{"slow/vanishing", 20, get + "\r\nPOST / HTTP/1.1\r\nHost: a.test:8080\r\n"},
        Crowd{"slow/crowd", 100, get}}) {
    EXPECT_EQ(check_replies(crowd.name, {{response(200)}}), "passed: served");
    EXPECT_EQ(verdict_.expected, "other clients are served");
    EXPECT_EQ(verdict_.sent, crowd.sent);
    EXPECT_EQ(connections_, crowd.clients + 1) << "the last connection is the probe";
    const auto overwhelmed = [&](std::string_view, unsigned) {
      return Reply{response(connections_ > crowd.clients ? 503 : 200)};
    };
    EXPECT_EQ(check_answer(crowd.name, overwhelmed), "failed: 503, kept open");
  }
}

TEST_F(SlowScripts, AClientThatDoesNotReadStopsTheServer) {
  // The first connection is the client that does not read. The others are probes.
  const auto dropping = [this](tcp::Stream stream) -> Task<> {
    static const Answer ok = [](std::string_view, unsigned) { return Reply{response(200)}; };
    if (connections_ == 1) {
      co_await read_to_end(stream);
    } else {
      co_await answer_requests(std::move(stream), ok);
    }
  };
  EXPECT_EQ(check("slow/reader", dropping),
            "failed: the server read 16387 KiB of requests and did not stop");
  EXPECT_EQ(connections_, 4U);
  EXPECT_EQ(verdict_.expected, "the server stops reading requests and serves other clients");
  EXPECT_EQ(verdict_.sent, "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  const auto answering = [](std::string_view, unsigned) { return Reply{response(200)}; };
  EXPECT_TRUE(check_answer("slow/reader", answering).starts_with("passed: the server read "));
  const auto failing = [this](std::string_view, unsigned) {
    return Reply{response(connections_ == 3 ? 503 : 200)};
  };
  EXPECT_TRUE(check_answer("slow/reader", failing).ends_with("; other clients get: 503, kept open"))
      << verdict_.actual;
  EXPECT_EQ(verdict_.kind, VerdictKind::failed);
}

TEST_F(SlowScripts, AServerThatStopsReadingGetsNoMoreRequests) {
  const auto silent = [this](tcp::Stream stream) -> Task<> {
    static const Answer ok = [](std::string_view, unsigned) { return Reply{response(200)}; };
    if (connections_ == 1) {
      std::ignore = co_await sleep(60s);
    } else {
      co_await answer_requests(std::move(stream), ok);
    }
  };
  const Instant begun = platform_.now();
  EXPECT_EQ(check("slow/reader", silent), "passed: the server read 64 KiB of requests");
  EXPECT_EQ(platform_.now() - begun, 2500ms) << "1 s for the last batch, and three pauses";
}

TEST_F(SlowScripts, EachCaseFailsWithoutAServer) {
  const CaseRegistry registry;
  target_.echo_path = "/echo";
  std::size_t scripts = 0;
  for (const Case& each : registry.cases()) {
    if (each.script == nullptr) continue;
    ++scripts;
    verdict_ = run_made([this](const Case* own) { return own->script(target_, *own); }, &each);
    EXPECT_EQ(verdict_.kind, VerdictKind::failed) << each.name << ": " << verdict_.actual;
    EXPECT_FALSE(verdict_.expected.empty()) << each.name;
  }
  EXPECT_GT(scripts, 11U + 7U);
}

}  // namespace
}  // namespace weir::check::slow_scripts_test
