// Tests of requests for the target and of descriptions of outcomes.
#include "tools/weir/check/check_target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::check::check_target_test {
namespace {

Response response(int status, bool complete = true) {
  Response made;
  made.status = status;
  made.complete = complete;
  return made;
}

TEST(CheckTarget, MakesGetRequests) {
  CheckTarget target;
  target.authority = "here:80";
  target.path = "/path";
  EXPECT_EQ(get_request(target), "GET /path HTTP/1.1\r\nHost: here:80\r\n\r\n");
  EXPECT_EQ(get_request(target, "A: b\r\nC: d\r\n", "/other"),
            "GET /other HTTP/1.1\r\nHost: here:80\r\nA: b\r\nC: d\r\n\r\n");
}

TEST(CheckTarget, FirstIsTheFirstCompleteFinalResponse) {
  Outcome outcome;
  EXPECT_EQ(outcome.first(), nullptr);
  outcome.responses = {response(100), response(199)};
  EXPECT_EQ(outcome.first(), nullptr);
  outcome.responses.push_back(response(200));
  outcome.responses.push_back(response(404));
  ASSERT_NE(outcome.first(), nullptr);
  EXPECT_EQ(outcome.first()->status, 200);
  outcome.responses = {response(200, false)};
  EXPECT_EQ(outcome.first(), nullptr);
}

TEST(CheckTarget, DescribesErrorsBeforeTheEndOfTheConnection) {
  Outcome outcome;
  outcome.reset = true;
  outcome.closed_by_server = true;
  EXPECT_EQ(describe(outcome), "reset without an answer");
  outcome.protocol_error = "a broken chunk";
  EXPECT_EQ(describe(outcome), "a broken chunk");
  outcome.responses = {response(100), response(100), response(200)};
  EXPECT_EQ(describe(outcome), "100 × 2, 200, a broken chunk");
  outcome.protocol_error.clear();
  EXPECT_EQ(describe(outcome), "100 × 2, 200, reset");
  outcome.reset = false;
  EXPECT_EQ(describe(outcome), "100 × 2, 200, closed");
  outcome.closed_by_server = false;
  EXPECT_EQ(describe(outcome), "100 × 2, 200, kept open");
  outcome.connect_error = "no connection: refused";
  EXPECT_EQ(describe(outcome), "no connection: refused");
}

TEST(CheckTarget, VerdictsHaveTheirKindAndTexts) {
  const auto has = [](const Verdict& verdict, VerdictKind kind) {
    return verdict.kind == kind && verdict.expected == "expected" && verdict.actual == "actual" &&
           verdict.sent.empty();
  };
  EXPECT_TRUE(has(passed("expected", "actual"), VerdictKind::passed));
  EXPECT_TRUE(has(failed("expected", "actual"), VerdictKind::failed));
  EXPECT_TRUE(has(not_applicable("expected", "actual"), VerdictKind::not_applicable));
}

}  // namespace
}  // namespace weir::check::check_target_test
