#include "weir/web/encoding/compress.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::http::compress_test {
namespace {

using namespace std::chrono_literals;
using compression::available_codings;
using compression::Coding;
using compression::decompressed;
using compression::noise;
using compression::words;

constexpr std::size_t size = 10'000;

Response json_text(std::size_t bytes = size) {
  return {Status::ok, json_type, Body(words(bytes))};
}

Task<Result<>> write_pieces(BodySink& sink, std::size_t count, std::size_t bytes) {
  for (std::size_t index = 0; index < count; ++index) {
    const std::string piece = words(bytes, static_cast<unsigned>(index));
    if (auto sent = co_await sink.write(piece); !sent) co_return sent;
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
  }
  co_return sink.add_trailer("X-Count", std::to_string(count));
}

/// Returns the routes behind the middleware.
Router routes(CompressOptions options = CompressOptions()) {
  Router router;
  router.use(compress(std::move(options)));
  router.get("/json", [] { return json_text(); });
  router.get("/small", [] { return json_text(1023); });
  router.get("/border", [] { return json_text(1024); });
  router.get("/noise", [] { return Response(Status::ok, json_type, Body(noise(size))); });
  router.get("/large", [] { return json_text(300'000); });
  router.get("/image", [] { return Response(Status::ok, "image/png", Body(words(size))); });
  router.get("/events", [] {
    return stream("text/event-stream", [](BodySink& sink) { return write_pieces(sink, 2, 2000); });
  });
  router.get("/stream", [] {
    return stream(text_type, [](BodySink& sink) { return write_pieces(sink, 3, 2000); });
  });
  return router;
}

TestResponse ask(TestClient& client, std::string_view path, std::string_view accepted,
                 Method method = Method::get) {
  ClientRequest request = client.request(method, path);
  if (!accepted.empty()) request.set_header("Accept-Encoding", accepted);
  return client.send(std::move(request));
}

std::string header(const TestResponse& response, std::string_view name) {
  return std::string(response.header(name).value_or("-"));
}

TEST(Compress, SendsEachCoding) {
  TestClient client(routes());
  for (const Coding coding : {Coding::gzip, Coding::brotli, Coding::zstd}) {
    if (!is_available(coding)) continue;
    for (const auto* path : {"/json", "/large"}) {
      const auto response = ask(client, path, name_of(coding));
      EXPECT_EQ(response.status(), 200);
      EXPECT_EQ(header(response, "Content-Encoding"), name_of(coding));
      EXPECT_EQ(header(response, "Vary"), "Accept-Encoding");
      const bool whole = std::string_view(path) == "/json";
      EXPECT_EQ(header(response, "Content-Length"),
                whole ? std::to_string(response.body().size()) : "-");
      EXPECT_LT(response.body().size(), whole ? size / 2 : 150'000u);
      EXPECT_EQ(decompressed(coding, response.body()), words(whole ? size : 300'000));
    }
  }
}

TEST(Compress, SendsTheIdentityToOtherClients) {
  TestClient client(routes());
  for (const auto* accepted : {"", "identity", "deflate", "gzip;q=0", "gzip;q=nonsense"}) {
    const auto response = ask(client, "/json", accepted);
    EXPECT_EQ(header(response, "Content-Encoding"), "-") << accepted;
    EXPECT_EQ(header(response, "Vary"), "Accept-Encoding");
    EXPECT_EQ(response.body(), words(size));
  }
}

TEST(Compress, DisregardsAHeaderThatAcceptsNothing) {
  TestClient client(routes());
  for (const auto* accepted : {"identity;q=0, compress", "*;q=0"}) {
    const auto response = ask(client, "/json", accepted);
    EXPECT_EQ(response.status(), 200) << accepted;
    EXPECT_EQ(header(response, "Content-Encoding"), "-");
    EXPECT_EQ(header(response, "Vary"), "Accept-Encoding");
    EXPECT_EQ(response.body(), words(size));
    EXPECT_EQ(ask(client, "/none", accepted).status(), 404);
  }
}

TEST(Compress, LeavesOtherResponsesAlone) {
  TestClient client(routes());
  for (const auto* path : {"/small", "/image", "/events"}) {
    const auto response = ask(client, path, "gzip");
    EXPECT_EQ(header(response, "Content-Encoding"), "-") << path;
    EXPECT_EQ(header(response, "Vary"), "-") << path;
  }
  EXPECT_EQ(header(ask(client, "/border", "gzip"), "Content-Encoding"), "gzip");
}

// The head alone decides, so that HEAD and 304 have the fields of the 200.
TEST(Compress, SendsACodingThatMakesTheBodyNoSmaller) {
  TestClient client(routes());
  const auto noisy = ask(client, "/noise", "gzip");
  EXPECT_EQ(header(noisy, "Content-Encoding"), "gzip");
  EXPECT_EQ(decompressed(Coding::gzip, noisy.body()), noise(size));
  EXPECT_LT(noisy.body().size(), size + 64);
}

/// A response as that of a proxy, which knows only the length of what HEAD announces.
Response respond_like_a_proxy(const Request& request) {
  Response response(Status::ok, json_type, Body(noise(3000)));
  if (request.method() == Method::head) {
    response.body() =
        Body(StreamFunction([](BodySink&) -> Task<Result<>> { co_return Result<>(); }), 3000);
  }
  response.add_header("ETag", "\"1\"");
  return response;
}

TEST(Compress, HasTheHeadersOfGetForAHeadThatIsAnnounced) {
  Router router;
  router.use(compress());
  router.get("/any", respond_like_a_proxy);
  TestClient client(std::move(router));
  const auto got = ask(client, "/any", "gzip");
  const auto head = ask(client, "/any", "gzip", Method::head);
  for (const auto* name : {"Content-Encoding", "ETag", "Vary"}) {
    EXPECT_EQ(header(head, name), header(got, name)) << name;
  }
  EXPECT_EQ(header(head, "Content-Length"), "-");
}

TEST(Compress, HasTheHeadersOfGetForHead) {
  TestClient client(routes());
  for (const auto* path : {"/json", "/large", "/small", "/stream"}) {
    const auto got = ask(client, path, "gzip");
    const auto head = ask(client, path, "gzip", Method::head);
    EXPECT_EQ(head.body(), "");
    for (const auto* name : {"Content-Encoding", "Vary", "Content-Type"}) {
      EXPECT_EQ(header(head, name), header(got, name)) << path << ' ' << name;
    }
    const bool is_encoded = header(got, "Content-Encoding") != "-";
    EXPECT_EQ(header(head, "Content-Length"), is_encoded ? "-" : header(got, "Content-Length"));
  }
}

/// Returns a response with the header that the query names.
Response respond_with_header(const Request& request) {
  Response response = json_text();
  response.set_header(request.query("name").value(), request.query("value").value());
  return response;
}

class CompressWithHeader : public testing::Test {
 protected:
  CompressWithHeader() : client_(routes_with_header()) {}
  static Router routes_with_header() {
    Router router;
    router.use(compress());
    router.get("/given", respond_with_header);
    return router;
  }
  TestResponse ask_with(std::string_view name, std::string_view value) {
    std::string path = "/given?name=";
    path.append(name).append("&value=").append(value);
    return ask(client_, path, "gzip");
  }

  TestClient client_;
};

TEST_F(CompressWithHeader, MergesVary) {
  EXPECT_EQ(header(ask_with("Vary", "Origin"), "Vary"), "Origin, Accept-Encoding");
  EXPECT_EQ(header(ask_with("vary", "*"), "Vary"), "*");
  EXPECT_EQ(header(ask_with("Vary", "origin,+accept-encoding"), "Vary"), "origin, accept-encoding");
}

TEST_F(CompressWithHeader, LeavesOtherRepresentationsAlone) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"Content-Encoding", "br"},
      {"Content-Range", "bytes+0-9999/20000"},
      {"Cache-Control", "max-age=5,+No-Transform"},
      {"Content-Digest", "sha-256=:AA==:"},
      {"Repr-Digest", "sha-256=:AA==:"},
      {"Digest", "sha-256=AA=="},
      {"Content-MD5", "AA=="},
      {"Content-Type", "image/png"}};
  for (const auto& [name, value] : cases) {
    const auto response = ask_with(name, value);
    EXPECT_EQ(response.body(), words(size)) << name;
    EXPECT_EQ(header(response, "Vary"), "-");
  }
  EXPECT_NE(ask_with("Cache-Control", "no-transformation").body(), words(size));
}

TestResponse ask_if_none_match(TestClient& client, std::string_view path, std::string_view known) {
  ClientRequest request = client.request(Method::get, path);
  request.set_header("Accept-Encoding", "gzip");
  request.set_header("If-None-Match", known);
  return client.send(std::move(request));
}

/// Returns the ETag of a response to a request with these headers, or its status if it has none.
std::string tag_of(TestClient& client, std::string_view path, std::string_view accepted,
                   std::string_view known, Method method = Method::get) {
  ClientRequest request = client.request(method, path);
  if (!accepted.empty()) request.set_header("Accept-Encoding", accepted);
  if (!known.empty()) request.set_header("If-None-Match", known);
  const TestResponse response = client.send(std::move(request));
  EXPECT_EQ(response.status(), known.empty() ? 200 : 304) << path;
  return header(response, "ETag");
}

/// A filter that answers 304 in place of a response whose tag the request knows, with its
/// content or without.
struct KnownTag {
  bool keeps_content;
  void after(Request& request, Response& response) const {
    if (!request.header("If-None-Match")) return;
    const std::string tag(*response.headers().get("ETag"));
    if (!keeps_content) response = Response(Status::not_modified);
    response.set_status(Status::not_modified);
    response.set_header("ETag", tag);
  }
};

/// Returns a handler whose responses have a strong tag.
auto tagged(MediaType type, std::size_t bytes) {
  return [type, bytes] {
    Response response(Status::ok, type, Body(words(bytes)));
    response.add_header("ETag", "\"1\"");
    return response;
  };
}

Router tagged_routes(bool keeps_content) {
  Router router;
  router.use(compress());
  router.use(KnownTag{keeps_content});
  router.get("/json", tagged(json_type, size));
  router.get("/small", tagged(json_type, 100));
  router.get("/image", tagged("image/png", size));
  return router;
}

// RFC 9110 §15.4.5: a 304 has the ETag that the 200 would have had.
TEST(Compress, GivesA304TheEtagOfThe200) {
  TestClient client(tagged_routes(true));
  for (const Method method : {Method::get, Method::head}) {
    for (const auto* known : {"W/\"1\"", "\"1\"", "*"}) {
      EXPECT_EQ(tag_of(client, "/json", "gzip", "", method), "W/\"1\"");
      EXPECT_EQ(tag_of(client, "/json", "gzip", known, method), "W/\"1\"") << known;
      EXPECT_EQ(tag_of(client, "/json", "", known, method), "\"1\"") << known;
      EXPECT_EQ(tag_of(client, "/json", "gzip;q=0", known, method), "\"1\"") << known;
    }
  }
}

TEST(Compress, LeavesA304OfAnIncompressible200Alone) {
  TestClient client(tagged_routes(true));
  for (const auto* path : {"/small", "/image"}) {
    EXPECT_EQ(tag_of(client, path, "gzip", ""), "\"1\"") << path;
    EXPECT_EQ(tag_of(client, path, "gzip", "\"1\""), "\"1\"") << path;
  }
}

TEST(Compress, BelievesTheClientAboutA304WithoutContent) {
  TestClient client(tagged_routes(false));
  for (const auto* path : {"/json", "/small", "/image"}) {
    for (const auto* strong : {"\"1\"", "W/\"1\", \"1\"", "W/\"2\", \"1\"", "*"}) {
      const auto response = ask_if_none_match(client, path, strong);
      EXPECT_EQ(header(response, "ETag"), "\"1\"") << path << strong;
      EXPECT_EQ(header(response, "Vary"), "-") << path << strong;
    }
    const auto response = ask_if_none_match(client, path, "\"0\", W/\"1\"");
    EXPECT_EQ(header(response, "ETag"), "W/\"1\"") << path;
    EXPECT_EQ(header(response, "Vary"), "Accept-Encoding") << path;
  }
}

TEST_F(CompressWithHeader, OffersNoRangesOfACodedResponse) {
  EXPECT_EQ(header(ask_with("Accept-Ranges", "bytes"), "Accept-Ranges"), "none");
}

// RFC 9110 §15.3.7: a 206 has the Vary of its 200.
TEST(Compress, AddsOnlyVaryToAPartOfARepresentation) {
  Router router;
  router.use(compress());
  const auto part = [](MediaType type, std::string_view range) {
    return [type, range] {
      Response response(Status::partial_content, type, Body(words(size)));
      response.add_header("Content-Range", range);
      response.add_header("ETag", "\"1\"");
      return response;
    };
  };
  router.get("/text", part(json_type, "bytes 0-9999/20000"));
  router.get("/unknown", part(json_type, "bytes 0-9999/*"));
  router.get("/small", part(json_type, "bytes 0-9/1023"));
  router.get("/parts", part("multipart/byteranges; boundary=a", ""));
  router.get("/image", part("image/png", "bytes 0-9999/20000"));
  TestClient client(std::move(router));
  for (const std::string_view path : {"/text", "/unknown", "/parts", "/small", "/image"}) {
    const auto response = ask(client, path, "gzip");
    EXPECT_EQ(response.body(), words(size));
    EXPECT_EQ(header(response, "Content-Encoding"), "-");
    EXPECT_EQ(header(response, "ETag"), "\"1\"");
    const bool varies = path != "/small" && path != "/image";
    EXPECT_EQ(header(response, "Vary"), varies ? "Accept-Encoding" : "-") << path;
  }
}

TEST(Compress, MakesAStrongEtagWeak) {
  Router router;
  router.use(compress());
  router.get("/strong", [] {
    Response response = json_text();
    response.add_header("ETag", "\"1\"");
    return response;
  });
  router.get("/weak", [] {
    Response response = json_text();
    response.add_header("ETag", "W/\"1\"");
    return response;
  });
  TestClient client(std::move(router));
  EXPECT_EQ(header(ask(client, "/strong", "gzip"), "ETag"), "W/\"1\"");
  EXPECT_EQ(header(ask(client, "/strong", ""), "ETag"), "\"1\"");
  EXPECT_EQ(header(ask(client, "/weak", "gzip"), "ETag"), "W/\"1\"");
}

TEST(Compress, IsOffForMarkedResponsesAndGroups) {
  Router router;
  router.use(compress());
  router.get("/marked", [](Request& request) {
    request.set(NoCompression());
    return json_text();
  });
  router.group("/secret", no_compression).get("/page", [] { return json_text(); });
  TestClient client(std::move(router));
  for (const auto* path : {"/marked", "/secret/page"}) {
    const auto response = ask(client, path, "gzip");
    EXPECT_EQ(header(response, "Content-Encoding"), "-") << path;
    EXPECT_EQ(response.body(), words(size));
  }
}

TEST(Compress, KeepsTheLengthAndTheTrailersOfAStream) {
  Router router;
  router.use(compress());
  router.get("/short", [] {
    StreamOptions options;
    options.length = 5000;
    return stream(text_type, options, [](BodySink& sink) { return write_pieces(sink, 2, 2000); });
  });
  router.get("/exact", [] {
    StreamOptions options;
    options.length = 4000;
    return stream(text_type, options, [](BodySink& sink) { return write_pieces(sink, 2, 2000); });
  });
  TestClient client(std::move(router));
  const auto response = ask(client, "/exact", "gzip");
  EXPECT_EQ(decompressed(Coding::gzip, response.body()), words(2000, 0) + words(2000, 1));
  EXPECT_EQ(response.trailers().get("X-Count"), "2");
  EXPECT_THROW(ask(client, "/short", "gzip"), std::runtime_error);
}

TEST(Compress, SendsTheIdentityWithoutAFreeCompressor) {
  CompressOptions options;
  options.streams_max = 0;
  TestClient client(routes(std::move(options)));
  const auto response = ask(client, "/large", "gzip");
  EXPECT_EQ(header(response, "Content-Encoding"), "-");
  EXPECT_EQ(header(response, "Vary"), "Accept-Encoding");
  EXPECT_EQ(response.body(), words(300'000));
  EXPECT_EQ(header(ask(client, "/json", "gzip"), "Content-Encoding"), "gzip");
}

TEST(Compress, LeavesOutCodingsThatDoNotExist) {
  CompressOptions options;
  options.codings = {{Coding::identity, 1}, {Coding::zstd, 77}, {Coding::gzip, 6}};
  TestClient client(routes(std::move(options)));
  EXPECT_EQ(header(ask(client, "/json", "zstd, gzip"), "Content-Encoding"), "gzip");
}

TEST(Compress, StatesItsMemory) {
  CompressOptions options;
  options.codings = {{Coding::gzip, 1}};
  options.streams_max = 10;
  const std::size_t one = compression::compressor_bytes_max({Coding::gzip, 1});
  EXPECT_GE(compress_bytes_max(options), 18 * one);
  options.streams_max = 20;
  EXPECT_GE(compress_bytes_max(options), 28 * one);
  options.codings.push_back({Coding::brotli, 11});
  if (is_available(Coding::brotli)) {
    EXPECT_GE(compress_bytes_max(options),
              28 * compression::compressor_bytes_max({Coding::brotli, 11}));
  }
}

TEST(Compress, TellsTheServerItsMemory) {
  MemoryPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  const CoreDemands one = compress().demands(*loop);
  EXPECT_EQ(one.core_bytes, compress_bytes_max(CompressOptions()));
  EXPECT_NE(one.owner, nullptr);
  EXPECT_EQ(compress().demands(*loop).owner, one.owner) << "they share the compressors of a core";
}

TEST(CompressibleType, IsTrueForTexts) {
  for (const auto* type : {"text/html", "application/json", "application/problem+json",
                           "image/svg+xml", "application/wasm", "font/ttf"}) {
    EXPECT_TRUE(is_compressible_type(type)) << type;
  }
  for (const auto* type : {"text/event-stream", "image/png", "video/mp4", "application/zip",
                           "font/woff2", "", "application/octet-stream"}) {
    EXPECT_FALSE(is_compressible_type(type)) << type;
  }
}

}  // namespace
}  // namespace weir::http::compress_test
