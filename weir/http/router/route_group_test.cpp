// Tests of groups of routes and their middleware.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"

namespace weir::http::route_group_test {
namespace {

struct Note {
  std::string text;
};

/// Middleware that answers 401 to a request without the header.
Task<Response> require_login(Request& request, Next next) {
  if (!request.header("Authorization")) co_return problem(Status::unauthorized);
  co_return co_await next(request);
}

/// Middleware that adds its name in front of the text of the response.
class Mark {
 public:
  explicit Mark(std::string name) : name_(std::move(name)) {}
  Task<Response> operator()(Request& request, Next next) const {
    auto response = co_await next(request);
    response.set_content(text(name_ + sent_body(response)));
    co_return response;
  }

 private:
  std::string name_;
};

class RouteGroupTest : public HttpTest {
 protected:
  std::string body(std::string_view request, std::string_view more = {}) {
    const auto answers = sim::parse_http_responses(
        talk(connect(), std::string(request) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more)));
    EXPECT_EQ(answers.size(), 1U) << request;
    if (answers.empty()) return {};
    return answers[0].status == 200 ? answers[0].body : std::to_string(answers[0].status);
  }
  std::string get(std::string_view path, std::string_view headers = {}) {
    return body("GET " + std::string(path), std::string(headers) + "\r\n");
  }
};

TEST_F(RouteGroupTest, GuardCoversAllRoutesHoweverTheirPathsAreWritten) {
  RouteGroup api = routes_.group("/api", require_login);
  api.get("/notes", [] { return text("notes"); });
  api.get("/{name}/later", [](std::string name) -> Task<Response> { co_return text(name); });
  api.post("/notes", [](Note note) { return text(note.text); });
  routes_.get("/notes", [] { return text("public"); });
  serve();
  for (const char* const path : {"/api/notes", "/api/%6eotes", "/%61pi/notes", "/api/a/later"}) {
    EXPECT_EQ(get(path), "401") << path;
    EXPECT_NE(get(path, "Authorization: x\r\n"), "401") << path;
  }
  EXPECT_EQ(get("/api/%6eotes", "Authorization: x\r\n"), "notes");
  EXPECT_EQ(body("POST /api/notes", "Content-Length: 1\r\n\r\nx"), "401");
  EXPECT_EQ(
      body("POST /api/notes", "Authorization: x\r\nContent-Length: 12\r\n\r\n{\"text\":\"a\"}"),
      "a");
  EXPECT_EQ(get("/notes"), "public");
  EXPECT_EQ(get("/api/none"), "404");
  EXPECT_EQ(body("DELETE /api/notes", "\r\n"), "405");
}

TEST_F(RouteGroupTest, MiddlewareOfInnerGroupsIsInside) {
  routes_.use(Mark("router "));
  RouteGroup outer = routes_.group("/a", Mark("a1 "), Mark("a2 "));
  RouteGroup inner = outer.group("/b/c", Mark("b "));
  outer.get("/x", [] { return text("x"); });
  inner.get("/x", [] { return text("x"); });
  inner.use(Mark("late "));
  inner.get("/y", [] { return text("y"); });
  outer.get("/y", [] { return text("y"); });
  routes_.get("/x", [] { return text("x"); });
  serve();
  EXPECT_EQ(get("/a/x"), "router a1 a2 x");
  EXPECT_EQ(get("/a/b/c/x"), "router a1 a2 b x");
  EXPECT_EQ(get("/a/b/c/y"), "router a1 a2 b late y");
  EXPECT_EQ(get("/a/y"), "router a1 a2 y");
  EXPECT_EQ(get("/x"), "router x");
}

TEST_F(RouteGroupTest, RootOfAGroupIsItsPrefix) {
  RouteGroup group = routes_.group("/group");
  group.get("/", [] { return text("root"); });
  group.get("/{rest...}", [](Wildcard rest) { return text(rest.raw()); });
  serve();
  EXPECT_EQ(get("/group"), "root");
  EXPECT_EQ(get("/group/a/b"), "a/b");
  EXPECT_EQ(get("/groupx"), "404");
}

TEST_F(RouteGroupTest, OptionsOfARouteApply) {
  RouteGroup group = routes_.group("/g", Mark("g "));
  group.post("/small", [](Note note) { return text(note.text); }, {.body_max = 12});
  serve();
  EXPECT_EQ(body("POST /g/small", "Content-Length: 12\r\n\r\n{\"text\":\"a\"}"), "g a");
  EXPECT_EQ(body("POST /g/small", "Content-Length: 13\r\n\r\n{\"text\":\"ab\"}"), "413");
}

TEST_F(RouteGroupTest, FallbackAnswersInPlaceOf404BelowItsPrefix) {
  routes_.fallback([] { return text("nothing at all"); });
  RouteGroup api = routes_.group("/api", Mark("api "));
  RouteGroup inner = api.group("/v1", Mark("v1 "));
  api.get("/notes", [] { return text("notes"); });
  inner.get("/notes", [] { return text("notes"); });
  api.fallback([](Request& request) -> Task<Response> { co_return text(request.path()); });
  serve();
  EXPECT_EQ(get("/none"), "nothing at all");
  EXPECT_EQ(get("/apix"), "nothing at all");
  EXPECT_EQ(get("/api"), "api /api");
  EXPECT_EQ(get("/%61pi/none/at/all"), "api /api/none/at/all");
  EXPECT_EQ(get("/api/v1/none"), "api /api/v1/none");
  EXPECT_EQ(get("/api/notes"), "api notes");
  EXPECT_EQ(body("DELETE /api/notes", "\r\n"), "405");
  EXPECT_EQ(body("DELETE /api/none", "\r\n"), "api /api/none");
  EXPECT_EQ(body("BREW /api/none", "\r\n"), "api /api/none");
  EXPECT_EQ(body("BREW /api/notes", "\r\n"), "405");
}

TEST_F(RouteGroupTest, ErrorsBelowAPrefixHaveItsForm) {
  routes_.render_errors([](const Problem& problem) {
    return text("root " + std::to_string(code_of(problem.status)));
  });
  RouteGroup page = routes_.group("/pages");
  page.render_errors([](const Problem& problem) {
    return html("<p>" + std::to_string(code_of(problem.status)) + "</p>");
  });
  page.get("/a", [] { return text("a"); });
  page.get("/fails", []() -> Response { throw std::runtime_error("no"); });
  serve();
  const auto error = [this](std::string_view request, std::string_view more = "\r\n") {
    const auto answers = sim::parse_http_responses(
        talk(connect(), std::string(request) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more)));
    return answers.empty() ? std::string() : answers[0].body;
  };
  EXPECT_EQ(error("GET /pages/none"), "<p>404</p>");
  EXPECT_EQ(error("GET /%70ages/none"), "<p>404</p>");
  EXPECT_EQ(error("DELETE /pages/a"), "<p>405</p>");
  EXPECT_EQ(error("GET /pages/fails"), "<p>500</p>");
  EXPECT_EQ(error("GET /none"), "root 404");
  EXPECT_EQ(error("GET /pages/a", "Bad Header: x\r\n\r\n"), "root 400");
}

/// A router as a part of a program makes it.
Router admin_routes() {
  Router routes;
  routes.use(Mark("admin "));
  routes.get("/", [] { return text("home"); });
  routes.get("/users/{id:[0-9]+}", [](unsigned id) { return text(std::to_string(id)); });
  RouteGroup files = routes.group("/files", Mark("files "));
  files.get("/{path...}", [](Wildcard path) { return text(path.raw()); });
  files.post("/{name}", [](std::string name, Note note) { return text(name + note.text); });
  routes.group("/own").fallback([] { return text("own fallback"); });
  return routes;
}

TEST_F(RouteGroupTest, MountedRouterKeepsItsMiddleware) {
  routes_.use(Mark("router "));
  routes_.get("/x", [] { return text("x"); });
  RouteGroup group = routes_.group("/group", Mark("group "));
  group.mount("/admin", admin_routes());
  serve();
  EXPECT_EQ(get("/x"), "router x");
  EXPECT_EQ(get("/group/admin"), "router group admin home");
  EXPECT_EQ(get("/group/admin/users/7"), "router group admin 7");
  EXPECT_EQ(get("/group/admin/files/a/b"), "router group admin files a/b");
  EXPECT_EQ(body("POST /group/admin/files/a", "Content-Length: 12\r\n\r\n{\"text\":\"b\"}"),
            "router group admin files ab");
  EXPECT_EQ(get("/group/admin/own/none"), "router group admin own fallback");
  EXPECT_EQ(get("/group/admin/users/x"), "404");
  EXPECT_EQ(get("/users/7"), "404");
}

TEST_F(RouteGroupTest, MountedRouterKeepsItsFormOfErrors) {
  Router pages;
  pages.get("/", [] { return problem(Status::conflict, "taken"); });
  pages.render_errors([](const Problem& problem) { return text("page " + problem.detail); });
  routes_.mount("/pages", std::move(pages));
  routes_.get("/x", [] { return Status::conflict; });
  serve();
  const std::string page = talk(connect(), "GET /pages HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(page.ends_with("\r\n\r\npage taken")) << page;
  const std::string other = talk(connect(), "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(other.ends_with("{\"title\":\"Conflict\",\"status\":409}")) << other;
}

TEST(RouteGroup, MountReportsConflictsAndTheErrorsOfTheMountedRouter) {
  Router routes;
  routes.get("/admin", [] { return Status::ok; });
  Router inner;
  inner.get("/", [] { return Status::ok; });
  inner.group("/a/");
  routes.mount("/admin", std::move(inner));
  routes.mount("/{x}", Router());
  EXPECT_EQ(routes.error_text(),
            "group /a/: the prefix of a group does not end with '/'\n"
            "GET /admin: conflicts with /admin\n"
            "group /{x}: the prefix of a group has no path parameters\n");
}

TEST_F(RouteGroupTest, PatternMadeAtRunTimeGetsThePrefix) {
  RouteGroup group = routes_.group("/g", Mark("g "));
  const auto handler = [](std::string name) { return text(name); };
  EXPECT_TRUE(group.get(Pattern::parse("/{name}").value(), handler));
  EXPECT_EQ(group.get(Pattern::parse("/a/b").value(), handler).error(),
            make_error_code(PatternError::wrong_param_count));
  serve();
  EXPECT_EQ(get("/g/a"), "g a");
}

TEST_F(RouteGroupTest, GroupWithoutAPrefixHasItsMiddleware) {
  RouteGroup guarded = routes_.group("", require_login);
  guarded.get("/users/{id}", [](unsigned id) { return text(std::to_string(id)); });
  guarded.group("/admin", Mark("admin ")).get("/", [] { return text("home"); });
  guarded.get("/", [] { return text("root"); });
  guarded.fallback([] { return text("nothing"); });
  Router inner;
  inner.post("/", [] { return text("mounted"); });
  routes_.mount("", std::move(inner));
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  routes_.get("/users", [] { return text("all"); });
  serve();
  EXPECT_EQ(get("/users"), "all");
  EXPECT_EQ(get("/users/7"), "401");
  EXPECT_EQ(get("/users/7", "Authorization: a\r\n"), "7");
  EXPECT_EQ(get("/admin"), "401");
  EXPECT_EQ(get("/admin", "Authorization: a\r\n"), "admin home");
  EXPECT_EQ(get("/"), "401");
  EXPECT_EQ(get("/", "Authorization: a\r\n"), "root");
  EXPECT_EQ(get("/none"), "401");
  EXPECT_EQ(get("/none", "Authorization: a\r\n"), "nothing");
  EXPECT_EQ(body("POST /", "Content-Length: 0\r\n\r\n"), "mounted");
}

TEST(RouteGroup, MountReportsAnIdHeaderThatWouldBeLost) {
  Router routes;
  Router inner;
  inner.trust_id_header("X-Request-Id");
  routes.mount("/a", std::move(inner));
  EXPECT_EQ(routes.error_text(),
            "mount /a: trust_id_header() is called on the router that is served\n");
}

TEST(RouteGroup, RejectsAPrefixThatCannotBeOne) {
  Router routes;
  routes.group("/a/{b}");
  routes.group("/a/");
  routes.group("a");
  EXPECT_FALSE(routes.check());
  EXPECT_EQ(routes.error_text(),
            "group /a/{b}: the prefix of a group has no path parameters\n"
            "group /a/: the prefix of a group does not end with '/'\n"
            "group a: " +
                make_error_code(PatternError::no_slash).message() + "\n");
}

TEST(RouteGroup, ReplacedRouteKeepsItsGuard) {
  RouteStore store;
  auto route = std::make_unique<Route>(
      Route{"GET", Pattern::parse("/a").value(), Handler::of([] { return Status::ok; }), {}});
  route->middleware.push_back(std::make_shared<const Middleware>(Middleware::of(require_login)));
  const RouteId id = store.add(route).value().id;
  static_cast<void>(store.replace(id, Handler::of([] { return Status::accepted; }), std::nullopt));
  EXPECT_EQ(store.find(id)->middleware.size(), 1U);
}

}  // namespace
}  // namespace weir::http::route_group_test
