// Tests of the client against a server of its loop, in virtual time.
#include "weir/http/client/client.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/http_fixture.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/detail/run.hpp"

namespace weir::http {
namespace {

struct Note {
  int id = 0;
  std::string text;
};

class ClientTest : public HttpTest {
 protected:
  template <class T>
  T run(Task<T> task) {
    return weir::run(*loop_, std::move(task));
  }
};

TEST_F(ClientTest, GetReturnsTheStatusTheHeadersAndTheBody) {
  routes_.get("/notes/{id}", [](int id) {
    Response response = text("note " + std::to_string(id));
    response.add_header("X-Kind", "note");
    return response;
  });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    auto response = co_await client.get("http://127.0.0.1/notes/7?full");
    EXPECT_TRUE(response) << response.error().message();
    if (!response) co_return;
    EXPECT_EQ(response->status(), Status::ok);
    EXPECT_EQ(response->header("x-kind"), "note");
    EXPECT_EQ(response->url().text(), "http://127.0.0.1/notes/7?full");
    const auto body = co_await response->body();
    EXPECT_EQ(body ? *body : body.error().message(), "note 7");
    const auto end = co_await response->read();
    EXPECT_TRUE(end && end->empty());
    EXPECT_EQ(client.connection_count(), 1U);
    EXPECT_EQ(client.idle_count(), 1U);
    const auto missing = co_await client.get("http://127.0.0.1/none");
    EXPECT_EQ(missing ? missing->status() : Status::ok, Status::not_found);
  };
  run(talk());
}

TEST_F(ClientTest, PostSendsAndReadsJson) {
  int calls = 0;
  routes_.post("/notes", [&calls](Json<Note> note) {
    ++calls;
    return Note{note->id + 1, note->text + "!"};
  });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    const Note note{6, "text"};
    auto response = co_await client.post_json("http://127.0.0.1/notes", note);
    EXPECT_TRUE(response) << response.error().message();
    if (!response) co_return;
    EXPECT_EQ(response->status(), Status::ok);
    const auto answer = co_await response->json<Note>();
    EXPECT_EQ(answer ? answer->id : 0, 7);
    EXPECT_EQ(answer ? answer->text : "", "text!");
  };
  run(talk());
  EXPECT_EQ(calls, 1);
}

TEST_F(ClientTest, AServerThatDoesNotAnswerIsAbandonedAtTheHeadTimeout) {
  const auto talk = [this]() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    ClientOptions options;
    options.limits.head_timeout = 2s;
    Client client(std::move(options));
    const Instant before = platform_.now();
    auto response = co_await client.get("http://127.0.0.1:81/");
    EXPECT_EQ(response ? std::error_code() : response.error(), ClientError::head_timed_out);
    EXPECT_EQ(platform_.now() - before, Duration(2s));
    EXPECT_EQ(client.connection_count(), 0U);
    EXPECT_EQ(to_status(make_error_code(ClientError::head_timed_out)), Status::gateway_timeout);
  };
  run(talk());
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

}  // namespace
}  // namespace weir::http
