// Tests of the answers of RouteTable and RouteMatch that do not depend on a Router.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/matching/detail/route_table.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::route_lookup_test {
namespace {

Response nothing() {
  return Status::ok;
}

template <class F = Response (*)()>
std::unique_ptr<Route> route(const std::string& method, const std::string& text,
                             F handler = nothing) {
  return std::make_unique<Route>(
      Route{method, Pattern::parse(text).value(), Handler::of(std::move(handler)), {}});
}

/// A store with routes. It describes the result of a look-up in one line: the pattern and its path
/// parameters, or the status and the allowed methods.
class Lookup {
 public:
  Lookup(std::initializer_list<std::string> routes) {
    for (const std::string& each : routes) add(each);
  }
  void add(const std::string& method_and_pattern) {
    const std::size_t space = method_and_pattern.find(' ');
    auto made = route(method_and_pattern.substr(0, space), method_and_pattern.substr(space + 1));
    ASSERT_TRUE(store_.add(made)) << method_and_pattern;
  }
  /// Returns the pattern of the route that already answers the same requests.
  std::string conflict(const std::string& method, const std::string& pattern) {
    auto made = route(method, pattern);
    const auto added = store_.add(made);
    if (!added) return added.error().message();
    return added->conflict != nullptr ? added->conflict->pattern.text() : "none";
  }
  std::string operator()(std::string_view method_and_target) {
    TextRequest request(method_and_target);
    store_.table().match(request.head(), match_);
    return said(request.request());
  }
  std::string find(const RouteTable::LookupKey& key) {
    store_.table().find(key, match_);
    TextRequest request("GET /");
    return said(request.request());
  }
  RouteTable& table() { return store_.table(); }

 private:
  std::string said(Request& request) {
    if (!match_.found()) {
      const Response response = match_.respond(request);
      std::string text = std::to_string(code_of(response.status()));
      if (const auto allow = response.headers().get("Allow")) text.append(" ").append(*allow);
      return text;
    }
    std::string text = match_.route()->method + " " + match_.route()->pattern.text();
    for (std::size_t index = 0; index < match_.path_params().size(); ++index) {
      text.append("|").append(match_.path_params()[index]);
    }
    return text;
  }

  RouteStore store_;
  RouteMatch match_;
};

std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t count = 0; count < times; ++count) all += text;
  return all;
}

TEST(RouteLookup, ComparesAllSegmentsOfTheLongestPattern) {
  const std::string longest = repeat("/{a}", 16) + repeat("/b", 16);
  const std::string path = repeat("/x", 16) + repeat("/b", 16);
  Lookup lookup{"GET " + longest};
  EXPECT_EQ(lookup("GET " + path), "GET " + longest + repeat("|x", 16));
  EXPECT_EQ(lookup("GET " + path + "/b"), "404");
  EXPECT_EQ(lookup("GET " + path + "/"), "404");
  EXPECT_EQ(lookup("GET " + path.substr(0, path.size() - 2)), "404");
  EXPECT_EQ(lookup("GET " + path.substr(0, path.size() - 1) + "c"), "404");
}

TEST(RouteLookup, AWildcardAfterTheLongestPatternTakesTheRawRest) {
  const std::string start = repeat("/b", 31);
  Lookup lookup{"GET " + start + "/{rest...}", "GET /{x}/{rest...}"};
  EXPECT_EQ(lookup("GET " + start + "/"), "GET " + start + "/{rest...}|");
  EXPECT_EQ(lookup("GET " + start + "/a%2Fb/c//"), "GET " + start + "/{rest...}|a%2Fb/c//");
  EXPECT_EQ(lookup("GET /b/c/%64"), "GET /{x}/{rest...}|b|c/%64");
  EXPECT_EQ(lookup("GET /%62/c"), "GET /{x}/{rest...}|b|c");
}

TEST(RouteLookup, WildcardsStartAtTheirSegment) {
  Lookup lookup{"GET /{rest...}", "GET /a/{rest...}", "GET /a/{x}/c/{rest...}"};
  EXPECT_EQ(lookup("GET /"), "GET /{rest...}|");
  EXPECT_EQ(lookup("GET /a"), "GET /{rest...}|a");
  EXPECT_EQ(lookup("GET /a/"), "GET /a/{rest...}|");
  EXPECT_EQ(lookup("GET //a"), "GET /{rest...}|/a");
  EXPECT_EQ(lookup("GET /a/b/c"), "GET /a/{rest...}|b/c");
  EXPECT_EQ(lookup("GET /a/b/c/"), "GET /a/{x}/c/{rest...}|b|");
  EXPECT_EQ(lookup("GET /a/b/c/d/e"), "GET /a/{x}/c/{rest...}|b|d/e");
  EXPECT_EQ(lookup("GET /a//c/d"), "GET /a/{rest...}|/c/d");
}

TEST(RouteLookup, PreferredBranchesThatLeadNowhereAreLeft) {
  Lookup lookup{"GET /a/b/c",   "GET /a/{x:b+}/d", "GET /a/{x}/e",
                "GET /{x}/b/f", "GET /{rest...}",  "PUT /a/b/g"};
  EXPECT_EQ(lookup("GET /a/b/c"), "GET /a/b/c");
  EXPECT_EQ(lookup("GET /a/b/d"), "GET /a/{x:b+}/d|b");
  EXPECT_EQ(lookup("GET /a/b/e"), "GET /a/{x}/e|b");
  EXPECT_EQ(lookup("GET /a/b/f"), "GET /{x}/b/f|a");
  EXPECT_EQ(lookup("GET /a/b/g"), "GET /{rest...}|a/b/g");
  EXPECT_EQ(lookup("PUT /a/b/g"), "PUT /a/b/g");
  EXPECT_EQ(lookup("PUT /a/b/c"), "405 GET, HEAD, OPTIONS");
}

TEST(RouteLookup, MissesCollectTheMethodsOfEveryBranch) {
  Lookup lookup{"GET /a/b", "PUT /{x}/b", "POST /a/{y:.}", "DELETE /a/{z...}", "PATCH /c"};
  EXPECT_EQ(lookup("TRACE /a/b"), "405 DELETE, GET, HEAD, OPTIONS, POST, PUT");
  EXPECT_EQ(lookup("OPTIONS /a/b"), "204 DELETE, GET, HEAD, OPTIONS, POST, PUT");
  EXPECT_EQ(lookup("TRACE /a/bb"), "405 DELETE, OPTIONS");
  EXPECT_EQ(lookup("TRACE /x/b"), "405 OPTIONS, PUT");
  EXPECT_EQ(lookup("TRACE /d"), "404");
  EXPECT_EQ(lookup("OPTIONS /d"), "404");
  EXPECT_EQ(lookup("BREW /a/b"), "405 DELETE, GET, HEAD, OPTIONS, POST, PUT");
  EXPECT_EQ(lookup("BREW /d"), "501");
  EXPECT_EQ(lookup("OPTIONS *"), "204 DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
  EXPECT_EQ(lookup("CONNECT a:1"), "405 DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
}

TEST(RouteLookup, GetAnswersHeadOnlyWithoutAHeadRoute) {
  Lookup lookup{"GET /a", "PUT /a", "GET /b", "HEAD /b", "PUT /c", "GET /{x}/d", "BREW /a"};
  EXPECT_EQ(lookup("HEAD /a"), "GET /a");
  EXPECT_EQ(lookup("HEAD /b"), "HEAD /b");
  EXPECT_EQ(lookup("GET /b"), "GET /b");
  EXPECT_EQ(lookup("HEAD /c"), "405 OPTIONS, PUT");
  EXPECT_EQ(lookup("HEAD /x/d"), "GET /{x}/d|x");
  EXPECT_EQ(lookup("POST /a"), "405 BREW, GET, HEAD, OPTIONS, PUT");
  EXPECT_EQ(lookup("PUT /a"), "PUT /a");
  EXPECT_EQ(lookup("BREW /a"), "BREW /a");
  EXPECT_EQ(lookup("BREW /b"), "405 GET, HEAD, OPTIONS");
  EXPECT_EQ(lookup.table().find_literal(Method::get, "/a")->method, "GET");
  EXPECT_EQ(lookup.table().find_literal(Method::head, "/a")->method, "GET");
  EXPECT_EQ(lookup.table().find_literal(Method::other, "/a"), nullptr);
  EXPECT_EQ(lookup.table().find_literal(Method::post, "/a"), nullptr);
  EXPECT_EQ(lookup.table().find_literal(Method::get, "/x/d"), nullptr);
  EXPECT_EQ(lookup.table().find_literal(Method::get, "/"), nullptr);
}

TEST(RouteLookup, LiteralsAreComparedDecoded) {
  Lookup lookup{"GET /caf%C3%A9", "GET /a%2Fb", "GET /c%3fd", "GET /e%25f", "GET /~g", "GET /a/b/"};
  EXPECT_EQ(lookup("GET /caf%c3%a9"), "GET /caf%C3%A9");
  EXPECT_EQ(lookup("GET /a%2fb"), "GET /a%2Fb");
  EXPECT_EQ(lookup("GET /a/b"), "404");
  EXPECT_EQ(lookup("GET /a/b/"), "GET /a/b/");
  EXPECT_EQ(lookup("GET /c%3Fd"), "GET /c%3fd");
  EXPECT_EQ(lookup("GET /c?d"), "404");
  EXPECT_EQ(lookup("GET /e%25f"), "GET /e%25f");
  EXPECT_EQ(lookup("GET /%7Eg"), "GET /~g");
  EXPECT_EQ(lookup("GET /~%67"), "GET /~g");
  EXPECT_EQ(lookup("GET /~g?q=%41"), "GET /~g");
  EXPECT_EQ(lookup("GET /%61/%62/"), "GET /a/b/");
}

TEST(RouteLookup, ParamsTakeOneSegmentThatIsNotEmpty) {
  Lookup lookup{"GET /{a}/{b}", "GET /d/{x:[0-9]*}", "GET /e/{x:([0-9]+)-?([a-z]*)}/{y}"};
  EXPECT_EQ(lookup("GET /x/y"), "GET /{a}/{b}|x|y");
  EXPECT_EQ(lookup("GET /%2F/%20"), "GET /{a}/{b}|/| ");
  EXPECT_EQ(lookup("GET /x/"), "404");
  EXPECT_EQ(lookup("GET //y"), "404");
  EXPECT_EQ(lookup("GET /x"), "404");
  EXPECT_EQ(lookup("GET /d/"), "GET /d/{x:[0-9]*}|");
  EXPECT_EQ(lookup("GET /d/%31%32"), "GET /d/{x:[0-9]*}|12");
  EXPECT_EQ(lookup("GET /e/1-b/c"), "GET /e/{x:([0-9]+)-?([a-z]*)}/{y}|1-b|1|b|c");
}

TEST(RouteLookup, RegexesAreTriedInTheOrderOfRegistration) {
  Lookup lookup{"GET /{x:[a-c]}/1", "GET /{x:[b-d]}/2", "GET /{x:[a-c]}/3", "GET /{x:.}/1"};
  EXPECT_EQ(lookup("GET /b/1"), "GET /{x:[a-c]}/1|b");
  EXPECT_EQ(lookup("GET /b/2"), "GET /{x:[b-d]}/2|b");
  EXPECT_EQ(lookup("GET /b/3"), "GET /{x:[a-c]}/3|b");
  EXPECT_EQ(lookup("GET /d/1"), "GET /{x:.}/1|d");
  EXPECT_EQ(lookup("GET /d/3"), "404");
}

TEST(RouteLookup, RoutesForTheSameRequestsConflict) {
  Lookup lookup{"GET /a/{x:[a-c]}/b", "GET /a/{x}", "GET /a/{x...}", "GET /a", "BREW /a",
                "GET /caf%C3%A9"};
  EXPECT_EQ(lookup.conflict("GET", "/a/{other:[a-c]}/b"), "/a/{x:[a-c]}/b");
  EXPECT_EQ(lookup.conflict("GET", "/a/{x:[a-d]}/b"), "none");
  EXPECT_EQ(lookup.conflict("GET", "/a/{x:[a-d]}/b"), "/a/{x:[a-d]}/b");
  EXPECT_EQ(lookup.conflict("GET", "/a/{other}"), "/a/{x}");
  EXPECT_EQ(lookup.conflict("GET", "/a/{other...}"), "/a/{x...}");
  EXPECT_EQ(lookup.conflict("GET", "/%61"), "/a");
  EXPECT_EQ(lookup.conflict("GET", "/caf%c3%a9"), "/caf%C3%A9");
  EXPECT_EQ(lookup.conflict("BREW", "/a"), "/a");
  EXPECT_EQ(lookup.conflict("PUT", "/a"), "none");
  EXPECT_EQ(lookup.conflict("HEAD", "/a"), "none");
  EXPECT_EQ(lookup.conflict("STEEP", "/a"), "none");
  EXPECT_EQ(lookup("GET /a/b/b"), "GET /a/{x:[a-c]}/b|b");
  EXPECT_EQ(lookup("GET /a/d/b"), "GET /a/{x:[a-d]}/b|d");
}

TEST(RouteLookup, FindUsesTheTextOfAnotherMethod) {
  Lookup lookup{"GET /a", "BREW /a", "STEEP /a"};
  EXPECT_EQ(lookup.find({.path = "/a"}), "GET /a");
  EXPECT_EQ(lookup.find({.path = "/%61"}), "GET /a");
  EXPECT_EQ(lookup.find({.method = Method::other, .method_text = "STEEP", .path = "/a"}),
            "STEEP /a");
  EXPECT_EQ(lookup.find({.method = Method::other, .method_text = "POUR", .path = "/a"}),
            "405 BREW, GET, HEAD, OPTIONS, STEEP");
  EXPECT_EQ(lookup.find({.method = Method::other, .method_text = "POUR", .path = "/b"}), "501");
  EXPECT_EQ(lookup.find({.method = Method::put, .path = "/a", .has_escapes = false}),
            "405 BREW, GET, HEAD, OPTIONS, STEEP");
  EXPECT_EQ(lookup.find({.method = Method::options, .path = "*"}),
            "204 BREW, GET, HEAD, OPTIONS, STEEP");
}

TEST(RouteTable, LimitsItsMethods) {
  RouteTable table;
  std::vector<std::unique_ptr<Route>> routes;
  for (std::size_t each = 0; each < 54; ++each) {
    routes.push_back(route("X" + std::to_string(each), "/a"));
    ASSERT_EQ(table.add(*routes.back()).value(), routes.back().get());
  }
  const auto further = route("Y", "/a");
  EXPECT_EQ(table.add(*further).error(), Errc::limit_reached);
  const auto known = route("X53", "/b");
  EXPECT_EQ(table.add(*known).value(), known.get());
  const auto again = route("X53", "/a");
  EXPECT_EQ(table.add(*again).value(), routes.back().get());
}

TEST(LiteralPaths, FindsPathsOfEveryLength) {
  static const std::array<int, 3> values = {1, 2, 3};
  for (std::size_t size = 1; size <= 90; ++size) {
    LiteralPaths<const int*> paths;
    const std::string first = "/" + std::string(size, 'a');
    const std::string second = "/" + std::string(size - 1, 'a') + "b";
    const std::string longer = first + "a";
    EXPECT_EQ(paths.find(first), nullptr);
    paths.insert(first, &values[0]);
    EXPECT_EQ(paths.find(first), &values[0]) << size;
    EXPECT_EQ(paths.find(second), nullptr) << size;
    EXPECT_EQ(paths.find(longer), nullptr) << size;
    paths.insert(longer, &values[2]);
    paths.insert(first, &values[1]);
    EXPECT_EQ(paths.find(first), &values[0]) << size;
    EXPECT_EQ(paths.find(second), nullptr) << size;
    paths.insert(second, &values[1]);
    EXPECT_EQ(paths.find(first), &values[0]) << size;
    EXPECT_EQ(paths.find(second), &values[1]) << size;
    EXPECT_EQ(paths.find(longer), &values[2]) << size;
    EXPECT_EQ(paths.find("/" + std::string(size - 1, 'a') + "c"), nullptr) << size;
  }
}

class RouteMatchAnswers : public LoopTest {
 protected:
  /// Adds a route and looks up the request's head.
  template <class F>
  void match(F handler, TextRequest& request, std::string_view method = "GET") {
    routes_.push_back(route(std::string(method), "/a", std::move(handler)));
    ASSERT_TRUE(table_->add(*routes_.back()));
    table_->match(request.head(), match_);
  }

  std::vector<std::unique_ptr<Route>> routes_;
  std::unique_ptr<RouteTable> table_ = std::make_unique<RouteTable>();
  RouteMatch match_;
};

TEST_F(RouteMatchAnswers, OutliveTheTableOnceDetached) {
  for (const std::string_view line : {"PUT /a", "OPTIONS /a", "GET /b", "BREW /a", "GET /a"}) {
    TextRequest request(line);
    match(nothing, request);
    const Response before = match_.respond(request.request());
    match_.detach_from_table();
    match_.detach_from_table();
    table_ = std::make_unique<RouteTable>();
    const Response after = match_.respond(request.request());
    EXPECT_EQ(after.status(), before.status()) << line;
    EXPECT_EQ(after.headers().lines(), before.headers().lines()) << line;
    const Response later = run(match_.start(request.request()));
    EXPECT_EQ(later.headers().lines(), before.headers().lines()) << line;
    EXPECT_EQ(later.status(), before.status()) << line;
  }
}

TEST_F(RouteMatchAnswers, DetachedAllowedMethodsAreSorted) {
  TextRequest request("PUT /a");
  match(nothing, request);
  match_.detach_from_table();
  table_.reset();
  const Response response = match_.respond(request.request());
  EXPECT_EQ(response.status(), Status::method_not_allowed);
  EXPECT_EQ(response.headers().get("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(sent_body(response), R"({"title":"Method Not Allowed","status":405})");
}

TEST_F(RouteMatchAnswers, OwnErrorsAreDescribedByTheServer) {
  for (const auto& [line, body] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"PUT /a", R"({"title":"Method Not Allowed","status":405})"},
           {"GET /b", R"({"title":"Not Found","status":404})"},
           {"BREW /b", R"({"title":"Not Implemented","status":501})"},
           {"OPTIONS /a", ""}}) {
    TextRequest request(line);
    match(nothing, request);
    EXPECT_EQ(sent_body(match_.respond(request.request())), body);
    EXPECT_EQ(match_.route(), nullptr);
    EXPECT_FALSE(match_.is_async());
    EXPECT_FALSE(match_.needs_only_body());
    EXPECT_FALSE(match_.is_per_core());
    EXPECT_FALSE(match_.options().timeout.has_value());
  }
}

TEST_F(RouteMatchAnswers, HandlersOfJsonNeedOnlyTheBody) {
  TextRequest request("POST /a", "[1,2]");
  match([](std::vector<int> numbers) { return text(std::to_string(numbers.size())); }, request,
        "POST");
  ASSERT_TRUE(match_.found());
  EXPECT_TRUE(match_.needs_only_body());
  EXPECT_TRUE(match_.is_async());
  EXPECT_EQ(match_.respond_with_body("[1]", request.request()).body().text(), "1");
  EXPECT_EQ(match_.respond_with_body("[", request.request()).status(), Status::bad_request);
  EXPECT_EQ(run(match_.start(request.request())).body().text(), "2");
  const auto pass = [](Request& each, Next next) -> Task<Response> { return next(each); };
  const std::array middleware = {Middleware::of(pass)};
  table_->set_middleware(middleware);
  EXPECT_EQ(table_->middleware().size(), 1U);
  table_->match(request.head(), match_);
  EXPECT_FALSE(match_.needs_only_body());
  EXPECT_TRUE(match_.is_async());
  EXPECT_EQ(run(match_.start(request.request())).body().text(), "2");
}

TEST_F(RouteMatchAnswers, OtherHandlersNeedMoreThanTheBodyOrNothing) {
  TextRequest get("GET /a");
  match(nothing, get);
  EXPECT_FALSE(match_.needs_only_body());
  EXPECT_FALSE(match_.is_async());
  EXPECT_FALSE(match_.is_per_core());
  TextRequest put("PUT /a", "[1]");
  match(
      [](std::vector<int> numbers) -> Task<Response> {
        co_return text(std::to_string(numbers.size()));
      },
      put, "PUT");
  EXPECT_FALSE(match_.needs_only_body());
  EXPECT_TRUE(match_.is_async());
  EXPECT_EQ(run(match_.start(put.request())).body().text(), "1");
}

TEST_F(RouteMatchAnswers, AnotherRouteMayAnswer) {
  TextRequest request("GET /a");
  match([] { return text("matched"); }, request);
  const auto other = route("GET", "/a", [] { return text("other"); });
  other->options.body_max = 7;
  match_.redirect_to(*other);
  EXPECT_EQ(match_.route(), other.get());
  EXPECT_EQ(match_.options().body_max, 7U);
  EXPECT_EQ(match_.respond(request.request()).body().text(), "other");
  table_->match(request.head(), match_);
  EXPECT_EQ(match_.respond(request.request()).body().text(), "matched");
}

TEST_F(RouteMatchAnswers, MatchAfterMemoryRanOut) {
  const ScopedBlockPool blocks(loop_->blocks());
  RouteStore store;
  auto named = route("GET", "/{name}", [](std::string_view name) { return text(name); });
  ASSERT_TRUE(store.add(named));
  std::string target = "GET /";
  for (int each = 0; each < 400; ++each) target += "%41";
  TextRequest request(target);
  RouteMatch match;
  loop_->blocks().fail_after(0);
  EXPECT_THROW(store.table().match(request.head(), match), std::bad_alloc);
  store.table().match(request.head(), match);
  EXPECT_EQ(match.respond(request.request()).body().text(), std::string(400, 'A'));
}

TEST_F(RouteMatchAnswers, MatchPathsOfGrowingAndShrinkingLength) {
  RouteStore store;
  auto named = route("GET", "/{name}", [](std::string_view name) { return text(name); });
  ASSERT_TRUE(store.add(named));
  for (const std::size_t length : {510U, 511U, 512U, 513U, 2000U, 1999U, 2001U, 100U, 3000U}) {
    const std::string name = "%42" + std::string(length - 4, 'a');
    TextRequest request("GET /" + name);
    store.table().match(request.head(), match_);
    EXPECT_EQ(match_.respond(request.request()).body().text(), "B" + name.substr(3)) << length;
  }
}

TEST_F(RouteMatchAnswers, DetachedAllowedMethodsMayBeLong) {
  for (int each = 0; each < 50; ++each) {
    routes_.push_back(route("A-METHOD-WITH-A-LONG-NAME-" + std::to_string(each), "/a"));
    ASSERT_TRUE(table_->add(*routes_.back()));
  }
  TextRequest request("PUT /a");
  table_->match(request.head(), match_);
  const Response before = match_.respond(request.request());
  match_.detach_from_table();
  table_.reset();
  const Response after = match_.respond(request.request());
  EXPECT_EQ(after.status(), Status::method_not_allowed);
  EXPECT_EQ(after.headers().lines(), before.headers().lines());
  EXPECT_GT(after.headers().lines().size(), 1300U);
}

}  // namespace
}  // namespace weir::http::route_lookup_test
