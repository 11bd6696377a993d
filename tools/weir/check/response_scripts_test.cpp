// Tests of the cases about responses: the verdict on servers of every behaviour.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::response_scripts_test {
namespace {

const std::string closing = "Connection: close\r\n";

class ResponseScripts : public ScriptTest {};

TEST_F(ResponseScripts, PipeliningRequiresAnswersInOrder) {
  const auto right = [](std::string_view request, unsigned) {
    return Reply{response(request.starts_with("GET / ") ? 200 : 404)};
  };
  EXPECT_TRUE(check_answer("connection/pipelining", right)
                  .starts_with("passed: 404, 200, 404, 200, 404, 200 × 5, 404 × 5, 200 × 2, 404"))
      << verdict_.actual;
  EXPECT_EQ(verdict_.expected, "64 answers in the order of the requests");
  EXPECT_EQ(connections_, 2U);
  EXPECT_TRUE(verdict_.sent.starts_with(
      "GET /weir-check-there-is-no-such-thing HTTP/1.1\r\nHost: a.test:8080\r\n\r\nGET / HTTP/1.1"))
      << verdict_.sent;

  unsigned calls = 0;
  const auto wrong = [&calls](std::string_view, unsigned) {
    return Reply{response(calls++ == 0 ? 404 : 200)};
  };
  EXPECT_EQ(check_answer("connection/pipelining", wrong),
            "failed: 200 × 64, kept open: answer 1 is 200 instead of 404");
  calls = 0;
  const auto wrong_later = [&calls](std::string_view, unsigned) {
    return Reply{response(calls++ < 4 ? 404 : 200)};
  };
  EXPECT_EQ(check_answer("connection/pipelining", wrong_later),
            "failed: 404 × 3, 200 × 61, kept open: answer 2 is 404 instead of 200");
}

TEST_F(ResponseScripts, PipeliningRequiresOneAnswerForEachRequest) {
  const auto same = [](std::string_view, unsigned) { return Reply{response(200)}; };
  EXPECT_EQ(check_answer("connection/pipelining", same),
            "not applicable: 200 × 64, kept open: the server answers all requests with one status");
  const auto more = [](std::string_view, unsigned index) {
    return Reply{index == 63 ? response(200) + response(200) : response(200)};
  };
  EXPECT_EQ(check_answer("connection/pipelining", more),
            "failed: 200 × 65, kept open: more answers than requests");
  EXPECT_EQ(check_replies("connection/pipelining", {{response(200)}, {response(200), true}}),
            "failed: 200 × 2, closed");
  EXPECT_EQ(
      check_replies("connection/pipelining", {{response(200)}, {response(200, closing), true}}),
      "not applicable: 200 × 2, closed: the server closes earlier, as announced");
  EXPECT_EQ(check_replies("connection/pipelining", {{response(200)}, {response(200, closing)}}),
            "failed: 200 × 2, kept open");
  EXPECT_EQ(check_replies("connection/pipelining", {{"", true}}),
            "failed: closed without an answer");
}

TEST_F(ResponseScripts, KeepAliveRequiresASecondAnswer) {
  const std::string name = "connection/keep-alive";
  EXPECT_EQ(check_replies(name, {{response(200)}, {response(200)}}), "passed: 200 × 2, kept open");
  EXPECT_EQ(verdict_.expected, "a second answer on the same connection");
  EXPECT_EQ(connections_, 1U);
  EXPECT_EQ(check_replies(name, {{response(200)}}), "failed: 200, kept open");
  EXPECT_EQ(check_replies(name, {{response(200, closing)}}),
            "not applicable: 200, kept open: the server closes after each answer, as announced");
  EXPECT_EQ(check_replies(name, {{"", true}}), "failed: closed without an answer");
}

TEST_F(ResponseScripts, CloseRequiresOneAnswerAndTheClose) {
  for (const std::string name : {"connection/close", "connection/close-of-1.0"}) {
    EXPECT_EQ(check_replies(name, {{response(200), true}}), "passed: 200, closed");
    EXPECT_EQ(verdict_.expected, name == "connection/close"
                                     ? "an answer, and the server closes"
                                     : "an answer to 1.0, and the server closes");
    EXPECT_EQ(verdict_.sent,
              name == "connection/close"
                  ? "GET / HTTP/1.1\r\nHost: a.test:8080\r\nConnection: close\r\n\r\n"
                  : "GET / HTTP/1.0\r\nHost: a.test:8080\r\n\r\n");
    EXPECT_EQ(check_replies(name, {{response(200)}}), "failed: 200, kept open");
    EXPECT_EQ(check_replies(name, {{response(200) + response(200), true}}),
              "failed: 200 × 2, closed");
    EXPECT_EQ(check_replies(name, {{"", true}}), "failed: closed without an answer");
  }
}

TEST_F(ResponseScripts, HeadRequiresTheStatusOfGetWithoutABody) {
  const auto head = [](int status, std::string_view headers = {}) {
    return response(status, headers, "");
  };
  const std::string name = "answers/head";
  EXPECT_EQ(check_replies(name, {{head(200)}, {response(404)}}), "passed: 200, 404, kept open");
  EXPECT_EQ(verdict_.expected,
            "the status of GET without a body, then the answer to the next request");
  EXPECT_EQ(verdict_.sent,
            "HEAD / HTTP/1.1\r\nHost: a.test:8080\r\n\r\nGET / HTTP/1.1\r\nHost: "
            "a.test:8080\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{head(200, closing), true}}), "passed: 200, closed");
  EXPECT_EQ(check_replies(name, {{head(200), true}}), "failed: 200, closed");
  EXPECT_EQ(check_replies(name, {{head(404)}, {response(200)}}), "failed: 404, 200, kept open");
  for (const int status : {405, 501}) {
    target_.get.status = status;
    EXPECT_EQ(check_replies(name, {{head(status)}, {response(200)}}),
              "failed: " + std::to_string(status) + ", 200, kept open: GET and HEAD are required");
  }
  target_.get.status = 200;
  EXPECT_EQ(check_replies(name, {{response(200)}, {response(200)}}),
            "failed: 200, bytes that are not a response");
  EXPECT_EQ(check_replies(name, {{"", true}}), "failed: closed without an answer");
}

TEST_F(ResponseScripts, HeadHasNoLengthOrThatOfGet) {
  const auto checked = [this](const std::string& to_head, const std::string& to_get) {
    const auto answer = [&](std::string_view request, unsigned) {
      return Reply{request.starts_with("HEAD") ? to_head : to_get};
    };
    return check_answer("answers/head-length", answer);
  };
  const auto head = [](std::string_view header) {
    return "HTTP/1.1 200 OK\r\n" + std::string(header) + "\r\n";
  };
  EXPECT_EQ(checked(head("Content-Length: 6\r\n"), response(200)), "passed: 6");
  EXPECT_EQ(verdict_.expected, "in the answer to HEAD, no Content-Length or that of GET");
  EXPECT_EQ(verdict_.sent, "HEAD / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  EXPECT_EQ(checked(head(""), response(200)), "passed: none");
  EXPECT_EQ(checked(head("Content-Length: 7\r\n"), response(200)), "failed: 7 instead of 6");
  EXPECT_EQ(checked(head("Content-Length: 7\r\n"), response(200, "", "other\n")),
            "not applicable: 7: bodies of GET vary");
  EXPECT_EQ(checked("", response(200)), "failed: no answer");
  EXPECT_EQ(checked(head(""), ""), "failed: 200, kept open");
}

TEST_F(ResponseScripts, NotModifiedHasNoBody) {
  const std::string name = "answers/not-modified";
  const std::string same = "HTTP/1.1 304 Same\r\nContent-Length: 6\r\n\r\n";
  EXPECT_EQ(check_replies(name, {{same}, {response(200)}}), "passed: 304, 200, kept open");
  EXPECT_EQ(verdict_.expected, "304 without a body");
  EXPECT_EQ(verdict_.sent,
            "GET / HTTP/1.1\r\nHost: a.test:8080\r\nIf-None-Match: *\r\n\r\n"
            "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{"HTTP/1.1 304 Same\r\nConnection: close\r\n\r\n", true}}),
            "passed: 304, closed");
  EXPECT_EQ(check_replies(name, {{same}}), "failed: 304, kept open");
  EXPECT_EQ(check_replies(name, {{same + "hello\n"}}),
            "failed: 304, bytes that are not a response");
  EXPECT_EQ(check_replies(name, {{response(200)}, {response(200)}}),
            "not applicable: 200 × 2, kept open: the server ignores conditions here");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
}

TEST_F(ResponseScripts, NoContentHasNoBodyAndNoLength) {
  const std::string name = "answers/no-content";
  const std::string none = "HTTP/1.1 204 None\r\n\r\n";
  EXPECT_EQ(check_replies(name, {{none}, {response(200)}}), "passed: 204, 200, kept open");
  EXPECT_EQ(verdict_.expected, "204 without a body or a length");
  EXPECT_TRUE(verdict_.sent.starts_with("OPTIONS / HTTP/1.1\r\nHost: a.test:8080\r\n\r\nGET / "));
  EXPECT_EQ(check_replies(name, {{none + "hello\n"}}),
            "failed: 204, bytes that are not a response");
  EXPECT_EQ(check_replies(name, {{response(204, "", "")}}),
            "failed: 204, a length in a response without a body");
  EXPECT_EQ(check_replies(name, {{response(200)}, {response(200)}}),
            "not applicable: 200 × 2, kept open: the server does not answer OPTIONS with 204");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
}

TEST_F(ResponseScripts, DateIsRequired) {
  const std::string name = "answers/date";
  EXPECT_EQ(check_replies(name, {{response(200, "date: x\r\n")}}), "passed: 200, kept open");
  EXPECT_EQ(verdict_.expected, "a Date");
  EXPECT_EQ(check_replies(name, {{response(200)}}), "failed: 200, kept open, no Date header");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer, no Date header");
}

TEST_F(ResponseScripts, TraceEchoesNothing) {
  const std::string name = "answers/trace";
  EXPECT_EQ(check_replies(name, {{response(405)}}), "passed: 405, kept open");
  EXPECT_EQ(verdict_.expected, "TRACE is off: no 2xx, nothing echoed");
  EXPECT_EQ(verdict_.sent, "TRACE / HTTP/1.1\r\nHost: a.test:8080\r\nX-Weir-Check: echo\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{response(300)}}), "passed: 300, kept open");
  EXPECT_EQ(check_replies(name, {{response(299)}}), "failed: 299, kept open");
  EXPECT_EQ(check_replies(name, {{response(405, "", "X-Weir-Check: echo")}}),
            "failed: 405, kept open");
  EXPECT_EQ(check_replies(name, {{"", true}}), "passed: closed without an answer");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
  const auto reset = [](tcp::Stream) -> Task<> {
    std::ignore = co_await sleep(1ms);  // the request arrives and stays unread
  };
  EXPECT_EQ(check(name, reset), "passed: reset without an answer");
}

TEST_F(ResponseScripts, SplittingIsFoundInEveryTargetThatIsEchoed) {
  const std::string name = "answers/splitting";
  EXPECT_EQ(check_replies(name, {{response(404)}}),
            "passed: 16 answers without an injected header");
  EXPECT_EQ(connections_, 16U);
  for (const std::string line_end : {"%0d%0a", "%0a", "%0d", "%E5%98%8A%E5%98%8D"}) {
    for (const std::string begin :
         {"/", "/?next=", "//weir.invalid/", "/weir-check-there-is-no-such-thing"}) {
      const std::string request =
          "GET " + begin + line_end + "X-Weir-Check:%20split HTTP/1.1\r\nHost: a.test:8080\r\n\r\n";
      const auto echo = [&request](std::string_view asked, unsigned) {
        return Reply{response(200, asked == request ? "X-Weir-Check: split\r\n" : "")};
      };
      EXPECT_EQ(check_answer(name, echo), "failed: 200, kept open, X-Weir-Check header found")
          << request;
      EXPECT_EQ(verdict_.sent, request);
    }
  }
  EXPECT_EQ(check_replies(name, {{response(200) + response(200)}}), "failed: 200 × 2, kept open");
  EXPECT_EQ(check_replies(name, {{"hello"}}), "failed: bytes that are not a response");
  EXPECT_EQ(verdict_.expected, "no header of the answer comes from the request's target");
}

TEST_F(ResponseScripts, ContinueComesBeforeTheBody) {
  const std::string name = "expect/continue";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(check_replies(name, {{interim}, {response(200)}}), "passed: 100, 200, kept open");
  EXPECT_EQ(verdict_.expected, "100 or a final answer before the body, one final answer in all");
  EXPECT_EQ(verdict_.sent,
            "POST / HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 5\r\n"
            "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(check_replies(name, {{interim}, {response(200) + response(200)}}),
            "failed: 100, 200 × 2, kept open");
  EXPECT_EQ(check_replies(name, {{interim}}), "failed: 100, kept open");
  EXPECT_EQ(check_replies(name, {{response(417)}, {response(200)}}), "passed: 417, kept open")
      << "a body does not follow a final answer";
  EXPECT_EQ(check_replies(name, {}), "failed: no answer before the body");
  EXPECT_EQ(check_replies(name, {{"", true}}), "failed: closed without an answer before the body");
}

TEST_F(ResponseScripts, WaitForMoreForAtMostOneSecond) {
  const Server open = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(response(200));
    std::ignore = co_await sleep(std::chrono::minutes(1));
  };
  for (const std::string name : {"answers/date", "expect/continue"}) {
    target_.timeout = std::chrono::seconds(7);
    Duration begin = elapsed();
    check(name, open);
    EXPECT_EQ(elapsed() - begin, std::chrono::seconds(1)) << name;
    target_.timeout = std::chrono::milliseconds(300);
    begin = elapsed();
    check(name, open);
    EXPECT_EQ(elapsed() - begin, std::chrono::milliseconds(300)) << name;
  }
}

}  // namespace
}  // namespace weir::check::response_scripts_test
