// Tests of idempotency keys.
#include "weir/web/middleware/idempotency_keys.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/message/authorization.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/web/middleware/detail/idempotency_store.hpp"
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
    router.post("/large", [this] { return ++runs_, text(std::string(1000, 'x')); });
    return router;
  }
  static TestResponse pay(TestClient& client, std::string_view key, int amount = 7,
                          const HeaderList& more = {}, std::string_view path = "/pay") {
    ClientRequest request = client.request(Method::post, path);
    if (!key.empty()) request.set_header("Idempotency-Key", key);
    for (const auto& [name, value] : more) request.add_header(name, value);
    request.set_json(amount);
    return client.send(std::move(request));
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

TEST_F(IdempotencyTest, ErrorsThatMayPassAreNotKept) {
  TestClient client(routes());
  for (const int status :
       {400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 421, 422, 425, 429, 500, 503}) {
    const std::string path = "/status/" + std::to_string(status);
    const std::string key = "k" + std::to_string(status);
    const int before = runs_;
    EXPECT_EQ(pay(client, key, 1, {}, path).status(), status);
    EXPECT_EQ(header_of(pay(client, key, 1, {}, path), "Idempotency-Replayed"), "-") << status;
    EXPECT_EQ(runs_, before + 2) << status;
  }
  const auto first = pay(client, "a", 1, {}, "/status/402");
  const auto again = pay(client, "a", 1, {}, "/status/402");
  EXPECT_EQ(again.status(), 402);
  EXPECT_EQ(header_of(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(again.body(), first.body());
  EXPECT_EQ(pay(client, "b", 1, {}, "/throw").status(), 500);
  EXPECT_EQ(pay(client, "b", 1, {}, "/throw").status(), 500);
  EXPECT_EQ(pay(client, "c", 1, {}, "/none").status(), 404);
}

TEST_F(IdempotencyTest, StreamsAndLargeResponsesAreNotKept) {
  TestClient client(routes({.response_bytes_max = 999}));
  EXPECT_EQ(pay(client, "a", 1, {}, "/stream").body(), "streamed");
  EXPECT_EQ(pay(client, "a", 1, {}, "/stream").body(), "streamed");
  pay(client, "b", 1, {}, "/large");
  pay(client, "b", 1, {}, "/large");
  EXPECT_EQ(runs_, 4);
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
    serve();
  }
  std::string post(std::string_view key) {
    return "POST /slow HTTP/1.1\r\nHost: a\r\nIdempotency-Key: " + std::string(key) +
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

TEST_F(IdempotencyConnectionTest, AKeyIsFreeWhenItsClientLeaves) {
  MemoryPeer& first = connect();
  talk(first, post("a"));
  first.reset();
  settle();
  MemoryPeer& second = connect();
  EXPECT_EQ(talk(second, post("a")), "");
  pass(1s);
  EXPECT_TRUE(second.take().ends_with("slow"));
  EXPECT_EQ(runs_, 2);
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

TEST(IdempotencyStore, HasBoundsOfEntriesAndBytes) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 10, .bytes_max = 5000});
  const auto key = [](int number) { return hash_bytes(std::to_string(number), 1); };
  const Response response = text(std::string(500, 'x'));
  const auto stored = std::make_shared<const StoredResponse>(response);
  for (int number = 0; number < 1000; ++number) {
    EXPECT_EQ(store.claim(key(number), {}, Instant()).state, IdempotencyStore::State::claimed);
    store.finish(key(number), stored, Instant());
    EXPECT_LE(store.entries(), 10U);
    EXPECT_LE(store.bytes(), 5000U);
  }
  EXPECT_GE(store.entries(), 5U);
  EXPECT_EQ(store.claim(key(999), {}, Instant()).state, IdempotencyStore::State::known);
  EXPECT_EQ(store.claim(key(0), {}, Instant()).state, IdempotencyStore::State::claimed);
  store.release(key(0));
  const auto large = std::make_shared<const StoredResponse>(text(std::string(6000, 'x')));
  EXPECT_EQ(store.claim(key(1), {}, Instant()).state, IdempotencyStore::State::claimed);
  store.finish(key(1), large, Instant());
  EXPECT_EQ(store.claim(key(1), {}, Instant()).state, IdempotencyStore::State::claimed);
  store.release(key(1));
  EXPECT_EQ(store.claim(key(2), {}, Instant(2h)).state, IdempotencyStore::State::claimed);
  EXPECT_EQ(store.entries(), 1U);
  EXPECT_EQ(store.bytes(), 0U);
}

}  // namespace
}  // namespace weir::http::idempotency_keys_test
