// Tests of groups of live routes, and of groups of the routes of an owner.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "weir/http/router/detail/service_route_set.hpp"
#include "weir/http/test/live_routes_fixture.hpp"

namespace weir::http::live_groups_test {
namespace {

struct User {
  std::string name;
};
struct Store {};

Task<Response> require_login(Request& request, Next next) {
  const auto name = request.header("Name");
  if (!name) co_return Status::unauthorized;
  request.set<User>({std::string(*name)});
  co_return co_await next(request);
}
Task<Response> refuse_writes(Request& request, Next next) {
  if (request.method() != Method::get) co_return Status::forbidden;
  co_return co_await next(request);
}

Response greet(const User& user, std::string_view word) {
  return text(std::string(word) + " " + user.name);
}

class LiveGroupsTest : public LiveRoutesTest {
 protected:
  std::string ask_as(unsigned core, std::string_view line, std::string_view name) {
    return said(send(core, std::string(line) + " HTTP/1.1\r\nHost: a\r\nName: " +
                               std::string(name) + "\r\nContent-Length: 0\r\n\r\n"));
  }
};

TEST_F(LiveGroupsTest, LiveRoutesHaveThePrefixAndTheMiddlewareOfTheirGroup) {
  start_all();
  auto api = live_.group<User>("/api", require_login);
  auto notes = api.group("/notes", refuse_writes);
  ASSERT_TRUE(run_on(1, api.add("GREET", "/{word}", greet)));
  const auto added = run_on(0, notes.get(Pattern::parse("/{word}").value(), greet));
  ASSERT_TRUE(added);
  ASSERT_TRUE(run_on(2, notes.post("/", [] { return text("written"); })));
  EXPECT_EQ(ask_all("/api/notes/hi"), "401");
  EXPECT_EQ(ask_all("/%61pi/%6eotes/hi"), "401") << "a guard covers all spellings of a path";
  EXPECT_EQ(ask_as(2, "GET /api/notes/hi", "Ann"), "200 hi Ann");
  EXPECT_EQ(ask_as(1, "GREET /api/hello", "Bob"), "200 hello Bob");
  EXPECT_EQ(ask_as(1, "POST /api/notes", "Ann"), "403");
  EXPECT_EQ(ask_all("/notes/hi"), "404");
  ASSERT_TRUE(run_on(0, live_.group<User>("", require_login).get("/", [](const User& user) {
    return text(user.name);
  })));
  EXPECT_EQ(ask_as(1, "GET /", "Ann"), "200 Ann");
  ASSERT_TRUE(run_on(1, live_.replace(*added, [](std::string_view) { return text("new"); })));
  EXPECT_EQ(ask_all("/api/notes/hi"), "401") << "a new handler keeps the middleware";
  EXPECT_EQ(ask_as(0, "GET /api/notes/hi", "Ann"), "200 new");
  ASSERT_TRUE(run_on(1, live_.remove(*added)));
  EXPECT_EQ(ask_as(0, "GET /api/notes/hi", "Ann"), "404");
}

TEST_F(LiveGroupsTest, LiveRoutesThatDoNotFitTheirGroupAreRefused) {
  start_all();
  const auto takes_store = [](const Store&) { return Status::ok; };
  auto api = live_.group<User>("/api", require_login);
  EXPECT_EQ(run_on(0, api.get("/store", takes_store)).error(), Errc::bad_configuration);
  const auto takes_user = [](User user) { return text(user.name); };
  EXPECT_EQ(run_on(0, api.post("/user", takes_user)).error(), Errc::bad_configuration)
      << "a client could send the user";
  EXPECT_EQ(run_on(0, live_.group("/{x}").get("/{word}", greet)).error(),
            make_error_code(PatternError::wrong_param_count));
  EXPECT_EQ(run_on(0, api.get(Pattern::parse("/a").value(), greet)).error(),
            make_error_code(PatternError::wrong_param_count));
  EXPECT_FALSE(run_on(0, live_.group("api").get("/", [] { return Status::ok; })));
  EXPECT_EQ(ask_all("/api/store"), "404");
}

class OwnerGroupsTest : public LiveGroupsTest {
 protected:
  OwnerGroupsTest() {
    registry_.open(loop(0), loops());
    owner_.emplace(registry_, "Owner", loop(1), ServiceRouteSet::Reach::all_cores);
  }
  void TearDown() override {
    EXPECT_TRUE(run_on(1, withdrawn()));
    registry_.close();
    LiveGroupsTest::TearDown();
    owner_.reset();
  }
  Task<bool> withdrawn() {
    co_await owner_->withdraw({});
    co_return true;
  }

  ServiceRouteRegistry registry_{routes_};
  std::optional<ServiceRouteSet> owner_;
};

TEST_F(OwnerGroupsTest, RoutesOfAnOwnerHaveThePrefixAndTheMiddlewareOfTheirGroup) {
  start_all();
  auto api = owner_->group<User>("/api", require_login);
  api.get("/{word}", greet);
  api.group("/notes", refuse_writes).post("/", [] { return text("written"); });
  ASSERT_TRUE(run_on(1, owner_->open(nullptr))) << owner_->error_text();
  EXPECT_EQ(ask_all("/api/hi"), "401");
  EXPECT_EQ(ask_as(0, "GET /api/hi", "Ann"), "200 hi Ann");
  EXPECT_EQ(ask_as(2, "GET /api/hi", "Bob"), "200 hi Bob");
  EXPECT_EQ(ask_as(2, "POST /api/notes", "Bob"), "403");
}

TEST_F(OwnerGroupsTest, RoutesOfAnOwnerDoNotTakeServices) {
  auto api = owner_->group<User>("/api", require_login);
  api.get("/store", [](const User&, const Store&) { return Status::ok; });
  EXPECT_EQ(run_on(1, owner_->open(nullptr)).error(), Errc::bad_configuration);
  EXPECT_NE(owner_->error_text().find("GET /api/store: the handler takes const "),
            std::string::npos);
  EXPECT_NE(owner_->error_text().find("Store&, which no middleware of its group sets"),
            std::string::npos)
      << owner_->error_text();
  EXPECT_EQ(owner_->error_text().find("User"), std::string::npos);
}

TEST_F(OwnerGroupsTest, RoutesOfAnOwnerDoNotTakeAValueOfMiddlewareAsTheBody) {
  owner_->group<User>("/api", require_login).post("/", [](User user) { return text(user.name); });
  EXPECT_EQ(run_on(1, owner_->open(nullptr)).error(), Errc::bad_configuration);
  EXPECT_NE(owner_->error_text().find("POST /api: the handler takes a "), std::string::npos);
}

}  // namespace
}  // namespace weir::http::live_groups_test
