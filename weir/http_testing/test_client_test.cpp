#include "weir/http_testing/test_client.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http.hpp"
#include "weir/net/files.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http::test_client_test {
namespace {

struct Note {
  std::string text;
};

/// A fake of a service.
struct Store {
  std::vector<Note> notes;
};

Task<Response> require_login(Request& request, Next next) {
  if (request.header("Authorization") != "Bearer 1") co_return problem(Status::unauthorized);
  co_return co_await next(request);
}

Task<Response> never(ManualResetEvent& event) {
  std::ignore = co_await event.wait();
  co_return Status::ok;
}

Task<Response> slow() {
  if (auto slept = co_await sleep(10s); !slept) co_return Status::service_unavailable;
  co_return text("slept");
}

Task<Response> for_ever() {
  for (;;) {
    if (auto slept = co_await sleep(1s); !slept) co_return Status::service_unavailable;
  }
}

Task<Result<>> write_lines(BodySink& sink) {
  for (int line = 0; line < 3; ++line) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    if (auto sent = co_await sink.write("line\n"); !sent) co_return sent;
  }
  co_return {};
}

/// Answers with the method, the media type and the body.
Task<Response> echo(Request& request) {
  auto body = co_await request.body();
  if (!body) co_return Status::bad_request;
  co_return text(std::string(request.method_text()) + " " +
                 std::string(request.header("Content-Type").value_or("")) + " " +
                 std::string(*body));
}

Task<Response> read_hosts() {
  auto hosts = co_await files::read_file("/etc/hosts");
  if (!hosts) co_return Status::not_found;
  co_return text(*hosts);
}

Router routes(Store& store) {
  Router router;
  router.get("/notes", [&store] { return json(store.notes); });
  router.post("/notes", [&store](Json<Note> note) {
    store.notes.push_back(*note);
    return json(*note, Status::created);
  });
  router.post("/small", [](Json<Note> note) { return json(*note); }, {.body_max = 8});
  router.get("/slow", [] { return slow(); });
  router.get("/late", [] { return slow(); }, {.timeout = 1s});
  router.get("/for-ever", [] { return for_ever(); });
  router.get("/lines", [] { return stream("text/plain", write_lines); });
  router.put("/echo", echo);
  router.patch("/echo", echo);
  router.post("/echo", echo);
  router.del("/echo", echo);
  router.get("/moved", [] { return redirect("/notes", Status::see_other); });
  router.get("/hosts", [] { return read_hosts(); });
  router.get("/fails", []() -> Response { throw std::runtime_error("broken"); });
  RouteGroup own = router.group("/own", require_login);
  own.get("/notes", [] { return text("mine"); });
  return router;
}

class TestClientTest : public testing::Test {
 protected:
  Store store_;
  TestClient client_{routes(store_)};
};

TEST_F(TestClientTest, SendsAndReadsJson) {
  const auto response = client_.post("/notes", Note{"milk"});
  EXPECT_EQ(response.status(), 201);
  EXPECT_EQ(response.status(), Status::created);
  EXPECT_EQ(response.header("content-type"), json_type);
  EXPECT_EQ(response.headers().count(), 3U) << response.headers().lines();
  EXPECT_EQ(response.json<Note>()->text, "milk");
  EXPECT_EQ(client_.get("/notes").body(), R"([{"text":"milk"}])");
  EXPECT_EQ(store_.notes.size(), 1U) << "the handlers use the fake";
}

TEST_F(TestClientTest, SendsEveryMethodAndMediaType) {
  EXPECT_EQ(client_.put("/echo", Note{"a"}).body(), R"(PUT application/json {"text":"a"})");
  EXPECT_EQ(client_.patch("/echo", "text/plain", "b").body(), "PATCH text/plain b");
  EXPECT_EQ(client_.post("/echo", "text/plain", "c").body(), "POST text/plain c");
  EXPECT_EQ(client_.put("/echo", "text/plain", "d").body(), "PUT text/plain d");
  EXPECT_EQ(client_.patch("/echo", Note{"e"}).body(), R"(PATCH application/json {"text":"e"})");
  EXPECT_EQ(client_.del("/echo").body(), "DELETE  ");
  EXPECT_EQ(client_.options("/notes").header("Allow"), "GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(client_.get("http://server/notes?all=1").status(), 200);
}

TEST_F(TestClientTest, WaitTakesNoRealTime) {
  EXPECT_EQ(client_.get("/slow").body(), "slept");
  EXPECT_EQ(client_.get("/late").status(), 503);
  EXPECT_EQ(client_.get("/lines").body(), "line\nline\nline\n");
}

TEST_F(TestClientTest, HeaderIsSentWithAllLaterRequests) {
  EXPECT_EQ(client_.get("/own/notes").status(), 401);
  client_.set_header("Authorization", "Bearer 1");
  EXPECT_EQ(client_.get("/own/notes").body(), "mine");
  EXPECT_EQ(client_.get("/%6fwn/notes").body(), "mine");
  ClientRequest request = client_.request(Method::get, "/own/notes");
  request.set_header("Authorization", "Bearer 2");
  EXPECT_EQ(client_.send(std::move(request)).status(), 401) << "a request keeps its own header";
  client_.remove_header("Authorization");
  EXPECT_EQ(client_.get("/own/notes").status(), 401);
  EXPECT_THROW(client_.set_header("a b", ""), std::runtime_error);
}

TEST_F(TestClientTest, HeadHasNoBody) {
  const auto response = client_.head("/notes");
  EXPECT_EQ(response.status(), 200);
  EXPECT_EQ(response.header("Content-Length"), "2");
  EXPECT_EQ(response.body(), "");
}

TEST_F(TestClientTest, RedirectIsNotFollowed) {
  const auto response = client_.get("/moved");
  EXPECT_EQ(response.status(), 303);
  EXPECT_EQ(response.header("Location"), "/notes");
}

TEST_F(TestClientTest, BodyAboveTheLimitIsRejected) {
  EXPECT_EQ(client_.post("/small", Note{""}).status(), 413);
}

TEST_F(TestClientTest, HandlerReadsFilesOfItsHost) {
  EXPECT_EQ(client_.get("/hosts").body().substr(0, 20), "127.0.0.1 localhost\n");
}

TEST_F(TestClientTest, FailureOfAHandlerIsLogged) {
  EXPECT_EQ(client_.get("/fails").status(), 500);
  ASSERT_EQ(client_.logged().size(), 1U);
  EXPECT_EQ(client_.logged()[0], "weir: GET /fails: handler failed: exception: broken");
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(TestClient, HandlerThatNeverCompletesIsAnError) {
  ManualResetEvent event{false};
  Router router;
  router.get("/never", [&event] { return never(event); });
  router.get("/for-ever", [] { return for_ever(); });
  router.get("/ok", [] { return Status::ok; });
  TestClient client(router, {.response_timeout = 10min});
  EXPECT_EQ(error_of([&] { client.get("/never?a=1"); }),
            "TestClient: GET /never?a=1: the handler waits for an event that cannot happen, "
            "or repeats itself without a wait");
  EXPECT_EQ(error_of([&] { client.get("/for-ever"); }),
            "TestClient: GET /for-ever: no response within the response_timeout");
  EXPECT_EQ(client.get("/ok").status(), 200) << "the client can still be used";
}

TEST(TestClient, InvalidRoutesAndRequestsAreErrors) {
  Router router;
  router.group("/a/");
  EXPECT_EQ(error_of([&] { TestClient client(router); }),
            "TestClient: invalid routes: group /a/: the prefix of a group does not end with '/'\n");
  TestClient client(Router{});
  EXPECT_EQ(error_of([&] { client.get("/a b"); }).substr(0, 24), "TestClient: the URL /a b");
  EXPECT_EQ(error_of([&] { client.send(ClientRequest(Method::get, "a")); }).substr(0, 28),
            "TestClient: invalid request:");
  EXPECT_EQ(error_of([&] { client.get("http://elsewhere/"); }),
            "TestClient: GET /: " + make_error_code(ClientError::connect_failed).message());
}

TEST(TestClient, GivesServicesToHandlers) {
  const auto notes = [] {
    Router router;
    router.post("/notes", [](Json<Note> note, Store& store) {
      store.notes.push_back(*note);
      return Status::created;
    });
    return router;
  };
  Store store;
  TestClient client(notes(), store);
  EXPECT_EQ(client.post("/notes", Note{"milk"}).status(), 201);
  EXPECT_EQ(store.notes.size(), 1U);
  for (const std::string& error : {error_of([&] { const TestClient without(notes()); }),
                                   error_of([&] { const TestClient without(notes(), client); })})
    EXPECT_NE(error.find("POST /notes: the handler takes "), std::string::npos) << error;
}

TEST(TestClient, TimePassesWithoutARequest) {
  int rings = 0;
  Router router;
  router.get("/ring", [&rings](Request&) -> Task<Response> {
    if (auto slept = co_await sleep(1min); !slept) co_return Status::service_unavailable;
    ++rings;
    co_return Status::ok;
  });
  TestClient client(std::move(router), {.response_timeout = 1s});
  EXPECT_THROW(client.get("/ring"), std::runtime_error);
  EXPECT_EQ(rings, 0);
  client.advance(58s);
  EXPECT_EQ(rings, 0);
  client.advance(2s);
  EXPECT_EQ(rings, 1) << "the handler of a client that has left goes on";
}

int serve_notes(loop::Platform& platform) {
  Store store;
  const Router router = routes(store);
  return run(router, platform);
}

/// Returns the responses to some requests, without the value of Date.
std::vector<std::string> responses_of(TestClient& client) {
  std::vector<std::string> texts;
  const auto add = [&](const TestResponse& response) {
    Headers headers = response.headers();
    if (headers.remove("Date") != 1) texts.emplace_back("no Date");
    texts.push_back(std::to_string(code_of(response.status())) + "\n" +
                    std::string(headers.lines()) + "\n" + response.body());
  };
  for (const char* const path :
       {"/notes", "/none", "/late", "/lines", "/slow", "/fails", "/own/notes", "/moved"})
    add(client.get(path));
  add(client.head("/notes"));
  add(client.put("/notes", 1));
  add(client.options("/notes"));
  add(client.post("/notes", Note{"a"}));
  add(client.post("/notes", 1));
  add(client.post("/notes", "a/b", "{}"));
  add(client.post("/small", Note{"a"}));
  return texts;
}

TEST(TestClient, AsksProgramsOfAWorld) {
  Store store;
  TestClient alone(routes(store));
  sim::World world({.seed = 7});
  sim::Host& server = world.host("server", {.cores = 2});
  server.start_service(serve_notes);
  TestClient client(world, "http://server");
  EXPECT_EQ(responses_of(client), responses_of(alone));
  EXPECT_EQ(server.logged().size(), 1U) << "of /fails";
  EXPECT_FALSE(world.done());
  const sim::WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(world.done());
}

TEST(TestClient, SeesTheFaultsOfAWorld) {
  sim::World world({.seed = 7});
  sim::Host& server = world.host("server");
  server.start_service(serve_notes);
  TestClient client(world, "http://server", {.response_timeout = 10s});
  EXPECT_EQ(client.get("/notes").status(), 200);
  server.kill();
  EXPECT_NE(error_of([&] { client.get("/notes"); }), "");
  server.start_service(serve_notes);
  client.advance(1s);
  EXPECT_EQ(client.get("/notes").status(), 200) << "after a restart";
}

}  // namespace
}  // namespace weir::http::test_client_test
