#include "weir/http/router/router.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/http_request.hpp"

namespace weir::http::router_test {
namespace {

struct Answer {
  int code;
  std::string text;
  std::string allow;
};

Answer ask(const Router& router, std::string_view line) {
  TextRequest request(line);
  RouteMatch match;
  router.match(request.head(), match);
  const Response response = match.respond(request.request());
  return {code_of(response.status()), sent_body(response),
          std::string(response.headers().get("Allow").value_or("-"))};
}

std::string text_of(const Router& router, std::string_view line) {
  return ask(router, line).text;
}

/// Returns a handler that answers with `name` and its params.
auto say(std::string name) {
  return [name = std::move(name)] { return text(name); };
}
auto say1(std::string name) {
  return [name = std::move(name)](std::string_view a) {
    return text(name + "(" + std::string(a) + ")");
  };
}
auto say2(std::string name) {
  return [name = std::move(name)](std::string_view a, std::string_view b) {
    return text(name + "(" + std::string(a) + "," + std::string(b) + ")");
  };
}

constexpr std::string_view not_found = R"({"title":"Not Found","status":404})";

TEST(Router, FindsRoutesByMethodAndPath) {
  Router routes;
  routes.get("/", say("root"));
  routes.get("/a", say("get"));
  routes.post("/a", say("post"));
  routes.put("/a", say("put"));
  routes.patch("/a", say("patch"));
  routes.del("/a", say("del"));
  routes.head("/a", say("head"));
  routes.options("/a", say("options"));
  EXPECT_EQ(text_of(routes, "GET /"), "root");
  EXPECT_EQ(text_of(routes, "GET /a"), "get");
  EXPECT_EQ(text_of(routes, "POST /a"), "post");
  EXPECT_EQ(text_of(routes, "PUT /a"), "put");
  EXPECT_EQ(text_of(routes, "PATCH /a"), "patch");
  EXPECT_EQ(text_of(routes, "DELETE /a"), "del");
  EXPECT_EQ(text_of(routes, "HEAD /a"), "head");
  EXPECT_EQ(text_of(routes, "OPTIONS /a"), "options");
  EXPECT_EQ(routes.size(), 8U);
}

TEST(Router, LooksOnlyAtThePath) {
  Router routes;
  routes.get("/a", say("a"));
  EXPECT_EQ(text_of(routes, "GET /a?b=/c"), "a");
  EXPECT_EQ(text_of(routes, "GET /a?"), "a");
  EXPECT_EQ(text_of(routes, "GET http://test/a?b"), "a");
  EXPECT_EQ(text_of(routes, "GET http://test"), not_found);
}

TEST(Router, SlashesAreSignificant) {
  Router routes;
  routes.get("/a", say("a"));
  routes.get("/b/", say("b/"));
  routes.get("/c//d", say("c//d"));
  routes.get("/{x}/y", say1("param"));
  EXPECT_EQ(text_of(routes, "GET /a/"), not_found);
  EXPECT_EQ(text_of(routes, "GET //a"), not_found);
  EXPECT_EQ(text_of(routes, "GET /b/"), "b/");
  EXPECT_EQ(text_of(routes, "GET /b"), not_found);
  EXPECT_EQ(text_of(routes, "GET /c//d"), "c//d");
  EXPECT_EQ(text_of(routes, "GET /c/d"), not_found);
  EXPECT_EQ(text_of(routes, "GET //y"), not_found) << "a param is not empty";
}

TEST(Router, ComparesDecodedSegments) {
  Router routes;
  routes.get("/hello/{name}", say1("hello"));
  routes.get("/plain", say("plain"));
  routes.get("/a%20b/c%2Fd", say("escaped"));
  EXPECT_EQ(text_of(routes, "GET /h%65llo/you"), "hello(you)");
  EXPECT_EQ(text_of(routes, "GET /hello/a%2Fb%20c"), "hello(a/b c)");
  EXPECT_EQ(text_of(routes, "GET /hello/%2541"), "hello(%41)") << "decoded once";
  EXPECT_EQ(text_of(routes, "GET /pl%61in"), "plain");
}

TEST(Router, AnEscapedSlashNeverSplits) {
  Router routes;
  routes.get("/a/b", say("two segments"));
  routes.get("/c%2Fd", say("one segment"));
  EXPECT_EQ(text_of(routes, "GET /a%2Fb"), not_found);
  EXPECT_EQ(text_of(routes, "GET /c%2fd"), "one segment");
  EXPECT_EQ(text_of(routes, "GET /c/d"), not_found);
}

TEST(Router, GivesTheRawWildcard) {
  Router routes;
  routes.get("/files/{path...}", say1("rest"));
  routes.get("/typed/{path...}",
             [](Wildcard rest) { return text("raw:" + std::string(rest.raw())); });
  routes.get("/{user}/in/{path...}", say2("both"));
  EXPECT_EQ(text_of(routes, "GET /files/"), "rest()");
  EXPECT_EQ(text_of(routes, "GET /files"), not_found);
  EXPECT_EQ(text_of(routes, "GET /files/a/b%2Fc//"), "rest(a/b%2Fc//)");
  EXPECT_EQ(text_of(routes, "GET /files//a"), "rest(/a)");
  EXPECT_EQ(text_of(routes, "GET /typed/a%20b"), "raw:a%20b");
  EXPECT_EQ(text_of(routes, "GET /m%65/in/a%20b/c"), "both(me,a%20b/c)");
  std::string deep = "/x";
  for (int count = 0; count < 500; ++count) deep += "/%61";
  EXPECT_EQ(text_of(routes, "GET /files" + deep), "rest(" + deep.substr(1) + ")");
}

TEST(Router, WildcardAtTheRootMatchesEverything) {
  Router routes;
  routes.get("/{path...}", say1("rest"));
  EXPECT_EQ(text_of(routes, "GET /"), "rest()");
  EXPECT_EQ(text_of(routes, "GET /a/b"), "rest(a/b)");
  EXPECT_EQ(text_of(routes, "GET //"), "rest(/)");
}

TEST(Router, GivesTheMatchOfARegexAndThenItsGroups) {
  Router routes;
  routes.get("/{id:[0-9]{3}}", say1("digits"));
  routes.get("/{d:(\\d+)-(\\d+)}/{x}",
             [](std::string_view all, int year, int month, std::string_view x) {
               return text(std::string(all) + "|" + std::to_string(year) + "|" +
                           std::to_string(month) + "|" + std::string(x));
             });
  ASSERT_TRUE(routes.check()) << routes.error_text();
  EXPECT_EQ(text_of(routes, "GET /123"), "digits(123)");
  EXPECT_EQ(text_of(routes, "GET /1234"), not_found);
  EXPECT_EQ(text_of(routes, "GET /%31%32%33"), "digits(123)") << "matched decoded";
  EXPECT_EQ(text_of(routes, "GET /2024-11/x%20y"), "2024-11|2024|11|x y");
  EXPECT_EQ(text_of(routes, "GET /%32024-11/x"), "2024-11|2024|11|x");
}

TEST(Router, PrefersLiteralsThenRegexesThenParamsThenWildcard) {
  Router routes;
  routes.get("/{path...}", say1("rest"));
  routes.get("/{name}", say1("param"));
  routes.get("/{x:[a-z]+}", say1("letters"));
  routes.get("/{x:[a-z0-9]+}", say1("alphanumeric"));
  routes.get("/{x:[ab]+}", say1("never"));
  routes.get("/abc", say("literal"));
  EXPECT_EQ(text_of(routes, "GET /abc"), "literal");
  EXPECT_EQ(text_of(routes, "GET /ab"), "letters(ab)");
  EXPECT_EQ(text_of(routes, "GET /ab1"), "alphanumeric(ab1)");
  EXPECT_EQ(text_of(routes, "GET /A"), "param(A)");
  EXPECT_EQ(text_of(routes, "GET /A/b"), "rest(A/b)");
  EXPECT_EQ(text_of(routes, "GET /"), "rest()");
}

TEST(Router, PrecedenceGoesSegmentBySegment) {
  Router routes;
  routes.get("/{a}/x/y", say1("late literals"));
  routes.get("/a/{b}/{c}", say2("early literal"));
  EXPECT_EQ(text_of(routes, "GET /a/x/y"), "early literal(x,y)");
  EXPECT_EQ(text_of(routes, "GET /b/x/y"), "late literals(b)");
}

TEST(Router, FallsBackToTheNextBestMatch) {
  Router routes;
  routes.get("/a/b/c", say("abc"));
  routes.get("/a/{x}/d", say1("a_d"));
  routes.get("/{x}/b/e", say1("_be"));
  routes.get("/a/{rest...}", say1("rest"));
  EXPECT_EQ(text_of(routes, "GET /a/b/c"), "abc");
  EXPECT_EQ(text_of(routes, "GET /a/b/d"), "a_d(b)");
  EXPECT_EQ(text_of(routes, "GET /a/b/x"), "rest(b/x)");
  EXPECT_EQ(text_of(routes, "GET /a/b/e"), "rest(b/e)");
  EXPECT_EQ(text_of(routes, "GET /z/b/e"), "_be(z)");
}

TEST(Router, FallsBackForAnotherMethod) {
  Router routes;
  routes.post("/users/me", say("post me"));
  routes.get("/users/{id}", say1("get"));
  routes.del("/{rest...}", say1("delete"));
  EXPECT_EQ(text_of(routes, "GET /users/me"), "get(me)");
  EXPECT_EQ(text_of(routes, "DELETE /users/me"), "delete(users/me)");
  EXPECT_EQ(text_of(routes, "POST /users/me"), "post me");
  EXPECT_EQ(ask(routes, "PUT /users/me").allow, "DELETE, GET, HEAD, OPTIONS, POST");
}

TEST(Router, GetAnswersHeadUnlessAHeadRouteExists) {
  Router routes;
  routes.get("/a", say("get a"));
  routes.get("/b", say("get b"));
  routes.head("/b", say("head b"));
  routes.head("/{x}", say1("head"));
  EXPECT_EQ(text_of(routes, "HEAD /a"), "get a") << "the preferred path goes first";
  EXPECT_EQ(text_of(routes, "HEAD /b"), "head b");
  EXPECT_EQ(text_of(routes, "HEAD /c"), "head(c)");
  EXPECT_EQ(ask(routes, "GET /c").allow, "HEAD, OPTIONS");
}

TEST(Router, AnswersOtherMethodsWith405AndASortedAllow) {
  Router routes;
  routes.put("/a", say("put"));
  routes.get("/a", say("get"));
  routes.add("PROPFIND", "/a", say("propfind"));
  const Answer answer = ask(routes, "POST /a");
  EXPECT_EQ(answer.code, 405);
  EXPECT_EQ(answer.text, R"({"title":"Method Not Allowed","status":405})");
  EXPECT_EQ(answer.allow, "GET, HEAD, OPTIONS, PROPFIND, PUT");
  EXPECT_EQ(ask(routes, "POST /b").code, 404);
  EXPECT_EQ(ask(routes, "POST /b").allow, "-");
  EXPECT_EQ(ask(routes, "TRACE /a").code, 405);
  EXPECT_EQ(ask(routes, "TRACE /b").code, 404);
  EXPECT_EQ(ask(routes, "CONNECT test:80").code, 405);
  EXPECT_EQ(ask(routes, "CONNECT test:80").allow, "GET, HEAD, OPTIONS, PROPFIND, PUT");
}

TEST(Router, SupportsUnusualMethodsOfItsRoutes) {
  Router routes;
  routes.add("PROPFIND", "/a", say("propfind"));
  routes.get("/b", say("get"));
  EXPECT_EQ(text_of(routes, "PROPFIND /a"), "propfind");
  EXPECT_EQ(ask(routes, "PROPFIND /b").code, 405);
  EXPECT_EQ(ask(routes, "PROPFIND /c").code, 404);
  for (const char* line : {"PURGE /a", "propfind /a", "PROPFINDX /a"}) {
    EXPECT_EQ(ask(routes, line).code, 405) << line;
    EXPECT_EQ(ask(routes, line).allow, "OPTIONS, PROPFIND") << line;
  }
  EXPECT_EQ(ask(routes, "get /b").allow, "GET, HEAD, OPTIONS");
  EXPECT_EQ(ask(routes, "PURGE /c").code, 501) << "no resource knows it";
  EXPECT_EQ(ask(routes, "PURGE /c").allow, "-");
}

TEST(Router, QueryIsAUsualMethod) {
  Router routes;
  routes.query("/search", say("found"));
  routes.get("/other", say("get"));
  EXPECT_EQ(text_of(routes, "QUERY /search"), "found");
  EXPECT_EQ(ask(routes, "GET /search").code, 405);
  EXPECT_EQ(ask(routes, "GET /search").allow, "OPTIONS, QUERY");
  EXPECT_EQ(ask(routes, "QUERY /other").code, 405);
  EXPECT_EQ(ask(routes, "QUERY /other").allow, "GET, HEAD, OPTIONS");
  EXPECT_EQ(ask(routes, "QUERY /none").code, 404);
}

TEST(Router, FallbackTakesAnyMethod) {
  Router routes;
  routes.get("/a", say("get"));
  routes.fallback(say("fallback"));
  EXPECT_EQ(text_of(routes, "PURGE /none"), "fallback");
  EXPECT_EQ(text_of(routes, "QUERY /none"), "fallback");
  EXPECT_EQ(ask(routes, "PURGE /a").code, 405);
}

TEST(Router, AnswersOptions) {
  Router routes;
  routes.get("/a", say("get"));
  routes.post("/b", say("post"));
  routes.options("/b", say("own"));
  const Answer answer = ask(routes, "OPTIONS /a");
  EXPECT_EQ(answer.code, 204);
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(answer.allow, "GET, HEAD, OPTIONS");
  EXPECT_EQ(text_of(routes, "OPTIONS /b"), "own");
  EXPECT_EQ(ask(routes, "OPTIONS /c").code, 404);
  EXPECT_EQ(ask(routes, "OPTIONS *").code, 204);
  EXPECT_EQ(ask(routes, "OPTIONS *").allow, "GET, HEAD, OPTIONS, POST");
}

TEST(Router, EmptyRouterAnswers) {
  const Router routes;
  EXPECT_TRUE(routes.check());
  EXPECT_EQ(ask(routes, "GET /").code, 404);
  EXPECT_EQ(ask(routes, "OPTIONS *").allow, "OPTIONS");
  EXPECT_EQ(ask(routes, "CONNECT a:1").code, 405);
}

TEST(Router, OptionsForAsteriskDoNotReachTheRoot) {
  Router routes;
  routes.options("/", say("root"));
  routes.options("/{rest...}", say1("rest"));
  EXPECT_EQ(text_of(routes, "OPTIONS *"), "");
  EXPECT_EQ(text_of(routes, "OPTIONS http://test"), "");
  EXPECT_EQ(text_of(routes, "OPTIONS /"), "root");
}

TEST(Router, GivesARouteItsOptions) {
  Router routes;
  routes.post("/a", say("a"), {.body_max = 10});
  routes.get("/a", say("a"), {.timeout = 2s});
  RouteMatch match;
  routes.match(TextRequest("POST /a").head(), match);
  EXPECT_EQ(match.options().body_max, 10U);
  EXPECT_FALSE(match.options().timeout);
  routes.match(TextRequest("GET /a").head(), match);
  EXPECT_EQ(match.options().timeout, 2s);
  routes.match(TextRequest("GET /b").head(), match);
  EXPECT_FALSE(match.options().body_max || match.options().timeout);
}

TEST(Router, DuplicateRouteIsAnErrorThatNamesBoth) {
  Router routes;
  routes.get("/a/{x}", say1("first"));
  EXPECT_EQ(routes.get("/a/{y}", say1("second")).number, RouteId::none);
  EXPECT_EQ(routes.check().error(), Errc::conflict);
  EXPECT_EQ(routes.error_text(), "GET /a/{y}: conflicts with /a/{x}\n");
  EXPECT_EQ(text_of(routes, "GET /a/b"), "first(b)");
}

TEST(Router, DetectsDuplicatesWithDifferentSpellings) {
  Router routes;
  routes.get("/a", say("first"));
  routes.get("/%61", say("second"));
  routes.get("/{x:[0-9]+}/{r...}", say2("first"));
  routes.get("/{y:[0-9]+}/{s...}", say2("second"));
  EXPECT_EQ(routes.error_text(),
            "GET /%61: conflicts with /a\n"
            "GET /{y:[0-9]+}/{s...}: conflicts with /{x:[0-9]+}/{r...}\n");
}

TEST(Router, RoutesOfDifferentShapeDoNotConflict) {
  Router routes;
  routes.get("/{x}", say1("a"));
  routes.post("/{x}", say1("a"));
  routes.get("/{x:.+}", say1("a"));
  routes.get("/{x:.*}", say1("a"));
  routes.get("/{x...}", say1("a"));
  routes.get("/{x}/", say1("a"));
  routes.get("/a%2Fb", say("a"));
  routes.get("/a/b", say("a"));
  EXPECT_TRUE(routes.check()) << routes.error_text();
}

TEST(Router, BadRegexesAndMethodsAreStartUpErrors) {
  Router routes;
  routes.get("/{x:[b-a]}", say1("no such range"));
  routes.get("/{x:(?=a)}", say1("no look-ahead"));
  routes.add("NO GOOD", "/", say("x"));
  routes.add("", "/", say("x"));
  routes.add("CONNECT", "/", say("x"));
  EXPECT_FALSE(routes.check());
  EXPECT_EQ(std::ranges::count(routes.error_text(), '\n'), 5);
  EXPECT_NE(routes.error_text().find("RE2 rejects"), std::string::npos);
  EXPECT_EQ(ask(routes, "GET /").code, 404);
}

TEST(Router, TooManyMethodsAreAnError) {
  Router routes;
  for (int count = 0; count < 56; ++count) {
    routes.add("X" + std::to_string(count), "/", say("x"));
  }
  EXPECT_EQ(routes.size(), 54U);
  EXPECT_NE(routes.error_text().find("X54 /"), std::string::npos);
}

TEST(Router, TakesPatternsMadeAtRunTime) {
  Router routes;
  const auto id = routes.get(Pattern::parse("/{x}/{y...}").value(), say2("made"));
  ASSERT_TRUE(id);
  EXPECT_EQ(text_of(routes, "GET /a/b/c"), "made(a,b/c)");
  const auto wrong = routes.get(Pattern::parse("/{x}").value(), say2("made"));
  EXPECT_EQ(wrong.error(), PatternError::wrong_param_count);
  const auto rest = routes.get(Pattern::parse("/{x...}").value(), [](int) { return Status::ok; });
  EXPECT_EQ(rest.error(), PatternError::wrong_wildcard_type);
  const auto bad = routes.post(Pattern::parse("/{x:(}").value(), say2("made"));
  EXPECT_EQ(bad.error(), PatternError::bad_regex);
  const auto again = routes.get(Pattern::parse("/{u}/{v...}").value(), say2("made"));
  EXPECT_EQ(again.error(), Errc::conflict);
  EXPECT_TRUE(routes.check()) << "the caller handles the returned error";
}

TEST(Router, RejectedRouteLeavesNothingBehind) {
  Router routes;
  routes.get("/a/{x:(?=y)}", say1("bad"));
  routes.get("/{rest...}", say1("rest"));
  EXPECT_EQ(text_of(routes, "GET /a/b"), "rest(a/b)");
  EXPECT_EQ(text_of(routes, "POST /a"), R"({"title":"Method Not Allowed","status":405})");
}

TEST(Router, RouteWithOneMethodTooManyLeavesNothingBehind) {
  Router routes;
  for (int count = 0; count < 54; ++count) {
    routes.add("X" + std::to_string(count), "/", say("x"));
  }
  routes.add("X54", "/a/{x:[0-9]+}/{y:[a-z]}", say2("rejected"));
  routes.get("/a/{x}/{y}", say2("plain"));
  EXPECT_EQ(text_of(routes, "GET /a/12/b"), "plain(12,b)");
  EXPECT_EQ(ask(routes, "X54 /a/12/b").code, 405);
  EXPECT_EQ(ask(routes, "POST /a/12/b").allow, "GET, HEAD, OPTIONS");
}

TEST(Router, ErrorTextSaysWhyEachRouteWasRejected) {
  Router routes;
  routes.add("CONNECT", "/", say("x"));
  routes.add("NO GOOD", "/", say("x"));
  routes.get("/{x:[b-a]}", say1("x"));
  routes.get("/a", say("x"));
  routes.get("/a", say("x"));
  EXPECT_EQ(routes.error_text(),
            "CONNECT /: unsupported method (CONNECT, or not a token)\n"
            "NO GOOD /: unsupported method (CONNECT, or not a token)\n"
            "GET /{x:[b-a]}: " +
                make_error_code(PatternError::bad_regex).message() +
                "\n"
                "GET /a: conflicts with /a\n");
  EXPECT_EQ(routes.check().error(), Errc::conflict);
  EXPECT_EQ(routes.size(), 1U);
}

TEST(Router, ErrorsOfPatternsMadeAtRunTimeAreReturned) {
  Router routes;
  const auto pattern = Pattern::parse("/").value();
  EXPECT_EQ(routes.add("CONNECT", pattern, say("x")).error(), Errc::bad_input);
  EXPECT_EQ(routes.add("NO GOOD", pattern, say("x")).error(), Errc::bad_input);
  for (int count = 0; count < 54; ++count) {
    EXPECT_TRUE(routes.add("X" + std::to_string(count), pattern, say("x")));
  }
  EXPECT_EQ(routes.add("X54", pattern, say("x")).error(), Errc::limit_reached);
  EXPECT_EQ(routes.error_text(), "");
}

TEST(Router, EachMethodTakesPatternsMadeAtRunTime) {
  Router routes;
  const auto pattern = Pattern::parse("/{x}").value();
  ASSERT_TRUE(routes.get(pattern, say1("get")));
  ASSERT_TRUE(routes.head(pattern, say1("head")));
  ASSERT_TRUE(routes.post(pattern, say1("post")));
  ASSERT_TRUE(routes.put(pattern, say1("put")));
  ASSERT_TRUE(routes.patch(pattern, say1("patch")));
  ASSERT_TRUE(routes.del(pattern, say1("del")));
  ASSERT_TRUE(routes.options(pattern, say1("options")));
  ASSERT_TRUE(routes.query(pattern, say1("query")));
  EXPECT_EQ(text_of(routes, "GET /a"), "get(a)");
  EXPECT_EQ(text_of(routes, "HEAD /a"), "head(a)");
  EXPECT_EQ(text_of(routes, "POST /a"), "post(a)");
  EXPECT_EQ(text_of(routes, "PUT /a"), "put(a)");
  EXPECT_EQ(text_of(routes, "PATCH /a"), "patch(a)");
  EXPECT_EQ(text_of(routes, "DELETE /a"), "del(a)");
  EXPECT_EQ(text_of(routes, "OPTIONS /a"), "options(a)");
  EXPECT_EQ(text_of(routes, "QUERY /a"), "query(a)");
}

TEST(Router, KeepsTheNameOfTheTrustedHeader) {
  Router routes;
  EXPECT_EQ(routes.id_header(), "");
  routes.trust_id_header("X-Id");
  EXPECT_EQ(routes.id_header(), "X-Id");
}

}  // namespace
}  // namespace weir::http::router_test
