// Tests of the client over HTTP/2 against Weir's server, in virtual time.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http/test/client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_client_test {
namespace {

constexpr std::string_view origin = "http://127.0.0.1";

Task<Response> wait_and_answer() {
  static_cast<void>(co_await sleep(std::chrono::milliseconds(10)));
  co_return text("late");
}

std::string url(std::string_view target) {
  return std::string(origin) + std::string(target);
}

Task<std::string> body_of(Client& client, std::string target) {
  auto response = co_await client.get(url(target));
  if (!response) co_return response.error().message();
  EXPECT_EQ(response->version(), Version::http_2);
  const auto body = co_await response->body();
  co_return body ? *body : body.error().message();
}

class H2ClientTest : public HttpTest {
 protected:
  void SetUp() override { plain_http2_ = PlainHttp2::only; }
  /// Runs `use` with a client, and expects that it leaves nothing open.
  template <class Use>
  void with_client(const Use& use, const ClientLimits& limits = {}) {
    serve(server_limits_);
    {
      ClientOptions options;
      options.plain_http2 = true;
      options.limits = limits;
      Client client(std::move(options));
      weir::run(*loop_, use(client));
      EXPECT_EQ(client.connection_count(), client.idle_count());
    }
    settle();
  }

  Limits server_limits_;
};

TEST_F(H2ClientTest, GetReturnsTheStatusTheHeadersAndTheBody) {
  routes_.get("/notes/{id}", [](int id) {
    Response response = text("note " + std::to_string(id));
    response.add_header("X-Kind", "note");
    return response;
  });
  with_client([](Client& client) -> Task<> {
    for (int id = 7; id < 10; ++id) {
      auto response = co_await client.get(url("/notes/" + std::to_string(id) + "?full"));
      EXPECT_TRUE(response);
      if (!response) co_return;
      EXPECT_EQ(response->version(), Version::http_2);
      EXPECT_EQ(response->status(), Status::ok);
      EXPECT_EQ(response->header("x-kind"), "note");
      EXPECT_EQ(response->header("x-none"), std::nullopt);
      const auto body = co_await response->body();
      EXPECT_TRUE(body && *body == "note " + std::to_string(id));
      const auto end = co_await response->read();
      EXPECT_TRUE(end && end->empty());
    }
    EXPECT_EQ(client.connection_count(), 1U);
    EXPECT_EQ(client.idle_count(), 1U);
  });
}

/// The content of an optional body.
struct Order {
  int count = 0;
};

Task<> get_hello(Client& client) {
  auto getting = body_of(client, "/");
  const std::string body = co_await std::move(getting);
  EXPECT_EQ(body, "hello");
}

TEST_F(H2ClientTest, LimitsBelowTheirRangesCountAsTheSmallest) {
  routes_.get("/", [] { return text("hello"); });
  const ClientLimits least{.http2 = {.streams_max = 0,
                                     .stream_window = 0,
                                     .connection_window = 0,
                                     .block_bytes_max = 0,
                                     .block_frames_max = 0,
                                     .control_bytes_max = 0,
                                     .output_max = 0,
                                     .work = {.burst = 0, .refill_per_second = 0}}};
  with_client(get_hello, least);
  const ClientLimits in_ranges{.http2 = in_range(least.http2)};
  EXPECT_EQ(memory_bound(least).http2_connection, memory_bound(in_ranges).http2_connection);
}

TEST_F(H2ClientTest, LimitsAboveTheirRangesCountAsTheLargest) {
  routes_.get("/", [] { return text("hello"); });
  constexpr std::uint32_t most = 0xFFFFFFFF;
  with_client(get_hello, {.http2 = {.streams_max = most,
                                    .stream_window = most,
                                    .connection_window = most,
                                    .block_frames_max = most,
                                    .field_list_max = most,
                                    .work = {}}});
}

TEST_F(H2ClientTest, BodyWithoutALengthNeedsItsMediaType) {
  routes_.post("/order", [](std::optional<Order> order) {
    return text(order ? std::to_string(order->count) : "none");
  });
  with_client([](Client& client) -> Task<> {
    const auto post = [&client](MediaType type, Body body) {
      ClientRequest request(Method::post, url("/order"));
      request.set_body(type, std::move(body));
      return client.send(std::move(request));
    };
    const auto streamed = [] {
      return Body(StreamFunction([](BodySink& sink) { return sink.write(R"({"count":7})"); }));
    };
    auto typed = co_await post("application/json", streamed());
    EXPECT_TRUE(typed && typed->status() == Status::ok);
    if (typed) {
      const auto body = co_await typed->body();
      EXPECT_EQ(body.value_or(""), "7");
    }
    // A form of another site can send this type, so it must not pass for JSON.
    auto plain = co_await post("text/plain", streamed());
    EXPECT_TRUE(plain && plain->status() == Status::unsupported_media_type);
    auto none = co_await post("text/plain", Body());
    EXPECT_TRUE(none && none->status() == Status::ok);
  });
}

TEST_F(H2ClientTest, BodyLengthIsThatOfTheStream) {
  routes_.fallback([](const Request& request) {
    const auto bytes = request.body_length().bytes();
    return text(bytes ? std::to_string(*bytes) : "unknown");
  });
  with_client([](Client& client) -> Task<> {
    const auto answer = [&client](Body body) -> Task<std::string> {
      ClientRequest request(Method::delete_, url("/"));
      request.set_body("text/plain", std::move(body));
      auto response = co_await client.send(std::move(request));
      if (!response) co_return response.error().message();
      EXPECT_EQ(response->body_length().kind(), BodyLength::Kind::known);
      const auto text = co_await response->body();
      co_return text.value_or("failed");
    };
    const std::string none = co_await answer(Body());
    EXPECT_EQ(none, "0");
    const std::string known = co_await answer(Body(Literal("abc")));
    EXPECT_EQ(known, "3");
    const auto write = [](BodySink& sink) { return sink.write("abc"); };
    const std::string unknown = co_await answer(Body(StreamFunction(write)));
    EXPECT_EQ(unknown, "unknown");
    auto head = co_await client.head(url("/"));
    EXPECT_TRUE(head && !head->body_length().has_body());
  });
}

TEST_F(H2ClientTest, OneConnectionCarriesManyRequestsAtOnce) {
  routes_.get("/", wait_and_answer);
  with_client([](Client& client) -> Task<> {
    std::size_t answered = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 100; ++count) {
        scope.spawn([](Client& each, std::size_t& sum) -> Task<> {
          if (co_await body_of(each, "/") == "late") ++sum;
        }(client, answered));
      }
      static_cast<void>(co_await sleep(std::chrono::milliseconds(1)));
      EXPECT_EQ(client.connection_count(), 1U);
      EXPECT_EQ(client.idle_count(), 0U);
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, body));
    EXPECT_EQ(answered, 100U);
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientTest, RequestsAboveTheLimitOpenAnotherConnectionOrWait) {
  routes_.get("/", wait_and_answer);
  ClientLimits limits;
  limits.http2.streams_max = 2;
  limits.connections_per_origin_max = 2;
  with_client(
      [](Client& client) -> Task<> {
        std::size_t answered = 0;
        const auto body = [&](Scope& scope) -> Task<> {
          for (int count = 0; count < 20; ++count) {
            scope.spawn([](Client& each, std::size_t& sum) -> Task<> {
              if (co_await body_of(each, "/") == "late") ++sum;
            }(client, answered));
          }
          static_cast<void>(co_await sleep(std::chrono::milliseconds(1)));
          EXPECT_EQ(client.connection_count(), 2U);
        };
        static_cast<void>(co_await with_scope(OnFailure::isolate, body));
        EXPECT_EQ(answered, 20U);
      },
      limits);
}

TEST_F(H2ClientTest, TheWholeTimeoutEndsABodyThatIsAlwaysThere) {
  routes_.get("/endless", [] {
    return stream("text/plain", [](BodySink& sink) -> Task<Result<>> {
      // The first read gets half of the window. So something has arrived at each later read.
      WEIR_CO_TRY(co_await sink.write(std::string(32 * 1024, 'a')));
      WEIR_CO_TRY(co_await sleep(1ms));
      for (;;) WEIR_CO_TRY(co_await sink.write(std::string(4096, 'a')));
    });
  });
  with_client([](Client& client) -> Task<> {
    co_await expect_whole_timeout(client, ClientRequest(Method::get, url("/endless")));
  });
}

TEST_F(H2ClientTest, ADroppedResponseKeepsTheConnection) {
  routes_.get("/large", [] { return text(std::string(1'000'000, 'x')); });
  routes_.get("/", [] { return text("small"); });
  with_client([](Client& client) -> Task<> {
    for (int count = 0; count < 40; ++count) {
      auto response = co_await client.get(url("/large"));
      EXPECT_TRUE(response);
      if (!response) co_return;
      const auto piece = co_await response->read();
      EXPECT_TRUE(piece && !piece->empty());
    }
    EXPECT_EQ(co_await body_of(client, "/"), "small");
    EXPECT_EQ(client.connection_count(), 1U);
  });
}

TEST_F(H2ClientTest, AnUnreadResponseDelaysNoOther) {
  routes_.get("/large", [] { return text(std::string(1'000'000, 'x')); });
  routes_.get("/", [] { return text("small"); });
  with_client([](Client& client) -> Task<> {
    std::vector<ClientResponse> unread;
    for (int count = 0; count < 100; ++count) {
      auto response = co_await client.get(url("/large"));
      EXPECT_TRUE(response);
      if (response) unread.push_back(std::move(*response));
    }
    EXPECT_EQ(co_await body_of(client, "/"), "small");
    EXPECT_EQ(client.connection_count(), 1U);
    const auto whole = co_await unread.back().body();
    EXPECT_TRUE(whole && whole->size() == 1'000'000);
  });
}

// The first request leaves before the settings of the server arrive; its limit is only advice (RFC
// 9113 §6.5.2).
TEST_F(H2ClientTest, AFirstHeadAboveTheServersLimitIsAnsweredWith431) {
  routes_.get("/", [] { return text("hello"); });
  server_limits_.h2.field_list_max = 400;
  with_client([](Client& client) -> Task<> {
    const std::string longer = url("/?" + std::string(400, 'x'));
    auto response = co_await client.get(longer);
    EXPECT_TRUE(response);
    if (!response) co_return;
    EXPECT_EQ(response->status(), Status::request_header_fields_too_large);
    EXPECT_TRUE(co_await response->body());
    EXPECT_EQ(client.idle_count(), 1U) << "the connection stays";
    EXPECT_EQ(co_await body_of(client, "/"), "hello");
    const auto second = co_await client.get(longer);
    EXPECT_TRUE(!second && second.error() == Errc::limit_reached) << "the limit is known now";
    EXPECT_EQ(co_await body_of(client, "/"), "hello");
    EXPECT_EQ(client.connection_count(), 1U);
  });
  EXPECT_EQ(server_->counters().connections_accepted.value(), 1U);
}

TEST_F(H2ClientTest, AnIdleConnectionIsClosedInTime) {
  routes_.get("/", [] { return text("text"); });
  with_client([](Client& client) -> Task<> {
    EXPECT_EQ(co_await body_of(client, "/"), "text");
    static_cast<void>(co_await sleep(std::chrono::seconds(3)));
    EXPECT_EQ(client.connection_count(), 1U);
    static_cast<void>(co_await sleep(std::chrono::seconds(2)));
    EXPECT_EQ(client.connection_count(), 0U);
    EXPECT_EQ(client.idle_count(), 0U);
    EXPECT_EQ(co_await body_of(client, "/"), "text");
  });
}

}  // namespace
}  // namespace weir::http::h2_client_test
