// Tests of the client against Weir's server and against servers that follow a script, on one loop
// in virtual time.
#include "weir/http/client/client.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/matching/arguments.hpp"
#include "weir/http/test/client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::client_test {
namespace {

struct Note {
  int id = 0;
  std::string text;
};

constexpr std::string_view ok_head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

/// The result of one request: its status and its body, or its first error.
struct Outcome {
  int status = 0;
  std::string body;
  std::error_code error;
  std::error_code refusal;  // of error_for_status()
};

Task<Outcome> send_and_read(Client& client, ClientRequest request) {
  Outcome outcome;
  auto response = co_await client.send(std::move(request));
  if (!response) {
    outcome.error = response.error();
    co_return outcome;
  }
  outcome.status = code_of(response->status());
  if (const auto success = response->error_for_status(); !success)
    outcome.refusal = success.error();
  auto body = co_await response->body();
  if (body) outcome.body = *body;
  if (!body) outcome.error = body.error();
  co_return outcome;
}

/// A server for one connection. It reads a head and what has arrived with it, sends the pieces of
/// its script with a pause between them, and closes.
struct Script {
  std::vector<std::string> pieces;
  Duration pause = Duration::zero();
  std::string received = {};
};

Task<Result<>> serve_script(tcp::Listener& listener, Script& script) {
  auto stream = co_await listener.accept();
  if (!stream) co_return fail(stream.error());
  while (script.received.find("\r\n\r\n") == std::string::npos) {
    const auto piece = co_await stream->read();
    if (!piece) co_return {};
    script.received += piece->text();
  }
  for (const std::string& each : script.pieces) {
    if (script.pause > Duration::zero()) static_cast<void>(co_await sleep(script.pause));
    const Result<> written = co_await stream->write(each);
    if (!written) co_return {};
  }
  co_return {};
}

class ClientTest : public HttpTest {
 protected:
  template <class T>
  T run(Task<T> task) {
    return weir::run(*loop_, std::move(task));
  }
  static ClientRequest request(Method method, std::string_view target, int port = 80) {
    const std::string url = "http://127.0.0.1:" + std::to_string(port) + std::string(target);
    return {method, *Url::parse(url)};
  }
  /// Returns the outcome of a GET that the script answers.
  Outcome ask(Script& script, const ClientLimits& limits = {}, Method method = Method::get) {
    Outcome outcome;
    const auto talk = [&]() -> Task<> {
      auto listener = co_await tcp::listen(Endpoint::loopback(81));
      EXPECT_TRUE(listener);
      ClientOptions options;
      options.limits = limits;
      Client client(std::move(options));
      auto serving = serve_script(*listener, script);
      auto asking = send_and_read(client, request(method, "/", 81));
      auto both = co_await all(std::move(serving), std::move(asking));
      EXPECT_TRUE(both);
      if (both) outcome = std::get<1>(*both);
    };
    run(talk());
    EXPECT_EQ(platform_.open_descriptors(), 0U);
    return outcome;
  }
  void run_beside(Script& script, std::function<Task<>(Client&)> body);
  Outcome answer(std::vector<std::string> pieces) {
    Script script{std::move(pieces)};
    return ask(script);
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
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->status(), Status::ok);
    EXPECT_EQ(response->header("x-kind"), "note");
    EXPECT_EQ(response->header("x-none"), std::nullopt);
    EXPECT_EQ(response->url().text(), "http://127.0.0.1/notes/7?full");
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "note 7");
    const auto end = co_await response->read();
    EXPECT_TRUE(end && end->empty());
    const auto missing = co_await client.get("http://127.0.0.1/none");
    EXPECT_TRUE(missing && missing->status() == Status::not_found);
  };
  run(talk());
  pass(2s);
  expect_at_rest();
}

TEST_F(ClientTest, PostSendsAndReadsJson) {
  int calls = 0;
  routes_.post("/notes", [&calls](Json<Note> note) {
    ++calls;
    return json(Note{note->id + 1, note->text + "!"});
  });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    const Note note{6, "text"};
    auto response = co_await client.post("http://127.0.0.1/notes", note);
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->status(), Status::ok);
    const auto answered = co_await response->json<Note>();
    EXPECT_TRUE(answered && answered->id == 7 && answered->text == "text!");
  };
  run(talk());
  EXPECT_EQ(calls, 1);
}

TEST_F(ClientTest, JsonOfAnotherFormIsAnError) {
  routes_.get("/", [] { return text("{\"id\": \"x\"}"); });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    auto response = co_await client.get("http://127.0.0.1/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto answered = co_await response->json<Note>();
    EXPECT_TRUE(!answered && answered.error() == ClientError::bad_json);
  };
  run(talk());
}

TEST_F(ClientTest, SendsOneExactHead) {
  Script script{{std::string(ok_head) + "hello"}};
  const auto talk = [&]() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    Client client;
    ClientRequest post = request(Method::post, "/a%20b?c=d", 81);
    post.add_header("X-Kind", "note");
    post.set_body("text/plain", Body(Literal("body")));
    auto serving = serve_script(*listener, script);
    auto asking = send_and_read(client, std::move(post));
    const auto both = co_await all(std::move(serving), std::move(asking));
    EXPECT_TRUE(both && std::get<1>(*both).body == "hello");
  };
  run(talk());
  EXPECT_EQ(script.received,
            "POST /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:81\r\nX-Kind: note\r\n"
            "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody");
}

TEST_F(ClientTest, RejectsHeadersAndMethodsThatItCannotSend) {
  const auto talk = []() -> Task<> {
    Client client;
    for (const char* const name :
         {"Content-Length", "transfer-encoding", "Connection", "Upgrade"}) {
      ClientRequest post = request(Method::post, "/");
      post.add_header(name, "1");
      const Outcome outcome = co_await send_and_read(client, std::move(post));
      EXPECT_EQ(outcome.error, Errc::bad_input) << name;
    }
    const Outcome tunnel = co_await send_and_read(client, request(Method::connect, "/"));
    EXPECT_EQ(tunnel.error, Errc::bad_input);
    const auto other = co_await client.get("ftp://127.0.0.1/");
    EXPECT_TRUE(!other && other.error() == Errc::unsupported);
    const auto wrong = co_await client.get("127.0.0.1");
    EXPECT_TRUE(!wrong && wrong.error() == ParseError::bad_target_form);
  };
  serve();
  run(talk());
}

TEST_F(ClientTest, SendsAnyMethod) {
  routes_.add("PROPFIND", "/", [] { return text("found"); });
  routes_.query("/", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body.value_or("failed") + "/" +
                   std::string(request.header("content-length").value_or("none")));
  });
  const auto talk = []() -> Task<> {
    Client client;
    const std::string url = "http://127.0.0.1/";
    const Outcome found = co_await send_and_read(client, ClientRequest("PROPFIND", url));
    EXPECT_EQ(found.body, "found");
    ClientRequest query("QUERY", url);
    EXPECT_EQ(query.method(), Method::query);
    const Outcome empty = co_await send_and_read(client, std::move(query));
    EXPECT_EQ(empty.body, "/0") << "a QUERY has content, which may be empty";
    auto asked = co_await client.query(url, "text/plain", std::string("a=b"));
    EXPECT_TRUE(asked);
    if (!asked) co_return;
    const auto body = co_await asked->body();
    EXPECT_EQ(body.value_or(""), "a=b/3");
    for (const std::string_view name : {"CONNECT", "", "a b", "GET\r\n"}) {
      const Outcome bad = co_await send_and_read(client, ClientRequest(name, url));
      EXPECT_EQ(bad.error, Errc::bad_input) << name;
    }
  };
  serve();
  run(talk());
}

TEST_F(ClientTest, NamesTeAsAnOptionOfItsConnection) {
  routes_.get("/", [](const Request& request) {
    return text(std::string(request.header("connection").value_or("none")));
  });
  const auto talk = []() -> Task<> {
    Client client;
    ClientRequest asking(Method::get, "http://127.0.0.1/");
    asking.add_header("TE", "trailers");
    const Outcome outcome = co_await send_and_read(client, std::move(asking));
    EXPECT_EQ(outcome.body, "TE") << "RFC 9110 10.1.4";
  };
  serve();
  run(talk());
}

TEST_F(ClientTest, StreamsABodyInChunksOrWithItsLength) {
  std::vector<std::string> lengths;
  routes_.post("/", [&lengths](Request& request) -> Task<Response> {
    lengths.emplace_back(request.header("content-length").value_or("none"));
    auto body = co_await request.body();
    co_return text(body ? *body : body.error().message());
  });
  serve();
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    for (int piece = 0; piece < 3; ++piece) {
      const Result<> written = co_await sink.write("piece ");
      if (!written) co_return written;
      static_cast<void>(co_await sleep(1ms));
    }
    co_return {};
  };
  const auto talk = [&]() -> Task<> {
    Client client;
    for (const auto length : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(18)}) {
      ClientRequest post = request(Method::post, "/");
      post.set_body("text/plain", Body(StreamFunction(write), length));
      const Outcome outcome = co_await send_and_read(client, std::move(post));
      EXPECT_EQ(outcome.body, "piece piece piece ") << outcome.error.message();
    }
    for (const std::uint64_t length : {17U, 19U}) {
      ClientRequest post = request(Method::post, "/");
      post.set_body("text/plain", Body(StreamFunction(write), length));
      const Outcome outcome = co_await send_and_read(client, std::move(post));
      EXPECT_EQ(outcome.error, Errc::bad_input) << length;
    }
  };
  run(talk());
  ASSERT_GE(lengths.size(), 2U);
  EXPECT_EQ(lengths[0], "none");
  EXPECT_EQ(lengths[1], "18");
}

TEST_F(ClientTest, ReadsAHeadAndABodyThatArriveInAnyPieces) {
  const std::string all = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n" +
                          std::string(ok_head) + "hello";
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    Script script{{all.substr(0, cut), all.substr(cut)}, 1ms};
    const Outcome outcome = ask(script);
    EXPECT_EQ(outcome.status, 200) << cut;
    EXPECT_EQ(outcome.body, "hello") << cut << outcome.error.message();
  }
}

TEST_F(ClientTest, TheEndOfABodyIsKnown) {
  EXPECT_EQ(answer({"HTTP/1.1 200 OK\r\n\r\nuntil ", "close"}).body, "until close");
  EXPECT_EQ(
      answer({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"}).body,
      "abc");
  EXPECT_EQ(answer({"HTTP/1.1 204 No Content\r\n\r\n"}).status, 204);
  Script script{{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"}};
  EXPECT_FALSE(ask(script, {}, Method::head).error);
}

TEST_F(ClientTest, AnIncompleteResponseIsAnError) {
  EXPECT_EQ(answer({}).error, ClientError::connection_lost);
  EXPECT_EQ(answer({"HTTP/1.1 200 OK\r\n"}).error, ClientError::connection_lost);
  EXPECT_EQ(answer({std::string(ok_head), "hell"}).error, ClientError::connection_lost);
  EXPECT_EQ(answer({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}).error,
            ClientError::connection_lost);
}

TEST_F(ClientTest, AStatusIsAnErrorOnRequestAndTheBodyCanStillBeRead) {
  for (const int status : {200, 399, 400, 404, 503, 599}) {
    const Outcome outcome =
        answer({"HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 5\r\n\r\nhello"});
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.body, "hello");
    const std::error_code wanted =
        status < 400 ? std::error_code() : error_of(static_cast<Status>(status));
    EXPECT_EQ(outcome.refusal, wanted) << status;
  }
}

TEST_F(ClientTest, AnInvalidResponseIsAnError) {
  EXPECT_EQ(answer({"HTTP/2.0 200 OK\r\n\r\n"}).error, ClientError::bad_response);
  EXPECT_EQ(answer({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}).error,
            ClientError::bad_response);
  EXPECT_EQ(answer({"HTTP/1.1 101 Switching\r\n\r\n"}).error, ClientError::bad_response);
  EXPECT_EQ(answer({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx"}).error,
            ClientError::bad_response);
}

TEST_F(ClientTest, AnUnknownClassOfStatusIsAResponse) {
  for (const std::string status : {"600", "999"}) {
    const auto got =
        answer({"HTTP/1.1 " + status + " Request denied\r\nContent-Length: 2\r\n\r\nok"});
    EXPECT_EQ(std::to_string(got.status), status);
    EXPECT_EQ(got.body, "ok");
  }
}

TEST_F(ClientTest, EachTimeoutHasItsError) {
  ClientLimits limits;
  limits.head_timeout = 2s;
  limits.body_timeout = 3s;
  const Instant before = platform_.now();
  Script silent{{std::string(ok_head)}, 10s};
  EXPECT_EQ(ask(silent, limits).error, ClientError::head_timed_out);
  EXPECT_GE(platform_.now() - before, Duration(2s));
  Script slow{{std::string(ok_head) + "h", "e"}, 1s};
  slow.pieces.front() = std::string(ok_head);
  limits.body_timeout = 500ms;
  EXPECT_EQ(ask(slow, limits).error, ClientError::body_timed_out);
  limits.body_timeout = 3s;
  limits.total_timeout = 1500ms;
  Script late{{std::string(ok_head), "hello"}, 1s};
  EXPECT_EQ(ask(late, limits).error, ClientError::timed_out);
  EXPECT_EQ(to_status(make_error_code(ClientError::head_timed_out)), Status::gateway_timeout);
}

TEST_F(ClientTest, ARefusedConnectionIsABadGateway) {
  const auto talk = []() -> Task<> {
    Client client;
    const Outcome outcome = co_await send_and_read(client, request(Method::get, "/", 82));
    EXPECT_EQ(outcome.error, ClientError::connect_failed);
    EXPECT_EQ(to_status(outcome.error), Status::bad_gateway);
  };
  run(talk());
}

TEST_F(ClientTest, CollectsAtMostItsLimit) {
  ClientLimits limits;
  limits.body_max = 5;
  Script fits{{std::string(ok_head) + "hello"}};
  EXPECT_EQ(ask(fits, limits).body, "hello");
  limits.body_max = 4;
  Script exceeds{{std::string(ok_head) + "hello"}};
  EXPECT_EQ(ask(exceeds, limits).error, ClientError::body_too_large);
}

TEST_F(ClientTest, ADroppedResponseClosesItsConnection) {
  routes_.get("/", [] { return text(std::string(1'000'000, 'x')); });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    auto response = co_await client.get("http://127.0.0.1/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto piece = co_await response->read();
    EXPECT_TRUE(piece && !piece->empty());
  };
  run(talk());
  pass(2s);
  expect_at_rest();
}

TEST_F(ClientTest, ACancelledRequestLeavesNothing) {
  routes_.get("/", []() -> Task<Response> {
    static_cast<void>(co_await sleep(10s));
    co_return text("late");
  });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    auto asking = send_and_read(client, request(Method::get, "/"));
    const auto outcome = co_await timeout(1s, std::move(asking));
    EXPECT_TRUE(outcome && outcome->error == Errc::cancelled);
  };
  run(talk());
  pass(20s);
  expect_at_rest();
}

TEST_F(ClientTest, FollowsRedirects) {
  routes_.get("/", [] { return redirect("/second", Status::found); });
  routes_.get("/second", [] { return redirect("http://127.0.0.1/third?q"); });
  routes_.get("/third", [] { return text("here"); });
  routes_.post("/kept", [] { return redirect("/echo", Status::temporary_redirect); });
  routes_.post("/echo", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body ? *body : body.error().message());
  });
  routes_.get("/endless", [] { return redirect("/endless"); });
  routes_.get("/nowhere", [] { return Response(Status::found); });
  serve();
  const auto talk = []() -> Task<> {
    Client client;
    auto response = co_await client.get("http://127.0.0.1/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->url().text(), "http://127.0.0.1/third?q");
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "here");
    ClientRequest post = request(Method::post, "/kept");
    post.set_body("text/plain", Body(Literal("again")));
    const Outcome kept = co_await send_and_read(client, std::move(post));
    EXPECT_EQ(kept.body, "again");
    const Outcome endless = co_await send_and_read(client, request(Method::get, "/endless"));
    EXPECT_EQ(endless.error, ClientError::too_many_redirects);
    const Outcome nowhere = co_await send_and_read(client, request(Method::get, "/nowhere"));
    EXPECT_EQ(nowhere.status, 302);
    EXPECT_EQ(client.connection_count(), 1U);
    ClientOptions options;
    options.limits.redirects_max = 0;
    Client other(std::move(options));
    const Outcome first = co_await send_and_read(other, request(Method::get, "/"));
    EXPECT_EQ(first.status, 302);
  };
  run(talk());
}

TEST_F(ClientTest, AnErrorThatComesEarlyEndsTheBodyOfTheRequest) {
  int pieces = 0;
  Script script{{"HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\n", "hello"}, 1500ms};
  const auto write = [&pieces](BodySink& sink) -> Task<Result<>> {
    for (pieces = 0; pieces < 1000; ++pieces) {
      const Result<> written = co_await sink.write("piece");
      if (!written) co_return written;
      const Result<> slept = co_await sleep(1s);
      if (!slept) co_return slept;
    }
    co_return {};
  };
  const auto talk = [&]() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    Client client;
    ClientRequest post = request(Method::post, "/", 81);
    post.set_body("text/plain", Body(StreamFunction(write)));
    auto serving = serve_script(*listener, script);
    auto asking = send_and_read(client, std::move(post));
    const auto both = co_await all(std::move(serving), std::move(asking));
    EXPECT_TRUE(both);
    if (!both) co_return;
    EXPECT_EQ(std::get<1>(*both).status, 403);
    EXPECT_EQ(std::get<1>(*both).body, "hello");
    EXPECT_EQ(pieces, 1);
    EXPECT_EQ(client.connection_count(), 0U) << "the request was cut off";
  };
  run(talk());
}

TEST_F(ClientTest, TheErrorOfAStreamFunctionEndsTheRequest) {
  routes_.post("/", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body ? *body : body.error().message());
  });
  serve();
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    const Result<> written = co_await sink.write("piece");
    if (!written) co_return written;
    co_return fail(Errc::conflict);
  };
  const auto talk = [&]() -> Task<> {
    Client client;
    ClientRequest post = request(Method::post, "/");
    post.set_body("text/plain", Body(StreamFunction(write)));
    const Outcome outcome = co_await send_and_read(client, std::move(post));
    EXPECT_EQ(outcome.error, Errc::conflict);
    EXPECT_EQ(client.connection_count(), 0U);
  };
  run(talk());
}

/// Runs `body` with a client, beside a server that follows the script.
void ClientTest::run_beside(Script& script, std::function<Task<>(Client&)> body) {
  const auto talk = [&]() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    Client client;
    auto serving = serve_script(*listener, script);
    auto asking = body(client);
    EXPECT_TRUE(co_await all(std::move(serving), std::move(asking)));
  };
  run(talk());
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(ClientTest, HeadersStayValidWhileTheBodyArrives) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/of-the-first-buffer\r\n";
  for (const char* const rest : {"Content-Length: 5\r\n\r\n", "\r\n"}) {
    Script script{{head + rest, "he", "llo"}, 1s};
    run_beside(script, [](Client& client) -> Task<> {
      auto response = co_await client.send(request(Method::get, "/", 81));
      EXPECT_TRUE(response);
      if (!response) co_return;
      const auto type = response->header("content-type");
      const auto body = co_await response->body();
      EXPECT_EQ(body.value_or(""), "hello");
      EXPECT_EQ(type.value_or(""), "text/of-the-first-buffer");
    });
  }
}

TEST_F(ClientTest, TheWholeTimeoutEndsABodyThatIsAlwaysThere) {
  Script script{{"HTTP/1.1 200 OK\r\n\r\n" + std::string(256 * 1024, 'a')}};
  run_beside(script, [](Client& client) -> Task<> {
    co_await expect_whole_timeout(client, request(Method::get, "/", 81));
  });
}

TEST_F(ClientTest, TheWholeTimeoutEndsAStreamFunctionAfterAnEarlyHead) {
  Script script{{std::string(ok_head), "late"}, 1500ms};
  run_beside(script, [this](Client& client) -> Task<> {
    auto asking = request(Method::post, "/", 81);
    asking.set_body("text/plain", Body([](BodySink& sink) -> Task<Result<>> {
                      const Result<> written = co_await sink.write("a");
                      if (!written) co_return written;
                      co_return co_await sleep(1h);
                    }));
    asking.set_timeout(2s);
    const Instant start = loop_->now();
    const Outcome outcome = co_await send_and_read(client, std::move(asking));
    EXPECT_EQ(outcome.error, ClientError::timed_out);
    EXPECT_EQ(loop_->now() - start, 2s);
  });
}

TEST_F(ClientTest, AStreamFunctionCannotHideAFailedWrite) {
  Script script{{std::string(ok_head) + "hello"}};
  run_beside(script, [](Client& client) -> Task<> {
    auto asking = request(Method::post, "/", 81);
    const auto write = [](BodySink& sink) -> Task<Result<>> {
      EXPECT_EQ((co_await sink.write("too long")).error(), Errc::bad_input);
      EXPECT_EQ((co_await sink.write("exact")).error(), Errc::bad_input);
      co_return {};
    };
    asking.set_body("text/plain", Body(StreamFunction(write), 5));
    const Outcome outcome = co_await send_and_read(client, std::move(asking));
    EXPECT_EQ(outcome.error, Errc::bad_input);
  });
}

TEST_F(ClientTest, AsksAServerOnAUnixSocket) {
  Script script{{std::string(ok_head) + "hello"}};
  const auto talk = [&]() -> Task<> {
    auto listener = co_await unix_socket::listen("/client/socket");
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    ClientOptions options;
    options.unix_socket = "/client/socket";
    Client client(std::move(options));
    auto serving = serve_script(*listener, script);
    auto asking = send_and_read(client, ClientRequest(Method::get, "http://name.test/x"));
    const auto both = co_await all(std::move(serving), std::move(asking));
    EXPECT_TRUE(both && std::get<1>(*both).body == "hello");
  };
  run(talk());
  EXPECT_EQ(script.received, "GET /x HTTP/1.1\r\nHost: name.test\r\n\r\n");
}

TEST_F(ClientTest, AnInvalidRequestIsNotSent) {
  const auto talk = []() -> Task<> {
    Client client;
    ClientRequest bad_header(Method::get, "http://127.0.0.1:81/");
    bad_header.set_header("X", "a\r\nb");
    const Outcome header = co_await send_and_read(client, std::move(bad_header));
    EXPECT_EQ(header.error, Errc::bad_input);
    const Outcome url = co_await send_and_read(client, ClientRequest(Method::get, "/path"));
    EXPECT_EQ(url.error, ParseError::bad_target_form);
  };
  run(talk());
}

}  // namespace
}  // namespace weir::http::client_test
