#include "weir/http_testing/test_client.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/http/detail/http_answers.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {
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
  static_cast<void>(co_await event.wait());
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
  const auto answer = client_.post("/notes", Note{"milk"});
  EXPECT_EQ(answer.status(), 201);
  EXPECT_EQ(answer.status(), Status::created);
  EXPECT_EQ(answer.header("content-type"), json_type);
  EXPECT_EQ(answer.json<Note>()->text, "milk");
  EXPECT_EQ(client_.get("/notes").body(), R"([{"text":"milk"}])");
  EXPECT_EQ(store_.notes.size(), 1U) << "the handlers use the fake";
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
  Router router = notes();
  router.bind(store);
  TestClient client(router);
  EXPECT_EQ(client.post("/notes", Note{"milk"}).status(), 201);
  EXPECT_EQ(store.notes.size(), 1U);
  try {
    const TestClient without(notes());
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("POST /notes: the handler takes "), std::string::npos)
        << error.what();
  }
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
  client_.remove_header("Authorization");
  EXPECT_EQ(client_.get("/own/notes").status(), 401);
  EXPECT_THROW(client_.set_header("a b", ""), std::runtime_error);
}

TEST_F(TestClientTest, HeadHasNoBody) {
  const auto answer = client_.head("/notes");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.header("Content-Length"), "2");
  EXPECT_EQ(answer.body(), "");
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
  TestClient client(router, {.response_timeout = 1h});
  EXPECT_EQ(error_of([&] { client.get("/never"); }),
            "TestClient: GET /never HTTP/1.1: the handler waits for an event that cannot happen");
  EXPECT_EQ(error_of([&] { client.get("/for-ever"); }),
            "TestClient: GET /for-ever HTTP/1.1: no response within the response_timeout");
  EXPECT_EQ(client.get("/ok").status(), 200) << "the client can still be used";
}

TEST(TestClient, InvalidRoutesAreAnError) {
  Router router;
  router.group("/a/");
  EXPECT_EQ(error_of([&] { TestClient client(router); }),
            "TestClient: invalid routes: group /a/: the prefix of a group does not end with '/'\n");
}

/// Requests whose responses must be the same by a TestClient and by a network.
const std::vector<std::string> requests = {
    "GET /notes HTTP/1.1\r\nHost: test\r\n\r\n",
    "HEAD /notes HTTP/1.1\r\nHost: test\r\n\r\n",
    "GET /notes HTTP/1.0\r\n\r\n",
    "GET /none HTTP/1.1\r\nHost: test\r\n\r\n",
    "PUT /notes HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n",
    "OPTIONS /notes HTTP/1.1\r\nHost: test\r\n\r\n",
    "BREW /notes HTTP/1.1\r\nHost: test\r\n\r\n",
    "POST /notes HTTP/1.1\r\nHost: test\r\nContent-Length: 12\r\n\r\n{\"text\":\"a\"}",
    "POST /notes HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{]",
    "POST /notes HTTP/1.1\r\nHost: test\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n{}",
    "POST /small HTTP/1.1\r\nHost: test\r\nContent-Length: 12\r\n\r\n{\"text\":\"a\"}",
    "GET /own/notes HTTP/1.1\r\nHost: test\r\n\r\n",
    "GET /own/notes HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer 1\r\n\r\n",
    "GET /fails HTTP/1.1\r\nHost: test\r\n\r\n",
    "GET /late HTTP/1.1\r\nHost: test\r\n\r\n",
    "GET /lines HTTP/1.1\r\nHost: test\r\n\r\n",
    "GET /notes HTTP/1.1\r\nBad Header: x\r\n\r\n",
    "GET /notes HTTP/1.1\r\n\r\n",
};

/// Returns the bytes without the value of Date.
std::string without_date(std::string text) {
  const std::size_t date = text.find("Date: ");
  if (date != std::string::npos) text.erase(date, text.find("\r\n", date) - date);
  return text;
}

int serve_notes(loop::Platform& platform) {
  Store store;
  const Router router = routes(store);
  return Runtime(platform, {.cores = 1, .announce = false})
      .run_on_each_core(serve, std::cref(router), ServeOptions{Endpoint::any(80)});
}

TEST(TestClient, ResponsesAreThoseOfTheNetwork) {
  Store store;
  TestClient client(routes(store));
  std::vector<std::string> by_client;
  for (const std::string& each : requests)
    by_client.push_back(without_date(client.send_text(each).text()));

  sim::World world({.seed = 7});
  sim::Host& server = world.host("server");
  server.start_service(serve_notes);
  std::vector<std::string> by_network;
  world.host("client").start([&](loop::Platform& platform) {
    const auto ask = [&](Scope&) -> Task<> {
      for (const std::string& each : requests) {
        auto connection = co_await tcp::connect(server.address(80));
        if (!connection) continue;
        const auto sent = co_await connection->write(each);
        std::string received;
        const std::string_view method = std::string_view(each).substr(0, each.find(' '));
        for (;;) {
          const auto responses = sim::parse_http_responses(received, {method});
          if (sent && !responses.empty() && responses[0].complete) break;
          const auto piece = co_await connection->read();
          if (!piece) break;
          received += piece->text();
        }
        by_network.push_back(without_date(received));
      }
    };
    return Runtime(platform, {.cores = 1, .announce = false}).run_on_each_core(ask);
  });
  const sim::WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(by_client, by_network);
}

}  // namespace
}  // namespace weir::http
