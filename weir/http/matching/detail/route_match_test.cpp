// Tests of RouteMatch.
#include "weir/http/matching/detail/route_match.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::route_match_test {
namespace {

Response echo(std::string_view first, std::string_view second) {
  return text(std::string(first) + "|" + std::string(second));
}

class RouteMatchTest : public LoopTest {
 protected:
  Router routes_;
  RouteMatch match_;
};

TEST_F(RouteMatchTest, RebasesPathParamsWithTheHead) {
  routes_.get("/{a}/{b}", echo);
  std::string before = "GET /plain/%64ecoded HTTP/1.1\r\nHost: a\r\n\r\n";
  RequestHead head;
  HeadParser parser{HeadLimits()};
  ASSERT_EQ(parser.parse(before, head).kind, ParseResult::Kind::complete);
  routes_.match(head, match_);
  const std::string after = before;
  match_.rebase(before, after.data());
  before.assign(before.size(), 'x');
  EXPECT_EQ(match_.path_params()[0], "plain");
  EXPECT_EQ(match_.path_params()[0].data(), after.data() + 5);
  EXPECT_EQ(match_.path_params()[1], "decoded");
}

TEST_F(RouteMatchTest, DecodesPathParamsOfAnyLength) {
  routes_.get("/{a}/{b}", echo);
  for (const std::size_t length : {1U, 200U, 511U, 512U, 513U, 3000U, 700U, 3U}) {
    std::string escaped;
    for (std::size_t count = 0; count < length; ++count) escaped += "%41";
    TextRequest request("GET /" + escaped.substr(0, 2000 / 3 * 3) + "/" + escaped.substr(0, 3000));
    routes_.match(request.head(), match_);
    const std::string expected = std::string(std::min<std::size_t>(length, 666), 'A') + "|" +
                                 std::string(std::min<std::size_t>(length, 1000), 'A');
    EXPECT_EQ(match_.respond(request.request()).body().text(), expected);
  }
}

TEST_F(RouteMatchTest, ForgetsThePreviousRequest) {
  routes_.get("/{a}/{b}", echo, {.body_max = 1});
  routes_.post("/x", [] { return Status::ok; });
  const TextRequest found("GET /a/b");
  routes_.match(found.head(), match_);
  EXPECT_TRUE(match_.found());
  const TextRequest missed("GET /x");
  routes_.match(missed.head(), match_);
  EXPECT_FALSE(match_.found());
  EXPECT_FALSE(match_.options().body_max);
  EXPECT_EQ(match_.path_params().size(), 0U);
  TextRequest absent("GET /y");
  routes_.match(absent.head(), match_);
  const Response response = match_.respond(absent.request());
  EXPECT_EQ(response.status(), Status::not_found);
  EXPECT_TRUE(response.headers().empty()) << "no Allow header of the previous request";
}

TEST_F(RouteMatchTest, WaitsForHandlersThatWait) {
  routes_.get("/now", [] { return text("now"); });
  routes_.get("/later",
              [] { return as_task([]() -> Task<Response> { co_return text("later"); }()); });
  TextRequest now("GET /now");
  routes_.match(now.head(), match_);
  EXPECT_FALSE(match_.is_async());
  EXPECT_EQ(run(match_.start(now.request())).body().text(), "now");
  TextRequest later("GET /later");
  routes_.match(later.head(), match_);
  EXPECT_TRUE(match_.is_async());
  EXPECT_EQ(run(match_.start(later.request())).body().text(), "later");
  TextRequest missed("GET /missed");
  routes_.match(missed.head(), match_);
  EXPECT_FALSE(match_.is_async());
}

}  // namespace
}  // namespace weir::http::route_match_test
