// Tests of entity tags.
#include "weir/web/middleware/etag.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::etag_test {
namespace {

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("streamed");
}

Router routes(EtagOptions options = {}) {
  Router router;
  router.use(etag(options));
  router.get("/a", [] { return text("hello"); });
  router.get("/b", [] { return text("hellp"); });
  router.get("/empty", [] { return text(""); });
  router.post("/a", [] { return text("hello"); });
  router.get("/created", [] { return text("hello", Status::created); });
  router.get("/stream", [] { return stream("text/plain", write_word); });
  router.get("/own", [] {
    Response response = text("own");
    response.set_header("ETag", "\"v7\"");
    response.set_header("Cache-Control", "max-age=60");
    response.set_header("Content-Language", "en");
    return response;
  });
  router.get("/dated", [] {
    Response response = text("dated");
    response.set_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    return response;
  });
  router.get("/own-stream", [] {
    Response response = stream("text/plain", write_word);
    response.set_header("ETag", "\"v8\"");
    return response;
  });
  return router;
}
std::string tag_of(TestClient& client, std::string_view path) {
  return std::string(header_of(client.get(path), "ETag"));
}
int status_with(TestClient& client, std::string_view path, std::string_view tags,
                Method method = Method::get) {
  return code_of(ask(client, method, path, {{"If-None-Match", tags}}).status());
}

TEST(Etag, EvaluatesTheDateOfTheResponse) {
  TestClient client(routes());
  const auto status_since = [&](std::string_view name, std::string_view date) {
    return code_of(ask(client, Method::get, "/dated", {{name, date}}).status());
  };
  EXPECT_EQ(status_since("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"), 304);
  EXPECT_EQ(status_since("If-Modified-Since", "Wed, 31 Dec 2025 23:59:59 GMT"), 200);
  EXPECT_EQ(status_since("If-Unmodified-Since", "Wed, 31 Dec 2025 23:59:59 GMT"), 412);
}

TEST(Etag, IsAHashOfTheBody) {
  TestClient client(routes());
  const std::string tag = tag_of(client, "/a");
  EXPECT_EQ(tag.size(), 36U);
  EXPECT_TRUE(tag.starts_with("W/\""));
  EXPECT_EQ(tag_of(client, "/a"), tag);
  EXPECT_NE(tag_of(client, "/b"), tag);
  EXPECT_EQ(header_of(client.head("/a"), "ETag"), tag);
  TestClient strong(routes({.weak = false}));
  EXPECT_EQ("W/" + tag_of(strong, "/a"), tag);
}

TEST(Etag, AKnownBodyIsNotSentAgain) {
  TestClient client(routes());
  const std::string tag = tag_of(client, "/a");
  for (const Method method : {Method::get, Method::head}) {
    const auto answer = ask(client, method, "/a", {{"If-None-Match", tag}});
    EXPECT_EQ(answer.status(), 304);
    EXPECT_EQ(answer.body(), "");
    EXPECT_EQ(header_of(answer, "ETag"), tag);
    EXPECT_EQ(header_of(answer, "Content-Type"), "-");
  }
  EXPECT_EQ(status_with(client, "/b", tag), 200);
  EXPECT_EQ(status_with(client, "/a", "\"x\", " + tag.substr(2) + " , \"y\""), 304);
  EXPECT_EQ(status_with(client, "/a", "*"), 304);
  EXPECT_EQ(
      code_of(ask(client, Method::get, "/a", {{"If-None-Match", "\"x\""}, {"If-None-Match", tag}})
                  .status()),
      304);
}

TEST(Etag, AMalformedListHasNoTags) {
  TestClient client(routes());
  const std::string tag = tag_of(client, "/a");
  for (const std::string& list :
       {std::string(), std::string("\"x"), "x, " + tag, tag.substr(0, tag.size() - 1),
        tag.substr(3, 32), "w/" + tag.substr(2), std::string("**")}) {
    EXPECT_EQ(status_with(client, "/a", list), 200) << list;
  }
  EXPECT_EQ(status_with(client, "/a", tag + ", x"), 304);
}

TEST(Etag, AHandlerOfHeadNeedNotMakeTheBody) {
  Router router;
  router.use(etag());
  router.get("/x", [] { return text("thirteen byte"); });
  router.head("/x", [] { return Response(Status::ok); });
  TestClient client(std::move(router));
  EXPECT_EQ(header_of(client.head("/x"), "ETag"), "-");
  EXPECT_EQ(ask(client, Method::head, "/x", {{"If-Match", tag_of(client, "/x")}}).status(), 200);
}

TEST(Etag, TheTagOfAHandlerStays) {
  TestClient client(routes());
  const auto answer = ask(client, Method::get, "/own", {{"If-None-Match", "W/\"v7\""}});
  EXPECT_EQ(answer.status(), 304);
  EXPECT_EQ(header_of(answer, "ETag"), "\"v7\"");
  EXPECT_EQ(header_of(answer, "Cache-Control"), "max-age=60");
  EXPECT_EQ(status_with(client, "/own", "\"v8\""), 200);
  EXPECT_EQ(status_with(client, "/own-stream", "\"v8\""), 304);
  EXPECT_EQ(client.get("/own-stream").body(), "streamed");
}

TEST(Etag, AClientMayDemandAVersion) {
  TestClient client(routes());
  const auto status = [&](std::string_view tag) {
    return ask(client, Method::get, "/own", {{"If-Match", tag}}).status();
  };
  EXPECT_EQ(status("\"v7\""), 200);
  EXPECT_EQ(status("\"v8\""), 412);
}

// The middleware outside of it, such as compress(), sees the content of the 200.
TEST(Etag, ContentStaysForTheMiddlewareOutside) {
  struct Seen {
    std::size_t* bytes;
    void after(Request&, Response& response) const { *bytes = response.body().text().size(); }
  };
  std::size_t bytes = 0;
  Router router;
  router.use(Seen{&bytes});
  router.use(etag());
  router.get("/a", [] { return text("hello"); });
  TestClient client(std::move(router));
  const auto answer = ask(client, Method::get, "/a", {{"If-None-Match", "*"}});
  EXPECT_EQ(answer.status(), 304);
  EXPECT_EQ(answer.body(), "");
  EXPECT_EQ(bytes, 5U);
}

Task<Result<>> read_one(WebSocket& socket) {
  const auto message = co_await socket.read();
  co_return message ? Result<>() : fail(message.error());
}

class EtagOverHttp2 : public H2ConnectionFixture, public testing::Test {};

// RFC 8441 §5: an accepted WebSocket is a 200 without content.
TEST_F(EtagOverHttp2, AWebSocketHasNone) {
  routes_.use(etag({.weak = false}));
  routes_.websocket("/ws", read_one);
  routes_.get("/a", [] { return text("hello"); });
  begin();
  const std::string opened = answer(frames::headers(1,
                                                    frames::block({{":method", "CONNECT"},
                                                                   {":protocol", "websocket"},
                                                                   {":scheme", "http"},
                                                                   {":path", "/ws"},
                                                                   {":authority", "a"},
                                                                   {"sec-websocket-version", "13"},
                                                                   {"if-none-match", "*"}}),
                                                    FrameFlag::end_headers));
  EXPECT_NE(opened.find(":status=200"), opened.npos) << opened;
  EXPECT_EQ(opened.find("etag"), opened.npos) << opened;
  EXPECT_NE(answer(frames::get(3, "/a")).find("etag"), std::string::npos);
}

TEST(Etag, OtherResponsesHaveNone) {
  TestClient client(routes());
  EXPECT_EQ(tag_of(client, "/stream"), "-");
  EXPECT_EQ(tag_of(client, "/created"), "-");
  EXPECT_EQ(tag_of(client, "/none"), "-");
  EXPECT_EQ(header_of(client.post("/a", 1), "ETag"), "-");
  EXPECT_EQ(status_with(client, "/stream", "*"), 200);
  EXPECT_NE(tag_of(client, "/empty"), "-");
  TestClient some(routes({.body_bytes_min = 1, .body_bytes_max = 4}));
  EXPECT_EQ(tag_of(some, "/empty"), "-");
  EXPECT_EQ(tag_of(some, "/a"), "-");
}

}  // namespace
}  // namespace weir::http::etag_test
