// Tests of the hostile handshakes against servers with canned answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tools/weir/check/hello_cases.hpp"
#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::tls_scripts_test {
namespace {

using namespace std::chrono_literals;

std::string alert_record(std::uint8_t description) {
  return record(RecordType::alert, "\x02" + number(description, 1));
}

/// A ServerHello, as bytes.
struct Sent {
  std::uint16_t version = 0x0304;
  std::string random = std::string(32, 'r');
  char compression = '\0';
  std::vector<ExtensionType> extensions = {};
};

std::string server_hello(const Sent& sent = {}) {
  const bool modern = sent.version == 0x0304;
  std::string extensions;
  if (modern) extensions += number(43, 2) + prefixed(number(0x0304, 2), 2);
  for (const ExtensionType each : sent.extensions) {
    extensions += number(static_cast<std::uint16_t>(each), 2) + prefixed("", 2);
  }
  const std::string body = number(modern ? 0x0303 : sent.version, 2) + sent.random +
                           prefixed("", 1) + number(0x1301, 2) + sent.compression +
                           prefixed(extensions, 2);
  return record(RecordType::handshake, handshake_message(2, body));
}

class TlsScripts : public ScriptTest {
 protected:
  /// One step of a server: it waits for bytes, and answers.
  struct Step {
    std::string answer;
    bool close = false;
  };

  /// Returns a server that does these steps on each connection, and then waits.
  static Server steps(std::vector<Step> all) {
    return [all = std::move(all)](tcp::Stream stream) { return serve(std::move(stream), all); };
  }
  static Task<> serve(tcp::Stream stream, std::vector<Step> all) {
    for (const Step& each : all) {
      const auto input = co_await stream.read();
      if (!input) co_return;
      const auto sent = co_await stream.write(each.answer);
      if (!sent || each.close) co_return;
    }
    co_await read_to_end(stream);
  }
  /// Returns the kind of the verdict on a server that gives this answer, "" is none, and closes or
  /// not.
  std::string kind(const HelloCase& test_case, const std::string& answer, bool close = false) {
    return kind_of(test_case, {{answer, close}});
  }
  std::string kind_of(const HelloCase& test_case, std::vector<Step> all) {
    const std::string text = check("tls/" + std::string(test_case.name), steps(std::move(all)));
    EXPECT_FALSE(verdict_.expected.empty()) << test_case.name;
    return text.substr(0, text.find(':'));
  }
  static std::vector<HelloCase> cases_of(Wanted wanted) {
    std::vector<HelloCase> all = hello_cases();
    std::erase_if(all, [wanted](const HelloCase& each) { return each.wanted != wanted; });
    return all;
  }
};

TEST_F(TlsScripts, RejectionsNeedOneOfTheirAlerts) {
  const auto cases = cases_of(Wanted::rejected);
  EXPECT_GT(cases.size(), 25U);
  for (const HelloCase& each : cases) {
    SCOPED_TRACE(each.name);
    for (const std::uint8_t alert : each.alerts) {
      EXPECT_EQ(kind(each, alert_record(alert)), "passed") << int{alert};
    }
    target_.lenient = false;
    EXPECT_EQ(kind(each, alert_record(80)), "failed");
    EXPECT_EQ(kind(each, "", true), "failed");
    EXPECT_EQ(kind(each, server_hello()), "failed");
    EXPECT_EQ(kind(each, ""), "failed") << "no answer";
    EXPECT_EQ(kind(each, "HTTP/1.1 200 OK\r\n\r\n"), "failed");
    target_.lenient = true;
    EXPECT_EQ(kind(each, alert_record(80)), "passed");
    EXPECT_EQ(kind(each, "", true), "passed");
    EXPECT_EQ(kind(each, server_hello()), each.may_serve ? "passed" : "failed");
    EXPECT_EQ(kind(each, ""), "failed") << "no answer";
  }
}

TEST_F(TlsScripts, UnusualHellosNeedAServerHello) {
  const auto cases = cases_of(Wanted::served);
  EXPECT_GT(cases.size(), 5U);
  for (const HelloCase& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, server_hello()), "passed");
    EXPECT_EQ(kind(each, alert_record(40)), "failed");
    EXPECT_EQ(kind(each, alert_record(70)), "not applicable");
    EXPECT_EQ(kind(each, "", true), "failed");
    EXPECT_EQ(kind(each, ""), "failed");
    const std::string worse =
        server_hello({.compression = '\x01', .extensions = {ExtensionType::pre_shared_key}});
    EXPECT_EQ(kind(each, worse), each.accepts == nullptr ? "passed" : "failed");
  }
}

TEST_F(TlsScripts, UnusualNamesNeedAnyAnswer) {
  const auto cases = cases_of(Wanted::answered);
  EXPECT_GT(cases.size(), 3U);
  for (const HelloCase& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, server_hello()), "passed");
    EXPECT_EQ(kind(each, alert_record(112)), "passed");
    EXPECT_EQ(kind(each, "", true), "failed");
    EXPECT_EQ(kind(each, ""), "failed");
  }
}

TEST_F(TlsScripts, APlainRequestIsTold400) {
  for (const HelloCase& each : cases_of(Wanted::told)) {
    target_.lenient = false;
    EXPECT_EQ(kind(each, "HTTP/1.0 400 Bad Request\r\n\r\nuse https\n", true), "passed");
    EXPECT_EQ(kind(each, "HTTP/1.1 400 Bad Request\r\n\r\n"), "passed");
    EXPECT_EQ(kind(each, "HTTP/1.1 200 OK\r\n\r\n", true), "failed");
    EXPECT_EQ(kind(each, "HTTP/1.1 301 Moved\r\n\r\n", true), "failed");
    EXPECT_EQ(kind(each, alert_record(10)), "failed");
    EXPECT_EQ(kind(each, "", true), "failed");
    EXPECT_EQ(kind(each, ""), "failed");
    EXPECT_EQ(kind(each, server_hello()), "failed");
    target_.lenient = true;
    EXPECT_EQ(kind(each, alert_record(10)), "passed");
    EXPECT_EQ(kind(each, "", true), "passed");
    EXPECT_EQ(kind(each, "HTTP/1.1 200 OK\r\n\r\n", true), "failed");
    EXPECT_EQ(kind(each, ""), "failed") << "no answer";
  }
}

TEST_F(TlsScripts, FloodsAndGarbageMustBeCutOff) {
  const auto cases = cases_of(Wanted::disconnected);
  EXPECT_GT(cases.size(), 6U);
  for (const HelloCase& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(kind(each, alert_record(10)), "passed");
    EXPECT_EQ(kind(each, "", true), "passed");
    EXPECT_EQ(kind(each, "HTTP/1.1 400 Bad Request\r\n\r\n", true), "passed");
    EXPECT_EQ(kind(each, "HTTP/1.1 200 OK\r\n\r\n", true), "failed");
    EXPECT_EQ(kind(each, server_hello()), "failed");
    EXPECT_EQ(kind(each, ""), "failed");
  }
}

TEST_F(TlsScripts, WrongSecondMessagesMustBeCutOff) {
  const auto cases = cases_of(Wanted::ended);
  EXPECT_GT(cases.size(), 4U);
  for (const HelloCase& each : cases) {
    SCOPED_TRACE(each.name);
    const std::string hello = server_hello();
    EXPECT_EQ(kind_of(each, {{hello, false}, {alert_record(10), false}}), "passed");
    EXPECT_EQ(kind_of(each, {{hello, false}, {"", true}}), "passed");
    EXPECT_EQ(kind_of(each, {{hello, false}, {"", false}}), "failed");
    EXPECT_EQ(kind_of(each, {{hello, false}, {hello, false}}), "failed");
    EXPECT_EQ(kind(each, alert_record(40)), "failed") << "the first message is right";
    EXPECT_EQ(kind(each, alert_record(70)), "not applicable");
  }
}

TEST_F(TlsScripts, DowngradesMustBeVisible) {
  // Each connection gets the next answer.
  const auto check_with = [this](std::string_view name, std::string first, std::string second) {
    const std::string text = check(name, [&](tcp::Stream stream) {
      return serve(std::move(stream), {{connections_ == 1 ? first : second, false}});
    });
    return text.substr(0, text.find(':'));
  };
  const std::string newest = server_hello();
  const std::string older = server_hello({.version = 0x0303});
  const std::string marked =
      server_hello({.version = 0x0303, .random = std::string(24, 'r') + "DOWNGRD\x01"});
  const std::string_view sentinel = "tls/downgrade-sentinel";
  EXPECT_EQ(check_with(sentinel, newest, marked), "passed");
  EXPECT_EQ(check_with(sentinel, newest, older), "failed");
  EXPECT_EQ(check_with(sentinel, older, older), "not applicable");
  EXPECT_EQ(check_with(sentinel, newest, alert_record(70)), "not applicable");
  EXPECT_EQ(check_with(sentinel, newest, alert_record(40)), "failed");
  EXPECT_EQ(check_with(sentinel, "", ""), "failed");
  const std::string_view fallback = "tls/downgrade-fallback";
  EXPECT_EQ(check_with(fallback, newest, alert_record(86)), "passed");
  EXPECT_EQ(check_with(fallback, newest, older), "failed");
  EXPECT_EQ(check_with(fallback, newest, alert_record(40)), "failed");
  EXPECT_EQ(check_with(fallback, older, older), "not applicable");
  EXPECT_EQ(check_with(fallback, alert_record(40), older), "failed");
}

TEST_F(TlsScripts, HeartbeatMustStayWithoutAnAnswer) {
  const std::string hello = server_hello({.version = 0x0303});
  const std::string beat = record(RecordType::heartbeat, "\x02" + std::string(100, 's'));
  EXPECT_EQ(check("tls/heartbeat", steps({{hello, false}, {beat, false}})),
            "failed: ServerHello of TLS 1.2 with suite 1301, a heartbeat");
  EXPECT_EQ(check("tls/heartbeat", steps({{hello, false}, {alert_record(10), true}})),
            "passed: ServerHello of TLS 1.2 with suite 1301, alert 10, closed");
  EXPECT_EQ(check("tls/heartbeat", steps({{hello, false}})).substr(0, 7), "passed:");
  EXPECT_EQ(check("tls/heartbeat", steps({})), "failed: no answer");
}

TEST_F(TlsScripts, HalfAHelloMustBeClosed) {
  const Server correct = [](tcp::Stream stream) -> Task<> { co_await read_to_end(stream); };
  EXPECT_EQ(check("tls/half-a-hello", correct), "passed: closed without an answer");
  const Server silent = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await sleep(60s);
    stream.close();
  };
  EXPECT_EQ(check("tls/half-a-hello", silent), "failed: no answer");
  EXPECT_EQ(check("tls/half-a-hello", steps({{server_hello(), true}})).substr(0, 7), "failed:");
}

TEST_F(TlsScripts, SilentAndSlowClientsMustBeCutOff) {
  const Server timed = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await sleep(5s);
    stream.close();
  };
  const Server patient = [](tcp::Stream stream) -> Task<> { co_await read_to_end(stream); };
  EXPECT_EQ(check("tls/silent", timed), "passed: closed without an answer");
  EXPECT_EQ(check("tls/silent", patient),
            "not applicable: no answer: no rule sets a limit (use --idle-timeout)");
  EXPECT_EQ(check("tls/hello-slow", timed), "passed: closed without an answer");
  EXPECT_EQ(check("tls/hello-slow", patient), "failed: no answer");
  EXPECT_EQ(check("tls/hello-slow", steps({{server_hello(), true}})).substr(0, 7), "failed:");
  target_.idle_must_close = true;
  EXPECT_EQ(check("tls/silent", patient), "failed: no answer");
}

TEST_F(TlsScripts, EachHelloIsAsItsCaseSays) {
  target_.host = "a.example";
  const auto bytes_of = [this](std::string_view name) {
    const auto found = std::ranges::find(hello_cases(), name, &HelloCase::name);
    return first_bytes(*found, target_);
  };
  EXPECT_TRUE(bytes_of("hello-tail").contains("a.example"));
  EXPECT_EQ(bytes_of("1.0").substr(0, 3), "\x16\x03\x03");
  EXPECT_EQ(bytes_of("1.0").substr(9, 2), "\x03\x01");
  EXPECT_EQ(bytes_of("record-long").size(), 5U + (16U << 10U) + 1);
  EXPECT_EQ(bytes_of("hello-large").size() / 1000, 7U);
  EXPECT_EQ(bytes_of("plain-http"), get_request(target_));
  EXPECT_EQ(bytes_of("flood-empty").size(), 50'000U);
  target_.host = "127.0.0.1";
  EXPECT_FALSE(bytes_of("hello-tail").contains("127.0.0.1")) << "an address is no server name";
}

}  // namespace
}  // namespace weir::check::tls_scripts_test
