// Tests of the reports of `weir check`.
#include "tools/weir/check/check_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::check::check_report_test {
namespace {

TEST(CheckReport, PrintsSentBytesEscaped) {
  EXPECT_EQ(shortened("GET / HTTP/1.1\r\n\t\\\xe9\x01", 100), R"(GET / HTTP/1.1\r\n\t\\\xe9\x01)");
  EXPECT_EQ(shortened("0123456789", 10), "0123456789");
  EXPECT_EQ(shortened("0123456789a", 10), "01234 ... 1 bytes ... 6789a");
}

class CheckReportText : public testing::Test {
 protected:
  CheckReportText() {
    rule_[0] = {1, "first", "RFC 1", "the first comes first"};
    rule_[1] = {2, "second", "RFC 2", "the second does not"};
    for (int index = 0; index < 3; ++index) {
      case_[index].name = "case-" + std::to_string(index);
      case_[index].why = "odd";
      case_[index].rule = &rule_[index / 2];
      case_[index].bytes = "GET / HTTP/1.1\r\n";
      CaseResult& result = report_.results.emplace_back();
      result.test_case = &case_[index];
      result.verdict.kind = static_cast<VerdictKind>(index);
      result.verdict.expected = "400";
      result.verdict.actual = "actual \"" + std::to_string(index) + "\"";
    }
    report_.results[1].verdict.sent = "own\n";
    report_.elapsed = std::chrono::milliseconds(1250);
    report_.target.get.status = 200;
    options_.url = "http://a.test/";
  }

  Rule rule_[2];
  Case case_[3];
  CheckReport report_;
  ReportOptions options_;
};

TEST_F(CheckReportText, HasATableThenFailedThenNotApplicableCases) {
  EXPECT_EQ(to_text(report_, options_),
            R"(http://a.test/: 3 cases
  GET / answers 200, POST / answers nothing (--post-path)

                    passed  failed  not applicable
first                    1       1               0
second                   0       0               1

---- failed ----

case-1: odd
  rule      1 first: the first comes first (RFC 1)
  sent      own\n
  expected  400
  actual    actual "1"

---- not applicable ----

case-2: odd
  rule      2 second: the second does not (RFC 2)
  sent      GET / HTTP/1.1\r\n
  expected  400
  actual    actual "2"

1 passed, 1 failed, 1 not applicable, in 1.2 s
)");
  options_.all = true;
  EXPECT_NE(to_text(report_, options_).find("---- passed ----\n\ncase-0: odd\n"),
            std::string::npos);
}

TEST_F(CheckReportText, IsOneJsonObject) {
  report_.results.resize(2);
  EXPECT_EQ(
      to_json(report_, options_),
      R"({"url":"http://a.test/","get_status":200,"post_status":0,"passed":1,"failed":1,)"
      R"("not_applicable":0,"seconds":1.25,"cases":[)"
      R"({"name":"case-0","verdict":"passed","category":"first","rule":1,"source":"RFC 1",)"
      R"("about":"odd","sent":"GET / HTTP/1.1\\r\\n","expected":"400","actual":"actual \"0\""},)"
      R"({"name":"case-1","verdict":"failed","category":"first","rule":1,"source":"RFC 1",)"
      R"("about":"odd","sent":"own\\n","expected":"400","actual":"actual \"1\""}]})"
      "\n");
}

TEST_F(CheckReportText, ListNamesCaseAndCategory) {
  EXPECT_EQ(to_list({&case_[0]}), "case-0                     first              odd\n");
}

TEST_F(CheckReportText, NamesTheStatusesOfTheBaseline) {
  const auto second_line = [this](int post) {
    report_.target.path = "/get";
    report_.target.post_path = "/post";
    report_.target.post.status = post;
    const std::string text = to_text(report_, options_);
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  for (const std::string status : {"200", "299"}) {
    EXPECT_EQ(second_line(std::stoi(status)),
              "  GET /get answers 200, POST /post answers " + status);
  }
  for (const std::string status : {"199", "300"}) {
    EXPECT_EQ(second_line(std::stoi(status)),
              "  GET /get answers 200, POST /post answers " + status + " (--post-path)");
  }
}

TEST_F(CheckReportText, TheTableHasTheOrderOfTheRules) {
  std::swap(report_.results[0], report_.results[2]);
  const std::string text = to_text(report_, options_);
  EXPECT_TRUE(
      text.contains("\nfirst                    1       1               0\n"
                    "second                   0       0               1\n"))
      << text;
}

TEST_F(CheckReportText, LeavesOutSectionsWithoutCases) {
  report_.results.resize(1);
  const std::string text = to_text(report_, options_);
  EXPECT_FALSE(text.contains("----")) << text;
  EXPECT_TRUE(text.ends_with("\n\n1 passed, 0 failed, 0 not applicable, in 1.2 s\n")) << text;
}

TEST_F(CheckReportText, ShortensTheSentBytes) {
  Verdict& verdict = report_.results[1].verdict;
  const auto has = [this](const std::string& sent) {
    return to_text(report_, options_).contains("  sent      " + sent + "\n");
  };
  verdict.sent = std::string(160, 'a');
  EXPECT_TRUE(has(std::string(160, 'a')));
  verdict.sent = std::string(161, 'a');
  EXPECT_TRUE(has(std::string(80, 'a') + " ... 1 bytes ... " + std::string(80, 'a')));
  const auto json_has = [this](const std::string& sent) {
    return to_json(report_, options_).contains("\"sent\":\"" + sent + "\"");
  };
  verdict.sent = std::string(2000, 'a');
  EXPECT_TRUE(json_has(std::string(2000, 'a')));
  verdict.sent = std::string(2001, 'a');
  EXPECT_TRUE(json_has(std::string(1000, 'a') + " ... 1 bytes ... " + std::string(1000, 'a')));
}

TEST_F(CheckReportText, LeavesOutTheSentBytesIfThereAreNone) {
  case_[1].bytes.clear();
  report_.results[1].verdict.sent.clear();
  EXPECT_TRUE(
      to_text(report_, options_)
          .contains("  rule      1 first: the first comes first (RFC 1)\n  expected  400\n"));
}

TEST_F(CheckReportText, JsonNamesEveryVerdictAndCount) {
  report_.results[1].verdict.kind = VerdictKind::passed;
  report_.target.get.status = 201;
  report_.target.post.status = 405;
  const std::string json = to_json(report_, options_);
  EXPECT_TRUE(json.contains(R"("get_status":201,"post_status":405,)"
                            R"("passed":2,"failed":0,"not_applicable":1,)"))
      << json;
  EXPECT_TRUE(json.contains(R"("name":"case-2","verdict":"not applicable","category":"second",)"
                            R"("rule":2,"source":"RFC 2",)"))
      << json;
}

TEST(CheckReport, EscapesTheBoundsOfPrintableAscii) {
  EXPECT_EQ(shortened(std::string("\x1f ~\x7f\x80\0", 6), 100), R"(\x1f ~\x7f\x80\x00)");
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened("abc", 2), "a ... 1 bytes ... c");
}

}  // namespace
}  // namespace weir::check::check_report_test
