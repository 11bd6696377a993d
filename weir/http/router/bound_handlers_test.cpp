// Tests of handlers that take services, and values that middleware has set, by reference.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/arguments.hpp"
#include "weir/http/matching/detail/service_refs.hpp"
#include "weir/http/matching/detail/unbound_route.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::bound_handlers_test {
namespace {

/// A service with public fields, which a client could send if it were taken for a body.
struct Store {
  std::vector<std::string> notes;
};
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::string now() const { return "real"; }
};
class FakeClock final : public Clock {
 public:
  std::string now() const override { return "fake"; }
};
struct Note {
  std::string text;
};
struct User {
  std::string name;
};

Task<Response> add_note(int user, Json<Note> note, Store& store) {
  store.notes.push_back(std::to_string(user) + note->text);
  co_return Status::created;
}

/// A user that the store knows.
struct KnownUser {
  std::string name;
  static std::expected<KnownUser, Response> from_request(const Request& request,
                                                         const Store& store) {
    const std::string name(request.header("Authorization").value_or(""));
    if (store.notes.empty() || store.notes.front() != name)
      return std::unexpected(problem(Status::unauthorized, "log in first"));
    return KnownUser{name};
  }
};

Task<Response> require_login(Request& request, Next next) {
  const auto name = request.header("Authorization");
  if (name && *name != "forgotten") request.set<User>({std::string(*name)});
  co_return co_await next(request);
}

class BoundHandlersTest : public HttpTest {
 protected:
  std::string ask(std::string_view line, std::string_view headers = {},
                  std::string_view body = {}) {
    const auto answers = sim::parse_http_responses(
        talk(connect(), std::string(line) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
                            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                            std::string(body)));
    if (answers.size() != 1) return "no answer";
    return std::to_string(answers[0].status) + (answers[0].status == 200 ? answers[0].body : "");
  }
  bool logged(std::string_view part) const {
    for (const std::string& each : platform_.logged()) {
      if (each.find(part) != std::string::npos) return true;
    }
    return false;
  }

  Store store_;
};

TEST_F(BoundHandlersTest, TakeServicesInAnyPosition) {
  const auto count = [](const Clock& clock, std::string_view name, Store& store) {
    return text(std::string(name) + clock.now() + std::to_string(store.notes.size()));
  };
  routes_.post("/users/{user}/notes", add_note);
  routes_.get("/count/{name}", count);
  const FakeClock clock;
  routes_.bind(store_, clock);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /users/7/notes", {}, R"({"text":"a"})"), "201");
  EXPECT_EQ(store_.notes, std::vector<std::string>{"7a"});
  EXPECT_EQ(ask("GET /count/x"), "200xfake1") << "a derived class is found by its base";
  EXPECT_EQ(ask("GET /users/7/notes"), "405");
}

TEST_F(BoundHandlersTest, NeverTakeAServiceFromTheClient) {
  routes_.post("/", [](const Store& store) { return text(std::to_string(store.notes.size())); });
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /", {}, R"({"notes":["sent"]})"), "2000");
}

TEST_F(BoundHandlersTest, KeepTheMiddlewareAndOptionsOfTheirGroup) {
  const auto refuse = [](Request& request, Next next) -> Task<Response> {
    if (!request.header("Authorization")) co_return Status::unauthorized;
    co_return co_await next(request);
  };
  routes_.group("/api", refuse).post("/{user}", add_note, {.body_max = 12});
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /api/7", {}, R"({"text":"a"})"), "401");
  EXPECT_EQ(ask("POST /api/7", "Authorization: a\r\n", R"({"text":"a"})"), "201");
  EXPECT_EQ(ask("POST /api/7", "Authorization: a\r\n", R"({"text":"ab"})"), "413");
}

TEST_F(BoundHandlersTest, MakeValuesWithServicesBeforeTheBodyIsRead) {
  routes_.post("/", [](KnownUser user, Json<Note> note, Store& store) {
    store.notes.push_back(note->text);
    return text(user.name);
  });
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /", "Authorization: Ann\r\n", "no JSON"), "401");
  store_.notes.emplace_back("Ann");
  EXPECT_EQ(ask("POST /", "Authorization: Ann\r\n", "no JSON"), "400");
  EXPECT_EQ(ask("POST /", "Authorization: Ann\r\n", R"({"text":"a"})"), "200Ann");
  EXPECT_EQ(store_.notes.back(), "a");
}

TEST_F(BoundHandlersTest, TakeValuesThatMiddlewareHasSet) {
  auto api = routes_.group<User>("/api", require_login);
  api.get("/me", [](const User& user) { return text(user.name); });
  api.post("/later", [](const User& user, Note note) -> Task<Response> {
    co_await yield();
    co_return text(user.name + note.text);
  });
  EXPECT_TRUE(routes_.check()) << "no service is missing";
  serve();
  EXPECT_EQ(ask("GET /api/me", "Authorization: Ann\r\n"), "200Ann");
  EXPECT_EQ(ask("POST /api/later", "Authorization: Bob\r\n", R"({"text":"!"})"), "200Bob!");
  EXPECT_EQ(ask("GET /api/me", "Authorization: forgotten\r\n"), "500")
      << "no value of an earlier request is left";
  EXPECT_TRUE(logged("no middleware of its route has called request.set<"));
}

TEST_F(BoundHandlersTest, NeverTakeAValueOfMiddlewareFromTheClient) {
  RouteGroup api = routes_.group<User>("/api", require_login);
  api.post("/users", [](const User&, Json<User> user) { return text(user->name); });
  EXPECT_TRUE(routes_.check()) << "Json says that the client sends it";
  api.post("/me", [](User user) { return text(user.name); });
  api.post("/stored", [](Store&, std::optional<User>) { return Status::ok; });
  api.fallback([](User user) { return text(user.name); });
  EXPECT_FALSE(api.post(Pattern::parse("/x").value(), [](User) { return Status::ok; }));
  Router inner;
  inner.post("/", [](User user) { return text(user.name); });
  EXPECT_TRUE(inner.check()) << "no middleware sets a User here";
  api.mount("/inner", std::move(inner));
  for (const char* const route :
       {"POST /api/me: ", "POST /api/stored: ", "fallback /api: ", "POST /api/inner: "}) {
    EXPECT_NE(routes_.error_text().find(route + std::string("the handler takes a ")),
              std::string::npos)
        << route << routes_.error_text();
  }
  EXPECT_NE(routes_.error_text().find("User by value, which is the body that a client sends"),
            std::string::npos);
}

TEST_F(BoundHandlersTest, ForgetValuesBetweenTheRequestsOfAConnection) {
  routes_.use<User>(require_login);
  routes_.get("/me", [](const User& user) { return text(user.name); });
  serve();
  MemoryPeer& peer = connect();
  const auto answers = sim::parse_http_responses(
      talk(peer,
           "GET /me HTTP/1.1\r\nHost: a\r\nAuthorization: Ann\r\n\r\n"
           "GET /me HTTP/1.1\r\nHost: a\r\nAuthorization: forgotten\r\n\r\n"));
  EXPECT_EQ(sim::statuses_of(answers), "200 500");
}

TEST_F(BoundHandlersTest, GiveTheNewestValueOfAType) {
  TextRequest request("GET /");
  const User& first = request.request().set<User>({"first"});
  request.request().set(7);
  request.request().set<User>({"second"});
  EXPECT_EQ(first.name, "first") << "earlier references stay valid";
  EXPECT_EQ(request.request().get<User>()->name, "second");
  EXPECT_EQ(*request.request().get<int>(), 7);
  EXPECT_EQ(request.request().get<Note>(), nullptr);
}

TEST_F(BoundHandlersTest, ARouterWithoutServicesIsNotServed) {
  routes_.post("/users/{user}/notes", add_note);
  const auto checked = routes_.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error(), Errc::bad_configuration);
  routes_.log_errors(platform_);
  EXPECT_TRUE(logged("POST /users/{user}/notes: the handler takes "));
  EXPECT_TRUE(logged("Store&, but no App or bind() gives services"));
  EXPECT_TRUE(logged("serve_http(app, router)"));
}

TEST_F(BoundHandlersTest, AMissingServiceIsNamed) {
  routes_.post("/users/{user}/notes", add_note);
  routes_.get("/time", [](const Clock& clock) { return text(clock.now()); });
  routes_.bind(store_);
  EXPECT_EQ(routes_.error_text().find("POST"), std::string::npos);
  EXPECT_NE(routes_.error_text().find("GET /time: the handler takes const "), std::string::npos);
  EXPECT_FALSE(routes_.check());
  const FakeClock clock;
  routes_.bind(clock);
  EXPECT_FALSE(routes_.check()) << "the error stays";
}

TEST_F(BoundHandlersTest, ALaterCallBindsTheRoutesThatWereAddedMeanwhile) {
  routes_.post("/users/{user}/notes", add_note);
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  routes_.get("/time", [](const Clock& clock) { return text(clock.now()); });
  EXPECT_EQ(routes_.check().error(), Errc::bad_configuration);
  const FakeClock clock;
  routes_.bind(clock);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("GET /time"), "200fake");
  EXPECT_EQ(ask("POST /users/7/notes", {}, R"({"text":"a"})"), "201");
}

TEST_F(BoundHandlersTest, TakePatternsThatWereMadeAtRunTime) {
  RouteGroup api = routes_.group<User>("/api", require_login);
  const auto show = [](const User& user, std::string_view name) {
    return text(user.name + std::string(name));
  };
  EXPECT_TRUE(api.get(Pattern::parse("/show/{name}").value(), show));
  EXPECT_TRUE(api.post(Pattern::parse("/{user}").value(), add_note));
  EXPECT_EQ(api.post(Pattern::parse("/a/b").value(), add_note).error(),
            make_error_code(PatternError::wrong_param_count));
  EXPECT_TRUE(routes_.post(Pattern::parse("/{user}").value(), add_note));
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("GET /api/show/x", "Authorization: Ann\r\n"), "200Annx");
  EXPECT_EQ(ask("POST /api/7", {}, R"({"text":"a"})"), "201");
  EXPECT_EQ(ask("POST /8", {}, R"({"text":"b"})"), "201");
  EXPECT_EQ(store_.notes, (std::vector<std::string>{"7a", "8b"}));
}

// ---- Mounted routers and fallbacks --------------------------------------------------------------

/// A part of a program, whose handlers take a service, or a value that middleware sets: its own, or
/// that of the router in which it is mounted.
Router note_routes() {
  Router routes;
  routes.post("/{user}", add_note, {.body_max = 12});
  routes.get("/me", [](const User& user, Store& store) {
    return text(user.name + std::to_string(store.notes.size()));
  });
  routes.group<User>("/own", require_login).get("/me", [](const User& user) {
    return text("own " + user.name);
  });
  routes.fallback([](const User& user) { return text("no notes for " + user.name); });
  return routes;
}

TEST_F(BoundHandlersTest, OfAMountedRouterTakeServicesAndValuesOfTheOuterOne) {
  routes_.group<User>("/api", require_login).mount("/notes", note_routes());
  EXPECT_EQ(routes_.check().error(), Errc::bad_configuration) << "the store is missing";
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /api/notes/7", {}, R"({"text":"a"})"), "201");
  EXPECT_EQ(ask("POST /api/notes/7", {}, R"({"text":"ab"})"), "413") << "the route's options";
  EXPECT_EQ(ask("GET /api/notes/me", "Authorization: Ann\r\n"), "200Ann1");
  EXPECT_EQ(ask("GET /api/notes/own/me", "Authorization: Bob\r\n"), "200own Bob");
  EXPECT_EQ(ask("GET /api/notes/else/where", "Authorization: Ann\r\n"), "200no notes for Ann");
  EXPECT_EQ(ask("GET /else"), "404");
}

TEST_F(BoundHandlersTest, OfAMountedRouterKeepTheServicesThatItHasBound) {
  Store other;
  Router inner = note_routes();
  ASSERT_TRUE(inner.group<User>("/x", require_login).get(Pattern::parse("/a").value(), [] {
    return Status::ok;
  }));
  Router own;
  own.post("/{user}", add_note);
  own.bind(other);
  ASSERT_TRUE(own.check()) << own.error_text();
  routes_.mount("/own", std::move(own));
  routes_.use<User>(require_login);
  routes_.mount("/notes", std::move(inner));
  routes_.bind(store_);
  ASSERT_TRUE(routes_.check()) << routes_.error_text();
  serve();
  EXPECT_EQ(ask("POST /own/1", {}, R"({"text":"a"})"), "201");
  EXPECT_EQ(ask("POST /notes/2", {}, R"({"text":"b"})"), "201");
  EXPECT_EQ(other.notes, std::vector<std::string>{"1a"});
  EXPECT_EQ(store_.notes, std::vector<std::string>{"2b"});
  EXPECT_EQ(ask("GET /notes/me", "Authorization: Ann\r\n"), "200Ann1");
}

TEST_F(BoundHandlersTest, OfAMountedRouterAreNamedByTheirWholePath) {
  routes_.mount("/notes", note_routes());
  routes_.bind(store_);
  EXPECT_FALSE(routes_.check());
  routes_.log_errors(platform_);
  EXPECT_TRUE(logged("GET /notes/me: the handler takes const "));
  EXPECT_TRUE(logged("fallback /notes: the handler takes const "));
  EXPECT_TRUE(logged("but a fallback takes no services"));
}

TEST_F(BoundHandlersTest, AnswerInPlaceOf404WithValuesAndTypedArguments) {
  RouteGroup api = routes_.group<User>("/api", require_login);
  api.get("/me", [](const User& user) { return text(user.name); });
  api.fallback([](const Store&) { return Status::conflict; });
  api.fallback([](const User& user, const Header<"X-Part">& part) {
    return text("nothing for " + user.name + std::string(*part));
  });
  ASSERT_TRUE(routes_.check()) << "the second fallback has replaced the first one";
  serve();
  EXPECT_EQ(ask("GET /api/none", "Authorization: Ann\r\nX-Part: !\r\n"), "200nothing for Ann!");
  EXPECT_EQ(ask("PUT /api/none", "Authorization: Ann\r\n"), "400");
  EXPECT_EQ(ask("GET /api/none", "X-Part: !\r\n"), "500");
  EXPECT_EQ(ask("GET /none"), "404");
}

TEST_F(BoundHandlersTest, AConstServiceIsNotGivenAsWritable) {
  routes_.post("/users/{user}/notes", add_note);
  routes_.bind(std::as_const(store_));
  EXPECT_FALSE(routes_.check());
}

TEST_F(BoundHandlersTest, NeedNoMemoryForTheirReferences) {
  const auto handler = UnboundHandler::of([](const User& user, Store& store, const Clock& clock) {
    return store.notes.empty() && user.name == "a" && clock.now() == "fake" ? Status::ok
                                                                            : Status::conflict;
  });
  FakeClock clock;
  const std::array<void*, 3> objects{nullptr, &store_, static_cast<Clock*>(&clock)};
  const Handler bound = handler.bind(objects);
  TextRequest request("GET /");
  request.request().set<User>({"a"});
  const PathParams params;
  const std::uint64_t before = TestHeap::news;
  const Response answered = bound.call(request.request(), params);
  const std::uint64_t allocations = TestHeap::news - before;
  EXPECT_EQ(answered.status(), Status::ok);
  EXPECT_EQ(allocations, 0U);
}

}  // namespace
}  // namespace weir::http::bound_handlers_test
