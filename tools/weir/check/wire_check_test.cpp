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
    target_.name = "target";
    chunks_.name = "chunks";
    site_.authority = "here:80";
    site_.get.status = 200;
    site_.post.status = 405;
    case_.rule = &fields_;
    case_.bytes = "GET / HTTP/1.1\r\n\r\n";
    case_.expect = {"400"};
  }

  /// What came: these final answers, one after the other.
  static Outcome answers(const std::vector<int>& statuses, bool ended = false) {
    Outcome outcome;
    for (const int status : statuses) {
      Answer& answer = outcome.answers.emplace_back();
      answer.status = status;
      answer.whole = true;
      if (status < 200) outcome.interim = true;
      if (status >= 200) ++outcome.finals;
    }
    outcome.ended = ended;
    return outcome;
  }
  VerdictKind judged(const Outcome& outcome) { return judge(site_, case_, outcome).kind; }

  static constexpr VerdictKind passed = VerdictKind::passed;
  static constexpr VerdictKind failed = VerdictKind::failed;
  static constexpr VerdictKind not_applicable = VerdictKind::not_applicable;
  Rule fields_;
  Rule target_;
  Rule chunks_;
  Site site_;
  Case case_;
};

TEST_F(WireCheck, ARefusalIsAnErrorThatARightRequestDoesNotGet) {
  EXPECT_EQ(judged(answers({400})), passed);
  EXPECT_EQ(judged(answers({501})), passed);
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(judged(answers({404})), failed) << "it was understood, and looked up";
  EXPECT_EQ(judged(answers({404}, true)), passed) << "and yet nothing more is read";
  case_.bytes = "POST / HTTP/1.1\r\n\r\n";
  site_.post.status = 400;
  EXPECT_EQ(judged(answers({400})), failed) << "so is every POST answered";
  case_.rule = &target_;
  EXPECT_EQ(judged(answers({404})), passed) << "there is nothing of that name";
  EXPECT_EQ(judged(answers({})), failed);
  EXPECT_EQ(judged(answers({}, true)), not_applicable);
}

TEST_F(WireCheck, ABodyThatIsBrokenBehindTheAnswerIsNoMatterIfItCloses) {
  case_.rule = &chunks_;
  EXPECT_EQ(judged(answers({200}, true)), not_applicable);
  EXPECT_EQ(judged(answers({200, 200}, true)), failed);
  EXPECT_EQ(judged(answers({200})), failed);
}

TEST_F(WireCheck, TheNumberOfAnswersCounts) {
  case_.expect = {"200"};
  case_.answers = 2;
  EXPECT_EQ(judged(answers({200, 404})), passed);
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(judged(answers({200, 200, 200})), failed);
  Outcome closing = answers({200}, true);
  EXPECT_EQ(judged(closing), failed);
  closing.answers.back().closes = true;
  EXPECT_EQ(judged(closing), not_applicable) << "it said so";
}

TEST_F(WireCheck, EveryExpectationHasItsMeaning) {
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

TEST_F(WireCheck, NoInterimAnswerTo1_0) {
  case_.expect = {"200"};
  case_.bytes = "GET / HTTP/1.0\r\n\r\n";
  EXPECT_EQ(judged(answers({200})), passed);
  EXPECT_EQ(judged(answers({100, 200})), failed);
}

TEST_F(WireCheck, LenientAnswersPassOnlyWhereThatIsAsked) {
  case_.lenient = {"200"};
  case_.note = "RFC so-and-so";
  EXPECT_EQ(judged(answers({200})), failed);
  EXPECT_EQ(judge(site_, case_, answers({200})).came,
            "200, kept open (RFC so-and-so; --lenient takes it)");
  site_.lenient = true;
  EXPECT_EQ(judged(answers({200})), passed);
  case_.also = {"200"};
  site_.lenient = false;
  EXPECT_EQ(judged(answers({200})), passed);
}

TEST_F(WireCheck, BytesAreForTheSite) {
  site_.path = "/there?x";
  site_.post_path = "/form";
  case_.bytes =
      "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n"
      "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
  EXPECT_EQ(bytes_for(case_, site_),
            "GET /there?x HTTP/1.1\r\nHost: here:80\r\nHost: here:80\r\n\r\n"
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  case_.bytes = "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n";
  EXPECT_EQ(bytes_for(case_, site_), "POST /form HTTP/1.1\r\nHost: here:80\r\n\r\n");
  case_.bytes = "GET /x HTTP/1.1\r\nHost: a.test \r\n\r\n";
  EXPECT_EQ(bytes_for(case_, site_), case_.bytes);
}

TEST_F(WireCheck, OutcomesAreToldInWords) {
  EXPECT_EQ(describe(answers({})), "nothing");
  EXPECT_EQ(describe(answers({}, true)), "closed without an answer");
  EXPECT_EQ(describe(answers({100, 200, 200, 200, 404}, true)), "100, 200 × 3, 404, closed");
  EXPECT_EQ(describe(answers({200})), "200, kept open");
  Outcome reset = answers({400});
  reset.reset = true;
  EXPECT_EQ(describe(reset), "400, reset");
  case_.expect = {"400", "closeok"};
  case_.answers = 1;
  EXPECT_EQ(describe_expected(case_),
            "a refusal (4xx or 5xx) or an answer and the close, 1 answer");
}

}  // namespace
}  // namespace weir::check
