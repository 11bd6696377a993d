// Tests of the evaluation of responses.
#include "tools/weir/check/wire_check.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::wire_check_test {
namespace {

class WireCheck : public testing::Test {
 protected:
  WireCheck() {
    fields_.name = "fields";
    target_rule_.name = "target";
    chunks_.name = "chunks";
    target_.authority = "here:80";
    target_.get.status = 200;
    target_.post.status = 405;
    case_.rule = &fields_;
    case_.bytes = "GET / HTTP/1.1\r\n\r\n";
    case_.expect = {"400"};
  }

  /// Returns an outcome with these responses in this order.
  static Outcome answers(const std::vector<int>& statuses, bool closed_by_server = false) {
    Outcome outcome;
    for (const int status : statuses) {
      Response& answer = outcome.responses.emplace_back();
      answer.status = status;
      answer.complete = true;
      if (status < 200) outcome.interim = true;
      if (status >= 200) ++outcome.final_count;
    }
    outcome.closed_by_server = closed_by_server;
    return outcome;
  }
  VerdictKind judged(const Outcome& outcome) { return evaluate(target_, case_, outcome).kind; }

  static constexpr VerdictKind passed = VerdictKind::passed;
  static constexpr VerdictKind failed = VerdictKind::failed;
  static constexpr VerdictKind not_applicable = VerdictKind::not_applicable;
  Rule fields_;
  Rule target_rule_;
  Rule chunks_;
  CheckTarget target_;
  Case case_;
};

TEST_F(WireCheck, ARefusalIsAnErrorThatACorrectRequestDoesNotGet) {
  EXPECT_EQ(judged(answers({400})), passed);
  EXPECT_EQ(judged(answers({501})), passed);
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(judged(answers({404})), failed) << "the server understood the request";
  EXPECT_EQ(judged(answers({404}, true)), passed) << "the server reads nothing more";
  case_.bytes = "POST / HTTP/1.1\r\n\r\n";
  target_.post.status = 400;
  EXPECT_EQ(judged(answers({400})), failed) << "every POST gets this status";
  case_.rule = &target_rule_;
  EXPECT_EQ(judged(answers({404})), passed) << "the target does not exist";
  EXPECT_EQ(judged(answers({})), failed);
  EXPECT_EQ(judged(answers({}, true)), not_applicable);
}

TEST_F(WireCheck, AResponseBeforeABrokenBodyIsNotApplicableIfTheServerCloses) {
  case_.rule = &chunks_;
  EXPECT_EQ(judged(answers({200}, true)), not_applicable);
  EXPECT_EQ(judged(answers({200, 200}, true)), failed);
  EXPECT_EQ(judged(answers({200})), failed);
}

TEST_F(WireCheck, RequiresTheNumberOfResponses) {
  case_.expect = {"200"};
  case_.answers = 2;
  EXPECT_EQ(judged(answers({200, 404})), passed);
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(judged(answers({200, 200, 200})), failed);
  Outcome closing = answers({200}, true);
  EXPECT_EQ(judged(closing), failed);
  closing.responses.back().closes = true;
  EXPECT_EQ(judged(closing), not_applicable) << "the response announced it";
}

TEST_F(WireCheck, EvaluatesEveryExpectation) {
  const auto judged_as = [this](const char* expected, const Outcome& outcome) {
    case_.expect = {expected};
    return judged(outcome);
  };
  EXPECT_EQ(judged_as("200", answers({204})), passed);
  EXPECT_EQ(judged_as("200", answers({301})), passed);
  EXPECT_EQ(judged_as("200", answers({405})), passed);
  EXPECT_EQ(judged_as("200", answers({400})), failed);
  EXPECT_EQ(judged_as("505", answers({505})), passed);
  EXPECT_EQ(judged_as("505", answers({400})), failed);
  EXPECT_EQ(judged_as("wait", answers({})), passed);
  EXPECT_EQ(judged_as("wait", answers({}, true)), failed);
  EXPECT_EQ(judged_as("wait", answers({100})), failed);
  EXPECT_EQ(judged_as("100", answers({100, 200})), passed);
  EXPECT_EQ(judged_as("100", answers({200})), failed);
  EXPECT_EQ(judged_as("closeok", answers({200}, true)), passed);
  EXPECT_EQ(judged_as("closeok", answers({200})), failed);
}

TEST_F(WireCheck, RejectsAnInterimResponseToHttp1_0) {
  case_.expect = {"200"};
  case_.bytes = "GET / HTTP/1.0\r\n\r\n";
  EXPECT_EQ(judged(answers({200})), passed);
  const Verdict verdict = evaluate(target_, case_, answers({100, 200}));
  EXPECT_EQ(verdict.kind, failed);
  EXPECT_EQ(verdict.expected, "no interim answer to HTTP/1.0");
}

TEST_F(WireCheck, LenientResponsesPassOnlyIfRequested) {
  case_.lenient = {"200"};
  case_.note = "RFC so-and-so";
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(evaluate(target_, case_, answers({200})).actual,
            "200, kept open (RFC so-and-so; --lenient accepts it)");
  target_.lenient = true;
  EXPECT_EQ(judged(answers({200})), passed);
  case_.also = {"200"};
  target_.lenient = false;
  EXPECT_EQ(judged(answers({200})), passed);
}

TEST_F(WireCheck, FillsInPathsAndAuthorityOfTheTarget) {
  target_.path = "/there?x";
  target_.post_path = "/form";
  case_.bytes =
      "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n"
      "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
  EXPECT_EQ(bytes_for(case_, target_),
            "GET /there?x HTTP/1.1\r\nHost: here:80\r\nHost: here:80\r\n\r\n"
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  case_.bytes = "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n";
  EXPECT_EQ(bytes_for(case_, target_), "POST /form HTTP/1.1\r\nHost: here:80\r\n\r\n");
  case_.bytes = "GET /x HTTP/1.1\r\nHost: a.test \r\n\r\n";
  EXPECT_EQ(bytes_for(case_, target_), case_.bytes);
}

TEST_F(WireCheck, DescribesOutcomesInWords) {
  EXPECT_EQ(describe(answers({})), "no answer");
  EXPECT_EQ(describe(answers({}, true)), "closed without an answer");
  EXPECT_EQ(describe(answers({100, 200, 200, 200, 404}, true)), "100, 200 × 3, 404, closed");
  EXPECT_EQ(describe(answers({200})), "200, kept open");
  Outcome reset = answers({400});
  reset.reset = true;
  EXPECT_EQ(describe(reset), "400, reset");
  case_.expect = {"400", "closeok"};
  case_.answers = 1;
  EXPECT_EQ(describe_expected(case_),
            "a rejection (4xx or 5xx) or an answer, then the server closes, 1 answer");
}

TEST_F(WireCheck, AcceptsTheStatusesThatACorrectRequestMayGet) {
  target_.get.status = 418;
  target_.post.status = 503;
  for (const int status : {200, 201, 399, 404, 405}) {
    EXPECT_TRUE(is_accepting_status(target_, false, status)) << status;
    EXPECT_TRUE(is_accepting_status(target_, true, status)) << status;
  }
  for (const int status : {199, 400, 403, 406, 500}) {
    EXPECT_FALSE(is_accepting_status(target_, false, status)) << status;
    EXPECT_FALSE(is_accepting_status(target_, true, status)) << status;
  }
  EXPECT_TRUE(is_accepting_status(target_, false, 418));
  EXPECT_FALSE(is_accepting_status(target_, true, 418));
  EXPECT_TRUE(is_accepting_status(target_, true, 503));
  EXPECT_FALSE(is_accepting_status(target_, false, 503));
}

TEST_F(WireCheck, AnErrorOfTheConnectionFails) {
  case_.expect = {"200"};
  Outcome outcome = answers({200});
  outcome.connect_error = "no connection";
  EXPECT_EQ(judged(outcome), failed);
  outcome = answers({200});
  outcome.protocol_error = "a broken chunk";
  EXPECT_EQ(judged(outcome), failed);
  EXPECT_EQ(evaluate(target_, case_, outcome).actual, "200, a broken chunk");
}

TEST_F(WireCheck, AResetCountsAsARefusalOnlyAfterAnError) {
  Outcome outcome = answers({404});
  outcome.reset = true;
  EXPECT_EQ(judged(outcome), passed);
  outcome = answers({200});
  outcome.reset = true;
  EXPECT_EQ(judged(outcome), failed);
  outcome = answers({});
  outcome.reset = true;
  EXPECT_EQ(judged(outcome), not_applicable);
  EXPECT_EQ(evaluate(target_, case_, outcome).actual,
            "reset without an answer: the server accepted nothing");
  case_.expect = {"wait"};
  EXPECT_EQ(judged(outcome), failed);
  case_.expect = {"400"};
  outcome = answers({404});
  EXPECT_EQ(judged(outcome), failed);
  outcome.responses[0].closes = true;
  EXPECT_EQ(judged(outcome), passed) << "the server announces that it reads nothing more";
  case_.rule = &fields_;
  fields_.name = "method";
  EXPECT_EQ(judged(answers({405})), passed);
}

TEST_F(WireCheck, OtherExpectationsAreNotMetBySilence) {
  for (const char* expected : {"200", "505", "closeok", "100"}) {
    case_.expect = {expected};
    EXPECT_EQ(judged(answers({})), failed) << expected;
    EXPECT_EQ(judged(answers({}, true)), failed) << expected;
  }
}

TEST_F(WireCheck, AlsoPassesWithAnyNumberOfResponses) {
  case_.expect = {"400"};
  case_.also = {"200"};
  case_.answers = 1;
  EXPECT_EQ(judged(answers({200, 200})), passed);
  case_.also.clear();
  case_.lenient = {"200"};
  target_.lenient = true;
  EXPECT_EQ(judged(answers({200, 200})), passed);
}

TEST_F(WireCheck, ExplainsWhyACaseIsNotApplicable) {
  for (const char* rule : {"chunks", "after-an-error", "smuggling"}) {
    chunks_.name = rule;
    case_.rule = &chunks_;
    const Verdict verdict = evaluate(target_, case_, answers({200}, true));
    EXPECT_EQ(verdict.kind, not_applicable) << rule;
    EXPECT_EQ(verdict.expected, "a rejection (4xx or 5xx)");
    EXPECT_EQ(verdict.actual, "200, closed: answered before it had read the body");
  }
  case_.rule = &fields_;
  EXPECT_EQ(judged(answers({200}, true)), failed);
  case_.expect = {"200"};
  case_.answers = 3;
  Outcome outcome = answers({200, 200}, true);
  outcome.responses.back().closes = true;
  const Verdict verdict = evaluate(target_, case_, outcome);
  EXPECT_EQ(verdict.kind, not_applicable);
  EXPECT_EQ(verdict.expected, "the answer to a valid request, 3 answers");
  EXPECT_EQ(verdict.actual, "200 × 2, closed: the server closes earlier, as announced");
  outcome.closed_by_server = false;
  EXPECT_EQ(judged(outcome), failed);
}

TEST_F(WireCheck, ThePrefaceOfHttp2IsNotApplicableToAServerThatSpeaksIt) {
  Outcome outcome;
  outcome.protocol_error = "frames of HTTP/2";
  EXPECT_EQ(judged(outcome), failed) << "the case is a request of HTTP/1.1";
  case_.bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  EXPECT_EQ(judged(outcome), not_applicable);
  outcome.protocol_error = "bytes that are not a response";
  EXPECT_EQ(judged(outcome), failed);
}

TEST_F(WireCheck, DescribesExpectationsInWords) {
  const auto described = [this](const char* expected, std::optional<std::size_t> count) {
    case_.expect = {expected};
    case_.answers = count;
    return describe_expected(case_);
  };
  EXPECT_EQ(described("wait", 0), "no answer yet");
  EXPECT_EQ(described("100", std::nullopt), "100 first");
  EXPECT_EQ(described("400", 1), "a rejection (4xx or 5xx), 1 answer");
  EXPECT_EQ(described("200", 2), "the answer to a valid request, 2 answers");
  EXPECT_EQ(described("closeok", std::nullopt), "an answer, then the server closes");
  EXPECT_EQ(described("505", std::nullopt), "505");
}

using WireCheckOfAServer = ScriptTest;

TEST_F(WireCheckOfAServer, WaitsAtMostASecondForAServerThatStaysOpen) {
  const auto stays_open = [](tcp::Stream stream) -> Task<> {
    std::ignore = co_await stream.read();
    std::ignore = co_await stream.write(response(200));
    std::ignore = co_await sleep(1h);
  };
  target_.timeout = 10s;
  EXPECT_EQ(check("host-05", stays_open), "passed: 200, kept open");
  EXPECT_EQ(elapsed(), 1s);
  target_.timeout = 300ms;
  EXPECT_EQ(check("host-05", stays_open), "passed: 200, kept open");
  EXPECT_EQ(elapsed(), 1300ms);
}

}  // namespace
}  // namespace weir::check::wire_check_test
