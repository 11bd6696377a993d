// Tests of the evaluation of responses.
#include "tools/weir/check/wire_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::check {
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
  EXPECT_EQ(judged(answers({100, 200})), failed);
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

}  // namespace
}  // namespace weir::check
