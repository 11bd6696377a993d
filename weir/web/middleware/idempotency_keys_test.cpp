// Tests of idempotency keys.
#include "weir/web/middleware/idempotency_keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>

#include "weir/http/message/authorization.hpp"
#include "weir/http/message/detail/announced_body.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/web/auth/authenticated_user.hpp"
#include "weir/web/auth/bearer_auth.hpp"
#include "weir/web/middleware/detail/idempotency_store.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::idempotency_keys_test {
namespace {

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("streamed");
}

/// A service that counts how often its handlers run.
class IdempotencyTest : public testing::Test {
 protected:
  Router routes(IdempotencyOptions options = {}) {
    Router router;
    router.use(idempotency_keys(std::move(options)));
    router.post("/pay", [this](Json<int> amount) {
      ++runs_;
      Response response = text("paid " + std::to_string(*amount), Status::created);
      response.set_header("Location", "/payments/" + std::to_string(runs_));
      response.set_header("Set-Cookie", "session=secret");
      return response;
    });
    router.put("/pay", [this] { return ++runs_, no_content(); });
    router.post("/status/{code}", [this](int code) {
      ++runs_;
      return problem(static_cast<Status>(code), "run " + std::to_string(runs_));
    });
    router.post("/throw", [this]() -> Response {
      ++runs_;
      throw std::runtime_error("thrown");
    });
    router.post("/stream", [this] { return ++runs_, stream("text/plain", write_word); });
    router.post("/busy", [this] {
      ++runs_;
      Response response(Status::service_unavailable);
      response.set_header("Retry-After", "1");
      return response;
    });
    router.post("/queued", [this] {  // like a reverse proxy without room
      ++runs_;
      Response response(make_error_code(ClientError::queue_full));
      response.set_header("Retry-After", "1");
      return response;
    });
    router.post("/passed/{status}", [this](int status) {  // like a reverse proxy
      ++runs_;
      Response response{Status(status)};
      response.add_header("Location", "/new");
      response.body() = detail::announced_body(0);
      return response;
    });
    router.post("/error/{name}", [this](std::string name) {
      ++runs_;
      if (name == "reset") return Response(make_error_code(std::errc::connection_reset));
      if (name == "timed_out") return Response(make_error_code(Errc::timed_out));
      if (name == "cancelled") return Response(make_error_code(Errc::cancelled));
      if (name == "end") return Response(make_error_code(Errc::end_of_stream));
      return Response(make_error_code(Errc::conflict));
    });
    router.post("/invalid", [this] {
      ++runs_;
      Response response = text("done");
      response.set_header("X-Bad", "a\nb");
      return response;
    });
    router.post("/large", [this] { return ++runs_, text(std::string(1000, 'x')); });
    return router;
  }
  static TestResponse pay(TestClient& client, std::string_view key, int amount = 7,
                          const HeaderList& more = {}, std::string_view path = "/pay") {
    ClientRequest request = client.request(Method::post, path);
    if (!key.empty()) request.set_header("Idempotency-Key", key);
    for (const auto& [name, value] : more) request.add_header(name, value);
    if (!states_owner(more)) request.set_header("Authorization", "Bearer ann");
    request.set_json(amount);
    return client.send(std::move(request));
  }

  static bool states_owner(const HeaderList& headers) {
    return std::ranges::any_of(headers, [](const auto& each) {
      return each.first == "Authorization" || each.first == "Cookie" || each.first == "X-User";
    });
  }

  int runs_ = 0;
};

TEST_F(IdempotencyTest, ARepeatedRequestGetsTheSameResponse) {
  TestClient client(routes());
  const auto first = pay(client, "\"a-1\"");
  EXPECT_EQ(first.status(), 201);
  EXPECT_EQ(header_of(first, "Idempotency-Replayed"), "-");
  const auto again = pay(client, "\"a-1\"");
  EXPECT_EQ(again.status(), 201);
  EXPECT_EQ(again.body(), "paid 7");
  EXPECT_EQ(header_of(again, "Location"), "/payments/1");
  EXPECT_EQ(header_of(first, "Set-Cookie"), "session=secret");
  EXPECT_EQ(header_of(again, "Set-Cookie"), "-");
  EXPECT_EQ(header_of(again, "Content-Type"), header_of(first, "Content-Type"));
  EXPECT_EQ(header_of(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(pay(client, "a-1").body(), "paid 7") << "quotes do not matter";
  pay(client, "a-2");
  EXPECT_EQ(runs_, 2);
}

TEST_F(IdempotencyTest, RequestsWithoutAKeyRun) {
  TestClient client(routes());
  pay(client, "");
  pay(client, "");
  EXPECT_EQ(runs_, 2);
  const HeaderList key{{"Idempotency-Key", "a"}};
  ask(client, Method::put, "/pay", key);
  ask(client, Method::put, "/pay", key);
  EXPECT_EQ(runs_, 4) << "PUT is idempotent already";
  TestClient strict(routes({.required = true}));
  EXPECT_EQ(pay(strict, "").status(), 400);
  EXPECT_EQ(pay(strict, "a").status(), 201);
  EXPECT_EQ(ask(strict, Method::put, "/pay").status(), 204);
}

TEST_F(IdempotencyTest, AKeyBelongsToOneRequest) {
  TestClient client(routes());
  EXPECT_EQ(pay(client, "a").status(), 201);
  EXPECT_EQ(pay(client, "a", 8).status(), 422);
  EXPECT_EQ(pay(client, "a", 7, {}, "/pay?x=1").status(), 422);
  EXPECT_EQ(pay(client, "a", 7, {}, "/stream").status(), 422);
  EXPECT_EQ(pay(client, "a").status(), 201);
  EXPECT_EQ(runs_, 1);
}

TEST_F(IdempotencyTest, TypeOfTheBodyBelongsToTheRequest) {
  TestClient client(routes());
  const auto pay_as = [&](std::string_view type, std::string_view coding) {
    ClientRequest request = client.request(Method::post, "/large");
    request.set_header("Idempotency-Key", "a");
    request.set_header("Cookie", "session=ann");
    request.set_header("Content-Type", type);
    if (!coding.empty()) request.set_header("Content-Encoding", coding);
    request.set_body("text/plain", Body(std::string("7")));
    return client.send(std::move(request)).status();
  };
  EXPECT_EQ(pay_as("application/json", ""), 200);
  EXPECT_EQ(pay_as("text/plain", ""), 422);
  EXPECT_EQ(pay_as("application/json", "gzip"), 422);
  EXPECT_EQ(pay_as("application/json", ""), 200);
  EXPECT_EQ(runs_, 1);
}

TEST_F(IdempotencyTest, CorrectedRequestRunsWithTheSameKey) {
  TestClient client(routes());
  ClientRequest wrong = client.request(Method::post, "/pay");
  wrong.set_header("Idempotency-Key", "a");
  wrong.set_header("Authorization", "Bearer ann");
  wrong.set_body("text/plain", Body(std::string("7")));
  EXPECT_EQ(client.send(std::move(wrong)).status(), 415);
  EXPECT_EQ(pay(client, "a").body(), "paid 7");
}

TEST_F(IdempotencyTest, KeysOfTwoCookiesAreDifferent) {
  TestClient client(routes());
  pay(client, "a", 7, {{"Cookie", "session=ann"}});
  EXPECT_EQ(header_of(pay(client, "a", 7, {{"Cookie", "session=bob"}}), "Idempotency-Replayed"),
            "-");
  EXPECT_EQ(header_of(pay(client, "a", 7, {{"Cookie", "session=ann"}}), "Idempotency-Replayed"),
            "true");
  EXPECT_EQ(runs_, 2);
}

TEST_F(IdempotencyTest, KeysOfTwoUsersAreDifferent) {
  TestClient client(routes());
  pay(client, "a", 7, {{"Authorization", "Bearer ann"}});
  EXPECT_EQ(pay(client, "a", 8, {{"Authorization", "Bearer bob"}}).body(), "paid 8");
  EXPECT_EQ(pay(client, "a", 7, {{"Authorization", "Bearer ann"}}).body(), "paid 7");
  EXPECT_EQ(runs_, 2);
  const auto user = [](const Request& request) {
    return std::string(request.header("X-User").value_or(""));
  };
  TestClient named(routes({.user = user}));
  pay(named, "a", 7, {{"X-User", "ann"}, {"Authorization", "Bearer 1"}});
  EXPECT_EQ(header_of(pay(named, "a", 7, {{"X-User", "ann"}, {"Authorization", "Bearer 2"}}),
                      "Idempotency-Replayed"),
            "true");
  EXPECT_EQ(header_of(pay(named, "a", 7, {{"X-User", "bob"}}), "Idempotency-Replayed"), "-");
}

TEST_F(IdempotencyTest, KeysThatAreInvalidAreRejected) {
  TestClient client(routes());
  for (const std::string& key : {std::string("\"\""), std::string("a b"), std::string("a\"b"),
                                 std::string("\"a"), std::string(256, 'a'), std::string("\xff")}) {
    EXPECT_EQ(pay(client, key).status(), 400) << key;
  }
  EXPECT_EQ(pay(client, std::string(255, 'a')).status(), 201);
  EXPECT_EQ(pay(client, "a", 7, {{"Idempotency-Key", "b"}}).status(), 400);
  EXPECT_EQ(runs_, 1);
}

TEST_F(IdempotencyTest, RequestsWithoutAnEffectRunAgain) {
  TestClient client(routes());
  for (const int status : {400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 421, 422, 425, 429}) {
    const std::string path = "/status/" + std::to_string(status);
    const std::string key = "k" + std::to_string(status);
    const int before = runs_;
    EXPECT_EQ(pay(client, key, 1, {}, path).status(), status);
    EXPECT_EQ(header_of(pay(client, key, 1, {}, path), "Idempotency-Replayed"), "-") << status;
    EXPECT_EQ(runs_, before + 2) << status;
  }
  runs_ = 0;
  EXPECT_EQ(pay(client, "busy", 1, {}, "/busy").status(), 503);
  EXPECT_EQ(pay(client, "busy", 1, {}, "/busy").status(), 503);
  pay(client, "conflict", 1, {}, "/error/conflict");
  pay(client, "conflict", 1, {}, "/error/conflict");
  EXPECT_EQ(runs_, 4);
  EXPECT_EQ(pay(client, "queued", 1, {}, "/queued").status(), 503);
  EXPECT_EQ(pay(client, "queued", 1, {}, "/queued").status(), 503);
  EXPECT_EQ(runs_, 6);
  EXPECT_EQ(pay(client, "c", 1, {}, "/none").status(), 404);
  const auto first = pay(client, "a", 1, {}, "/status/402");
  const auto again = pay(client, "a", 1, {}, "/status/402");
  EXPECT_EQ(again.status(), 402);
  EXPECT_EQ(header_of(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(again.body(), first.body());
}

TEST_F(IdempotencyTest, AnEmptyBodyOfAnUpstreamIsKept) {
  TestClient client(routes());
  for (const int status : {201, 204, 303, 410}) {
    runs_ = 0;
    const std::string key = std::to_string(status);
    for (int count = 0; count < 2; ++count) {
      const auto answer = pay(client, key, 1, {}, "/passed/" + key);
      EXPECT_EQ(answer.status(), status);
      EXPECT_EQ(answer.body(), "");
      EXPECT_EQ(header_of(answer, "Location"), "/new");
      EXPECT_EQ(header_of(answer, "Idempotency-Replayed"), count == 0 ? "-" : "true");
    }
    EXPECT_EQ(runs_, 1);
  }
}

// The effect may have happened, so the request must not run again.
TEST_F(IdempotencyTest, RequestsWithAnUnknownOutcomeDoNotRunAgain) {
  TestClient client(routes({.response_bytes_max = 999}));
  for (const std::string path :
       {"/status/500", "/status/501", "/status/502", "/status/503", "/status/504", "/throw",
        "/stream", "/large", "/invalid", "/error/reset", "/error/timed_out", "/error/cancelled",
        "/error/end"}) {
    SCOPED_TRACE(path);
    runs_ = 0;
    const auto first = pay(client, path, 1, {}, path);
    EXPECT_NE(first.status(), 409);
    const auto again = pay(client, path, 1, {}, path);
    EXPECT_EQ(again.status(), 409);
    EXPECT_EQ(header_of(again, "Retry-After"), "-");
    EXPECT_EQ(header_of(again, "Idempotency-Replayed"), "-");
    EXPECT_EQ(runs_, 1);
    EXPECT_EQ(pay(client, path, 2, {}, path).status(), 422);
  }
}

TEST_F(IdempotencyTest, UnknownOutcomesAreForgottenAfterTheirLifetime) {
  TestClient client(routes({.lifetime = 10s}));
  pay(client, "a", 1, {}, "/throw");
  client.advance(9s);
  EXPECT_EQ(pay(client, "a", 1, {}, "/throw").status(), 409);
  client.advance(2s);
  EXPECT_EQ(pay(client, "a", 1, {}, "/throw").status(), 500);
}

TEST_F(IdempotencyTest, AKeyNeedsAnOwner) {
  TestClient client(routes());
  ClientRequest request = client.request(Method::post, "/pay");
  request.set_header("Idempotency-Key", "a");
  request.set_header("X-Api-Key", "ann");
  request.set_json(7);
  EXPECT_EQ(client.send(std::move(request)).status(), 400);
  EXPECT_EQ(runs_, 0);
  const auto user = [](const Request& asked) -> std::optional<std::string> {
    if (const auto key = asked.header("X-User")) return std::string(*key);
    return std::nullopt;
  };
  TestClient named(routes({.user = user}));
  EXPECT_EQ(pay(named, "a").status(), 400) << "Authorization is not asked";
  EXPECT_EQ(pay(named, "a", 7, {{"X-User", ""}}).status(), 201) << "the owner of all others";
}

TEST_F(IdempotencyTest, KeysOfTwoHostsAreDifferent) {
  TestClient client(routes());
  EXPECT_EQ(pay(client, "a", 7, {{"Host", "a.example"}}).status(), 201);
  EXPECT_EQ(header_of(pay(client, "a", 7, {{"Host", "b.example"}}), "Idempotency-Replayed"), "-");
  for (const std::string_view same : {"A.example", "a.example."}) {
    EXPECT_EQ(header_of(pay(client, "a", 7, {{"Host", same}}), "Idempotency-Replayed"), "true");
  }
  EXPECT_EQ(runs_, 2);
}

// RFC 9110 §4.2.3: the default port may be left out.
TEST_F(IdempotencyTest, TheDefaultPortIsNoOtherHost) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
  router.mount("", routes());
  TestClient client(std::move(router));
  const auto replays = [&](std::string_view host, std::string_view proto) {
    const HeaderList headers{
        {"Host", host}, {"X-Forwarded-For", "192.0.2.1"}, {"X-Forwarded-Proto", proto}};
    return header_of(pay(client, "a", 7, headers), "Idempotency-Replayed") == "true";
  };
  EXPECT_FALSE(replays("shop.example", "http"));
  EXPECT_TRUE(replays("shop.example:80", "http"));
  EXPECT_TRUE(replays("shop.example:443", "https"));
  EXPECT_FALSE(replays("shop.example:80", "https"));
  EXPECT_FALSE(replays("shop.example:443", "http"));
  EXPECT_FALSE(replays("[::1]", "http"));
  EXPECT_TRUE(replays("[::0001]:80", "http"));
  EXPECT_EQ(runs_, 4);
}

TEST_F(IdempotencyTest, KeysOfTwoHostsBehindAProxyAreDifferent) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
  router.mount("", routes());
  TestClient client(std::move(router));
  const auto paid_for = [&](std::string_view host) {
    return header_of(pay(client, "a", 7, {{"X-Forwarded-Host", host}}), "Idempotency-Replayed") ==
           "true";
  };
  EXPECT_FALSE(paid_for("a.example"));
  EXPECT_FALSE(paid_for("b.example"));
  EXPECT_TRUE(paid_for("b.example"));
}

// A client may renew its token between a request and its repetition.
TEST_F(IdempotencyTest, AKeyBelongsToTheUserOfTwoTokens) {
  Router router;
  router.use(bearer_auth({.users = {{"t-1", "ann"}, {"t-2", "ann"}, {"t-3", "bob"}}}));
  router.mount("", routes());
  TestClient client(std::move(router));
  const auto replays = [&](std::string_view token) {
    const auto response = pay(client, "a", 7, {{"Authorization", token}});
    EXPECT_EQ(response.status(), 201);
    return header_of(response, "Idempotency-Replayed") == "true";
  };
  EXPECT_FALSE(replays("Bearer t-1"));
  EXPECT_TRUE(replays("Bearer t-2"));
  EXPECT_FALSE(replays("Bearer t-3"));
  EXPECT_EQ(runs_, 2);
}

TEST_F(IdempotencyTest, KeysOfOthersForgetNone) {
  const auto user = [](const Request& request) {
    return std::string(request.header("X-User").value_or(""));
  };
  TestClient client(routes({.entries_max = 64, .bytes_max = 40'000, .user = user}));
  const HeaderList ann{{"X-User", "ann"}};
  pay(client, "a", 7, ann);
  for (int number = 0; number < 200; ++number) {
    EXPECT_EQ(pay(client, std::to_string(number), 7, {{"X-User", "bob"}}).status(), 201);
  }
  EXPECT_EQ(runs_, 201);
  EXPECT_EQ(header_of(pay(client, "a", 7, ann), "Idempotency-Replayed"), "true");
  EXPECT_EQ(runs_, 201);
}

/// A service that knows some of its clients by a token, and lets all others in.
class IdempotencyOwnersTest : public IdempotencyTest {
 protected:
  Router open_routes(const IdempotencyOptions& options) {
    Router router;
    router.use([](Request& request, Next next) -> Task<Response> {
      const auto token = request.header("X-Token");
      if (token) request.set(AuthenticatedUser{std::string(*token)});
      return next(request);
    });
    router.mount("", routes(options));
    return router;
  }
  /// Sends a request with this key and amount. Returns its status, and "replayed" for a copy.
  static std::string outcome(TestClient& client, const HeaderList& owner, std::string_view key,
                             std::string_view path = "/pay") {
    HeaderList headers = owner;
    headers.emplace_back("Cookie", "c");
    const auto response = pay(client, key, 7, headers, path);
    const bool replayed = header_of(response, "Idempotency-Replayed") == "true";
    return replayed ? "replayed" : std::to_string(code_of(response.status()));
  }
};

TEST_F(IdempotencyOwnersTest, OwnersThatNothingHasProvedStopNobody) {
  TestClient client(open_routes({.entries_max = 64}));
  EXPECT_EQ(outcome(client, {{"X-Token", "ann"}}, "a"), "201");
  for (int number = 0; number < 200; ++number) {
    const std::string cookie = std::to_string(number);
    ASSERT_EQ(outcome(client, {{"Cookie", cookie}}, "k"), "201") << number;
  }
  EXPECT_EQ(outcome(client, {{"X-Token", "ann"}}, "a"), "replayed");
  EXPECT_EQ(outcome(client, {{"X-Token", "ann"}}, "b"), "201");
  EXPECT_EQ(outcome(client, {{"X-Token", "bob"}}, "a"), "201");
  EXPECT_EQ(outcome(client, {{"Cookie", "new"}}, "a"), "201");
  EXPECT_EQ(outcome(client, {{"Cookie", "new"}}, "a"), "replayed");
}

TEST_F(IdempotencyOwnersTest, ManyProvedOwnersStopNobody) {
  TestClient client(open_routes({.entries_max = 64}));
  for (int number = 0; number < 200; ++number) {
    const std::string token = std::to_string(number);
    ASSERT_EQ(outcome(client, {{"X-Token", token}}, "k"), "201") << number;
  }
  EXPECT_EQ(outcome(client, {{"X-Token", "199"}}, "k"), "replayed");
  EXPECT_EQ(outcome(client, {{"X-Token", "136"}}, "k"), "replayed");
  EXPECT_EQ(outcome(client, {{"Cookie", "new"}}, "k"), "201");
}

TEST_F(IdempotencyOwnersTest, OwnersThatNothingHasProvedTakeNoBytesOfOthers) {
  TestClient client(open_routes({.bytes_max = 64'000}));
  EXPECT_EQ(outcome(client, {{"X-Token", "ann"}}, "a", "/large"), "200");
  for (int number = 0; number < 200; ++number) {
    const std::string cookie = std::to_string(number);
    ASSERT_EQ(outcome(client, {{"Cookie", cookie}}, "k", "/large"), "200") << number;
  }
  EXPECT_EQ(outcome(client, {{"X-Token", "ann"}}, "a", "/large"), "replayed");
  EXPECT_EQ(outcome(client, {{"X-Token", "bob"}}, "a", "/large"), "200");
  EXPECT_EQ(outcome(client, {{"X-Token", "bob"}}, "a", "/large"), "replayed");
}

TEST_F(IdempotencyTest, ResponsesAreForgottenAfterTheirLifetime) {
  TestClient client(routes({.lifetime = 10s}));
  pay(client, "a");
  client.advance(9s);
  pay(client, "a");
  EXPECT_EQ(runs_, 1);
  client.advance(2s);
  EXPECT_EQ(pay(client, "a", 9).body(), "paid 9");
  EXPECT_EQ(runs_, 2);
}

class IdempotencyConnectionTest : public HttpTest {
 protected:
  IdempotencyConnectionTest() {
    routes_.use(idempotency_keys({.entries_max = 2}));
    routes_.post("/slow", [this]() -> Task<Response> {
      ++runs_;
      const auto slept = co_await sleep(1s);
      if (!slept) co_return Response(slept.error());
      co_return text("slow");
    });
    const auto wait = [this]() -> Task<Response> {
      ++runs_;
      const auto slept = co_await sleep(1s);
      if (!slept) co_return Response(slept.error());
      co_return text("done");
    };
    routes_.post("/limited", wait, {.timeout = 500ms});
    routes_.post("/deaf", [this]() -> Task<Response> {
      ++runs_;
      std::ignore = co_await sleep(1s);
      co_return text("done");
    });
    serve();
  }
  std::string post(std::string_view key, std::string_view path = "/slow") {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: a\r\nCookie: ann\r\nIdempotency-Key: " + std::string(key) +
           "\r\nContent-Length: 0\r\n\r\n";
  }
  int runs_ = 0;
};

TEST_F(IdempotencyConnectionTest, ARequestThatRunsIsAConflict) {
  MemoryPeer& first = connect();
  MemoryPeer& second = connect();
  EXPECT_EQ(talk(first, post("a")), "");
  const std::string conflict = talk(second, post("a"));
  EXPECT_TRUE(conflict.starts_with("HTTP/1.1 409 ")) << conflict;
  EXPECT_TRUE(conflict.contains("Retry-After: 1\r\n"));
  pass(1s);
  EXPECT_TRUE(first.take().ends_with("slow"));
  EXPECT_TRUE(talk(second, post("a")).ends_with("slow"));
  EXPECT_EQ(runs_, 1);
}

// RFC 9112 §3.2: both forms of the target name one resource.
TEST_F(IdempotencyConnectionTest, TheFormOfTheTargetIsNoOtherRequest) {
  MemoryPeer& peer = connect();
  talk(peer, post("a", "/deaf?x=1"));
  pass(1s);
  EXPECT_TRUE(peer.take().ends_with("done"));
  EXPECT_TRUE(talk(peer, post("a", "http://a:80/deaf?x=1")).ends_with("done"));
  EXPECT_TRUE(talk(peer, post("a", "http://a/deaf?x=2")).starts_with("HTTP/1.1 422 "));
  EXPECT_TRUE(talk(peer, post("a", "http://a/deaf")).starts_with("HTTP/1.1 422 "));
  EXPECT_EQ(runs_, 1);
}

TEST_F(IdempotencyConnectionTest, AKeyIsNotFreeAfterTheTimeoutOfItsRoute) {
  MemoryPeer& first = connect();
  talk(first, post("a", "/limited"));
  pass(500ms);
  EXPECT_TRUE(first.take().starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(talk(first, post("a", "/limited")).starts_with("HTTP/1.1 409 "));
  EXPECT_EQ(runs_, 1);
}

// The handler does not notice that its client has left, so its response is kept.
TEST_F(IdempotencyConnectionTest, AResponseIsKeptAlsoIfItsClientHasLeft) {
  MemoryPeer& first = connect();
  talk(first, post("a", "/deaf"));
  first.reset();
  settle();
  pass(1s);
  MemoryPeer& second = connect();
  EXPECT_TRUE(talk(second, post("a", "/deaf")).ends_with("done"));
  EXPECT_EQ(runs_, 1);
}

class IdempotencyHttp2Test : public H2ConnectionFixture, public testing::Test {};

TEST_F(IdempotencyHttp2Test, AKeyIsNotFreeWhenItsStreamIsReset) {
  int runs = 0;
  routes_.use(idempotency_keys());
  routes_.post("/slow", [&runs]() -> Task<Response> {
    ++runs;
    const auto slept = co_await sleep(1s);
    if (!slept) co_return Response(slept.error());
    co_return text("slow");
  });
  begin();
  const auto post = [](std::uint32_t stream) {
    return frames::headers(stream, frames::block({{":method", "POST"},
                                                  {":scheme", "http"},
                                                  {":path", "/slow"},
                                                  {":authority", "a"},
                                                  {"cookie", "ann"},
                                                  {"idempotency-key", "a"}}));
  };
  answer(post(1));
  answer(frames::rst_stream(1));
  const std::string again = answer(post(3));
  EXPECT_NE(again.find(":status=409"), again.npos) << again;
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyConnectionTest, KeysThatRunAreBounded) {
  talk(connect(), post("a"));
  talk(connect(), post("b"));
  MemoryPeer& third = connect();
  EXPECT_TRUE(talk(third, post("c")).starts_with("HTTP/1.1 503 "));
  pass(1s);
  talk(third, post("c"));
  pass(1s);
  EXPECT_TRUE(third.take().ends_with("slow")) << "the oldest response made room";
}

/// Keys of owners in a store.
class IdempotencyStoreTest : public testing::Test {
 protected:
  using State = IdempotencyStore::State;
  static Hash128 key(std::string_view owner, int number) {
    return hash_bytes(std::string(owner).append(std::to_string(number)), 1);
  }
  static State claim(IdempotencyStore& store, std::string_view owner, int number,
                     Instant now = Instant()) {
    return store.claim({hash_bytes(owner, 1), key(owner, number), {}}, now).state;
  }
  static auto stored(std::size_t bytes) {
    return std::make_shared<const StoredResponse>(text(std::string(bytes, 'x')));
  }
  /// Claims a key and ends it with a response.
  static void answer(IdempotencyStore& store, std::string_view owner, int number,
                     std::size_t bytes = 100) {
    EXPECT_EQ(claim(store, owner, number), State::claimed) << owner << number;
    store.finish(key(owner, number), stored(bytes), Instant());
  }
};

TEST_F(IdempotencyStoreTest, HasBoundsOfEntriesAndBytes) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 10, .bytes_max = 5000});
  for (int number = 0; number < 1000; ++number) {
    answer(store, "a", number, 500);
    EXPECT_LE(store.entries(), 10U);
    EXPECT_LE(store.bytes(), 5000U);
  }
  EXPECT_EQ(store.entries(), 10U);
  EXPECT_EQ(claim(store, "a", 999), State::known);
  EXPECT_EQ(claim(store, "a", 990), State::unknown) << "its response made room";
  EXPECT_EQ(claim(store, "a", 989), State::claimed) << "the key made room";
  store.release(key("a", 989));
  EXPECT_EQ(claim(store, "a", 1), State::claimed);
  store.finish(key("a", 1), stored(6000), Instant());
  EXPECT_EQ(claim(store, "a", 1), State::unknown) << "too large";
  EXPECT_EQ(claim(store, "a", 2, Instant(2h)), State::claimed);
  EXPECT_EQ(store.entries(), 1U);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST_F(IdempotencyStoreTest, LeavesEachOwnerItsPartOfEntries) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 16, .bytes_max = 100'000});
  for (int number = 0; number < 4; ++number) answer(store, "ann", number);
  for (int number = 0; number < 100; ++number) answer(store, "bob", number);
  for (int number = 0; number < 4; ++number) {
    EXPECT_EQ(claim(store, "ann", number), State::known) << number;
  }
  answer(store, "eve", 0);
  EXPECT_EQ(claim(store, "bob", 99), State::known);
  EXPECT_EQ(claim(store, "bob", 88), State::claimed) << "bob had most";
  EXPECT_EQ(store.entries(), 16U);
}

TEST_F(IdempotencyStoreTest, OwnerWithTheMostKeysMakesRoom) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 16, .bytes_max = 100'000});
  for (const auto* owner : {"a", "b", "c", "d"}) {
    for (int number = 0; number < 4; ++number) answer(store, owner, number);
  }
  answer(store, "a", 4);
  EXPECT_EQ(claim(store, "a", 1), State::known) << "only its own oldest one made room";
  answer(store, "eve", 0);
  EXPECT_EQ(claim(store, "b", 1), State::known) << "b has had the most for longest, and lost one";
  EXPECT_EQ(claim(store, "c", 0), State::known);
  EXPECT_EQ(claim(store, "d", 0), State::known);
  EXPECT_EQ(claim(store, "b", 0), State::claimed) << "c made room";
  EXPECT_EQ(claim(store, "c", 0), State::claimed) << "d made room, as b does not have more";
  EXPECT_EQ(store.entries(), 16U);
}

TEST_F(IdempotencyStoreTest, OldestKeyMakesRoomAmongEqualOwners) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 16, .bytes_max = 100'000});
  for (int owner = 0; owner < 100; ++owner) answer(store, std::to_string(owner).append("-"), 0);
  for (int owner = 84; owner < 100; ++owner) {
    EXPECT_EQ(claim(store, std::to_string(owner).append("-"), 0), State::known) << owner;
  }
  answer(store, "99-", 1);
  EXPECT_EQ(claim(store, "84-", 0), State::known)
      << "an owner with one key has no more than others";
  EXPECT_EQ(claim(store, "99-", 0), State::claimed);
}

TEST_F(IdempotencyStoreTest, ForgetsNoKeyThatRuns) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 4, .bytes_max = 100'000});
  for (int number = 0; number < 4; ++number) {
    EXPECT_EQ(claim(store, "a", number), State::claimed);
  }
  EXPECT_EQ(claim(store, "a", 4), State::full);
  EXPECT_EQ(claim(store, "b", 0), State::full);
  store.lose(key("a", 2), Instant());
  EXPECT_EQ(claim(store, "b", 0), State::claimed);
  EXPECT_EQ(claim(store, "a", 0), State::in_progress);
  EXPECT_EQ(claim(store, "a", 0, Instant(48h)), State::in_progress);
}

TEST_F(IdempotencyStoreTest, LeavesEachOwnerItsPartOfBytes) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 1000, .bytes_max = 40'000});
  for (int number = 0; number < 4; ++number) answer(store, "ann", number, 1500);
  for (int number = 0; number < 100; ++number) answer(store, "bob", number, 1500);
  for (int number = 0; number < 4; ++number) {
    EXPECT_EQ(claim(store, "ann", number), State::known) << number;
  }
  EXPECT_EQ(claim(store, "bob", 0), State::unknown);
  EXPECT_EQ(claim(store, "bob", 99), State::known);
  answer(store, "eve", 0, 1500);
  EXPECT_EQ(claim(store, "eve", 0), State::known) << "bob made room";
  EXPECT_LE(store.bytes(), 40'000U);
}

}  // namespace
}  // namespace weir::http::idempotency_keys_test
