// Tests of handlers that take the services of an app.
#include "weir/app/detail/handler_service.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::handler_service_test {
namespace {

using Lines = std::vector<std::string>;

struct Store : JournaledService {
  Store(const Journal& journal, std::string of)
      : JournaledService(journal, "store " + of), name(std::move(of)) {}
  std::string name;
  int notes = 0;
};
struct Config {
  std::string greeting;
};
struct Note {
  std::string text;
};
struct Visitor {
  std::string name;
  static Result<Visitor> from_request(const http::Request& request, const Store& store) {
    const auto name = request.header("Name");
    if (!name) return fail(Errc::not_found);
    return Visitor{store.name + std::string(*name)};
  }
};

Task<http::Response> add_note(int user, http::Json<Note> note, Store& store) {
  ++store.notes;
  std::ignore = co_await sleep(3s);
  co_return http::text(store.name + std::to_string(user) + note->text);
}

class AppHandlers : public AppTest {
 protected:
  void TearDown() override {
    peers_.clear();
    if (app_.running()) stop();
    AppTest::TearDown();
  }
  void serve() { serve_http(app_, router_, {.endpoint = os::Address::loopback(80)}); }
  ServiceId store(const std::string& name) {
    return app_.per_core([name](const Journal& journal) { return Store(journal, name); });
  }
  MemoryPeer& send(std::string_view line, std::string_view headers = {},
                   std::string_view body = {}) {
    peers_.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80)));
    peers_.back()->send(std::string(line) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
                        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                        std::string(body));
    return *peers_.back();
  }
  static std::string responses_to(MemoryPeer& peer) {
    std::string all;
    for (const sim::HttpResponse& each : sim::parse_http_responses(peer.take())) {
      all += std::to_string(each.status) + (each.status == 200 ? " " + each.body : "");
    }
    return all;
  }
  std::string ask(std::string_view line, std::string_view headers = {},
                  std::string_view body = {}) {
    MemoryPeer& peer = send(line, headers, body);
    platform_.advance(*loop_, 3s);  // add_note() sleeps
    return responses_to(peer);
  }
  std::string all_errors() const {
    std::string all;
    for (const std::string& each : app_.errors()) all += each + "\n";
    return all;
  }

  http::Router router_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
};

TEST_F(AppHandlers, TakeServicesByReference) {
  router_.post("/users/{user}/notes", add_note);
  router_.get("/greet", [](const Config& config, Visitor visitor) {
    return http::text(config.greeting + visitor.name);
  });
  serve();
  app_.shared([] { return Config{"hi "}; });
  store("a");
  ASSERT_TRUE(start()) << all_errors();
  EXPECT_EQ(ask("POST /users/7/notes", {}, R"({"text":"!"})"), "200 a7!");
  EXPECT_EQ(ask("GET /greet", "Name: Ann\r\n"), "200 hi aAnn");
  EXPECT_EQ(ask("GET /greet"), "404") << "the error of from_request() is the answer";
}

TEST_F(AppHandlers, MoveToTheNewServiceWhenItIsReplaced) {
  router_.post("/{user}", add_note);
  serve();
  const ServiceId old = store("a");
  ASSERT_TRUE(start()) << all_errors();
  MemoryPeer& early = send("POST /1", {}, R"({"text":"!"})");
  platform_.advance(*loop_, 1s);
  const ServiceId fresh = store("b");
  ASSERT_TRUE(run(app_.replace(old, fresh)));
  EXPECT_EQ(responses_to(early), "200 a1!") << "the old store finishes its request";
  EXPECT_TRUE(has_line("store a gone"));
  EXPECT_EQ(ask("POST /2", {}, R"({"text":"!"})"), "200 b2!");
}

TEST_F(AppHandlers, StopWithTheirService) {
  router_.post("/{user}", add_note);
  router_.get("/other", [] { return http::text("other"); });
  serve();
  const ServiceId id = store("a");
  ASSERT_TRUE(start()) << all_errors();
  MemoryPeer& early = send("POST /1", {}, R"({"text":"!"})");
  platform_.advance(*loop_, 1s);
  ASSERT_TRUE(run(app_.stop(id)));
  EXPECT_EQ(responses_to(early), "200 a1!") << "the store waits for its request";
  EXPECT_EQ(ask("POST /1", {}, R"({"text":"!"})"), "404");
  EXPECT_EQ(ask("GET /other"), "200 other");
  ASSERT_TRUE(run(app_.start(id)));
  EXPECT_EQ(ask("POST /2", {}, R"({"text":"!"})"), "200 a2!");
}

TEST_F(AppHandlers, KeepTheMiddlewareOfTheirGroup) {
  const auto refuse = [](http::Request& request, http::Next next) -> Task<http::Response> {
    if (!request.header("Name")) co_return http::Status::unauthorized;
    co_return co_await next(request);
  };
  router_.group("/api", refuse).get("/me", [](Visitor visitor) {
    return http::text(visitor.name);
  });
  serve();
  store("a");
  ASSERT_TRUE(start()) << all_errors();
  EXPECT_EQ(ask("GET /api/me"), "401");
  EXPECT_EQ(ask("GET /api/%6de", "Name: Ann\r\n"), "200 aAnn");
}

http::Router note_routes() {
  http::Router routes;
  routes.post("/{user}", add_note);
  routes.get("/me", [](const Visitor& visitor, const Store& store) {
    return http::text(visitor.name + std::to_string(store.notes));
  });
  return routes;
}

TEST_F(AppHandlers, OfAMountedRouterTakeServicesByReference) {
  router_.group("/api").mount("/notes", note_routes());
  serve();
  store("a");
  ASSERT_TRUE(start()) << all_errors();
  EXPECT_EQ(ask("POST /api/notes/7", {}, R"({"text":"!"})"), "200 a7!");
  EXPECT_EQ(ask("GET /api/notes/me", "Name: Ann\r\n"), "200 aAnn1");
}

TEST_F(AppHandlers, AMissingServiceSaysWhoWantsItAndWhatToWrite) {
  router_.post("/users/{user}/notes", add_note);
  router_.get("/greet", [](const Config& config) { return http::text(config.greeting); });
  serve();
  ASSERT_EQ(start().error(), Errc::bad_configuration);
  const std::string errors = all_errors();
  EXPECT_NE(errors.find("POST /users/{user}/notes requires "), std::string::npos) << errors;
  EXPECT_NE(errors.find("Store, but no service provides it (register one: app.per_core<"),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find("GET /greet requires "), std::string::npos) << errors;
  EXPECT_NE(errors.find("or app.shared<"), std::string::npos) << errors;
  EXPECT_NE(errors.find("take a body by value"), std::string::npos) << errors;
  store("a");
  app_.shared([] { return Config{"hi"}; });
  ASSERT_TRUE(start()) << all_errors();
  EXPECT_EQ(ask("GET /greet"), "200 hi") << "a later start finds them";
}

TEST_F(AppHandlers, ASharedServiceIsNotWritable) {
  router_.post("/{user}", add_note);
  serve();
  app_.shared([](const Journal& journal) { return Store(journal, "a"); });
  ASSERT_FALSE(start());
  EXPECT_NE(all_errors().find("POST /{user} requires "), std::string::npos) << all_errors();
  EXPECT_NE(all_errors().find("as writable, but that service is shared (take it as const)"),
            std::string::npos);
}

TEST_F(AppHandlers, ARouteThatExistsTwiceEndsTheStart) {
  router_.post("/{user}", add_note);
  router_.post("/{number}", [](int) { return http::Status::ok; });
  serve();
  store("a");
  ASSERT_EQ(start().error(), Errc::conflict);
  EXPECT_NE(all_errors().find("POST /{user}: route already exists"), std::string::npos)
      << all_errors();
}

TEST_F(AppHandlers, OfARouterThatIsNotMountedAreRefused) {
  http::Router other;
  other.post("/{user}", add_note);
  serve();
  serve_http(app_, other, {.endpoint = os::Address::loopback(81)});
  store("a");
  EXPECT_EQ(start().error(), Errc::bad_configuration);
}

}  // namespace
}  // namespace weir::handler_service_test
