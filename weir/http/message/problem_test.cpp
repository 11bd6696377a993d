// Tests of problems and their documents.
#include "weir/http/message/problem.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/http/message/response.hpp"
#include "weir/http/test/heap_fixture.hpp"

namespace weir::http::problem_test {
namespace {

TEST(ProblemDocument, HasTheReasonAndTheCode) {
  const Response page = problem_document({.status = Status::method_not_allowed});
  EXPECT_EQ(page.status(), Status::method_not_allowed);
  EXPECT_EQ(page.content_type(), "application/problem+json");
  EXPECT_EQ(page.body().text(), R"({"title":"Method Not Allowed","status":405})");
  EXPECT_EQ(problem_document({.status = Status{599}}).body().text(), R"({"status":599})");
}

TEST(ProblemDocument, OfAStatusNeedsNoHeapMemory) {
  for (int code = 400; code <= 599; ++code) {
    const Problem described{.status = static_cast<Status>(code)};
    const std::uint64_t before = TestHeap::news;
    const Response page = problem_document(described);
    const std::uint64_t allocations = TestHeap::news - before;
    EXPECT_LE(page.body().text().size(), Body::inline_max) << code;
    EXPECT_EQ(allocations, 0U) << code;
    EXPECT_TRUE(page.is_plain());
  }
}

TEST(ProblemDocument, HasAllMembersOfTheProblem) {
  Problem described{.status = Status::unprocessable_content,
                    .detail = "two \"parts\" do not fit",
                    .type = "https://example.org/invalid"};
  described.violations.push_back({"query", "page", "expected an integer"});
  described.violations.push_back({"body", "/items/0", "missing", 7});
  described.violations.push_back({"body", "", "expected an object", 0});
  EXPECT_EQ(problem_document(described).body().text(),
            R"({"type":"https://example.org/invalid","title":"Unprocessable Content",)"
            R"("status":422,"detail":"two \"parts\" do not fit","errors":[)"
            R"({"in":"query","name":"page","detail":"expected an integer"},)"
            R"({"in":"body","pointer":"/items/0","detail":"missing","offset":7},)"
            R"({"in":"body","pointer":"","detail":"expected an object","offset":0}]})");
}

TEST(Problem, KeepsALimitedNumberAndSizeOfViolations) {
  Problem many;
  for (int count = 0; count < 20; ++count) many.add_violation({"query", "a", "missing"});
  EXPECT_EQ(many.violations.size(), 16U);
  Problem large;
  large.add_violation({"body", std::string(2000, 'x'), "the first is always kept"});
  large.add_violation({"body", "/a", "missing"});
  EXPECT_EQ(large.violations.size(), 1U);
  Problem full;
  full.add_violation({"body", std::string(1000, 'x'), std::string(20, 'y')});
  full.add_violation({"body", "/ab", "c"});
  EXPECT_EQ(full.violations.size(), 2U) << "exactly the limit";
  full.add_violation({"body", "", "z"});
  EXPECT_EQ(full.violations.size(), 2U);
}

TEST(Problem, IsAResponseThatTheServerDescribes) {
  Response response = problem(Status::conflict, "the name is taken");
  EXPECT_EQ(response.status(), Status::conflict);
  EXPECT_TRUE(response.needs_error_page());
  EXPECT_EQ(response.problem().detail, "the name is taken");
  response.set_status(Status::gone);
  EXPECT_EQ(response.problem().status, Status::gone) << "the status of the response counts";
  EXPECT_EQ(Response(Status::not_found).problem().status, Status::not_found);
}

TEST(Problem, IsNeededOnlyByErrorsWithoutContent) {
  EXPECT_TRUE(Response(Status::bad_request).needs_error_page());
  EXPECT_FALSE(Response(Status{399}).needs_error_page());
  EXPECT_FALSE(Response(Status::ok).needs_error_page());
  EXPECT_FALSE(text("own", Status::not_found).needs_error_page());
  EXPECT_FALSE(text("", Status::not_found).needs_error_page()) << "it has a media type";
  Response filled(Status::not_found);
  filled.set_content(problem_document({.status = Status::gone}));
  EXPECT_FALSE(filled.needs_error_page());
  EXPECT_EQ(filled.status(), Status::not_found) << "only the content was replaced";
  Response described = problem(Status::conflict, "the name is taken");
  described.set_content(text("page"));
  EXPECT_EQ(described.problem().detail, "") << "the memory of the problem is released";
}

}  // namespace
}  // namespace weir::http::problem_test
