#include "weir/web/encoding/decompress_requests.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/compression/detail/turn_work.hpp"
#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/web/forms/multipart.hpp"

namespace weir::http::decompress_requests_test {
namespace {

using compression::available_codings;
using compression::Coding;
using compression::compressed;
using compression::words;

struct Note {
  std::string text;
};

Task<Result<Response>> echo(Request& request) {
  auto body = co_await request.body();
  if (!body) co_return fail(body.error());
  co_return text(std::move(*body));
}

Task<Result<Response>> count(Request& request) {
  std::size_t size = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
    size += piece->size();
  }
  co_return text(std::to_string(size));
}

/// Reads the body and answers with the number of turns that this took.
Task<Result<Response>> count_turns(Request& request) {
  const auto& turns = request.loop()->counters().turns;
  const std::uint64_t before = turns.value();
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
  }
  co_return text(std::to_string(turns.value() - before));
}

Router routes(DecompressRequestLimits limits = {}) {
  Router router;
  router.use(decompress_requests(limits));
  router.post("/echo", echo);
  router.post("/count", count);
  router.post("/turns", count_turns);
  router.post("/twice", [](Request& request) -> Task<Result<Response>> {
    const auto first = co_await request.body_view();
    if (!first) co_return fail(first.error());
    const auto second = co_await request.body_view();
    if (!second) co_return fail(second.error());
    co_return text(std::string(*first) + std::string(*second));
  });
  router.post("/note", [](Json<Note> note) { return text(note->text); });
  router.post("/ignore", [] { return text("ignored"); });
  router.post("/form", [](Multipart form) -> Task<Result<Response>> {
    WEIR_CO_TRY(Part* const part, co_await form.next_part());
    WEIR_CO_TRY(std::string content, co_await part->text(100));
    co_return text(std::move(content));
  });
  return router;
}

TestResponse post(TestClient& client, std::string_view path, std::string_view coding,
                  std::string body) {
  ClientRequest request = client.request(Method::post, path);
  if (!coding.empty()) request.set_header("Content-Encoding", coding);
  request.set_body("application/json", Body(std::move(body)));
  return client.send(std::move(request));
}

TEST(DecompressRequests, GivesTheContentToTheHandler) {
  TestClient client(routes());
  for (const Coding coding : available_codings()) {
    const std::string_view name = name_of(coding);
    EXPECT_EQ(post(client, "/echo", name, compressed(coding, words(100'000))).body(),
              words(100'000));
    EXPECT_EQ(post(client, "/count", name, compressed(coding, words(100'000))).body(), "100000");
    EXPECT_EQ(post(client, "/twice", name, compressed(coding, "ab")).body(), "abab");
    EXPECT_EQ(post(client, "/note", name, compressed(coding, R"({"text":"milk"})")).body(), "milk");
    EXPECT_EQ(post(client, "/ignore", name, compressed(coding, "ab")).body(), "ignored");
    EXPECT_EQ(post(client, "/echo", name, "").body(), "");
  }
  EXPECT_EQ(post(client, "/echo", "X-GZIP", compressed(Coding::gzip, "ab")).body(), "ab");
  EXPECT_EQ(post(client, "/echo", "identity", "ab").body(), "ab");
  EXPECT_EQ(post(client, "/echo", "", "ab").body(), "ab");
}

TEST(DecompressRequests, DecodesABodyOnce) {
  Router router;
  router.use(decompress_requests());
  router.group("/inner", decompress_requests()).post("/echo", echo);
  TestClient client(std::move(router));
  EXPECT_EQ(post(client, "/inner/echo", "gzip", compressed(Coding::gzip, "ab")).body(), "ab");
}

TEST(DecompressRequests, LetsARequestWithoutABodyPass) {
  DecompressRequestLimits limits;
  limits.concurrency_max = 0;
  TestClient client(routes(limits));
  EXPECT_EQ(post(client, "/echo", "gzip", "").status(), 200);
  EXPECT_EQ(post(client, "/echo", "compress", "").status(), 415);
}

TEST(DecompressRequests, GivesFormsWithFilesToTheHandler) {
  TestClient client(routes());
  const std::string form =
      "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\nmilk\r\n--XX--\r\n";
  ClientRequest request = client.request(Method::post, "/form");
  request.set_header("Content-Encoding", "gzip");
  request.set_body("multipart/form-data; boundary=XX", Body(compressed(Coding::gzip, form)));
  EXPECT_EQ(client.send(std::move(request)).body(), "milk");
  TestClient plain([] {
    Router router;
    router.post("/form", [](Multipart) { return no_content(); });
    return router;
  }());
  ClientRequest coded = plain.request(Method::post, "/form");
  coded.set_header("Content-Encoding", "gzip");
  coded.set_body("multipart/form-data; boundary=XX", Body(compressed(Coding::gzip, form)));
  EXPECT_EQ(plain.send(std::move(coded)).status(), 415);
}

TEST(DecompressRequests, RefusesOtherCodings) {
  TestClient client(routes());
  for (const auto* coding : {"compress", "gzip, br", "gzip gzip", "*"}) {
    const auto response = post(client, "/echo", coding, "ab");
    EXPECT_EQ(response.status(), 415) << coding;
    EXPECT_NE(response.header("Accept-Encoding").value_or("").find("gzip"), std::string_view::npos);
  }
  ClientRequest two = client.request(Method::post, "/echo");
  two.add_header("Content-Encoding", "gzip");
  two.add_header("Content-Encoding", "gzip");
  EXPECT_EQ(client.send(std::move(two)).status(), 415);
}

TEST(DecompressRequests, RefusesBombs) {
  DecompressRequestLimits limits;
  limits.body.output_max = 100'000;
  TestClient client(routes(limits));
  for (const Coding coding : available_codings()) {
    for (const auto* path : {"/echo", "/count"}) {
      const std::string bomb = compressed(coding, std::string(10'000'000, 'a'));
      EXPECT_EQ(post(client, path, name_of(coding), bomb).status(), 413);
      const std::string exact = compressed(coding, std::string(100'000, 'a'));
      EXPECT_EQ(post(client, path, name_of(coding), exact).status(), 200);
    }
  }
}

TEST(DecompressRequests, RefusesBrokenContents) {
  TestClient client(routes());
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, words(1000));
    for (const std::string& body :
         {data.substr(0, data.size() - 1), data + "x", std::string("nonsense")}) {
      EXPECT_EQ(post(client, "/echo", name_of(coding), body).status(), 400) << name_of(coding);
    }
  }
}

TEST(DecompressRequests, BoundsTheWorkOfATurn) {
  using compression::TurnWork;
  TestClient client(routes());
  for (const Coding coding : available_codings()) {
    const std::string body = compressed(coding, std::string(1'000'000, 'a'));
    const auto response = post(client, "/turns", name_of(coding), body);
    ASSERT_EQ(response.status(), 200) << response.body();
    EXPECT_GE(std::stoull(std::string(response.body())), 1'000'000 / TurnWork::output_max);
  }
  if (!compression::is_available(Coding::gzip)) return;
  std::string members;  // without output
  while (members.size() < 10 * TurnWork::input_max) members += compressed(Coding::gzip, "");
  const auto response = post(client, "/turns", "gzip", members);
  ASSERT_EQ(response.status(), 200) << response.body();
  EXPECT_GE(std::stoull(std::string(response.body())), 9U);
}

TEST(DecompressRequests, TellsTheServerItsMemory) {
  MemoryPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  DecompressRequestLimits limits;
  limits.body.output_max = 3'000'000;
  const CoreDemands one = decompress_requests(limits).demands(*loop);
  EXPECT_GE(one.core_bytes, limits.concurrency_max * 3'000'000U);
  for (const Coding coding : available_codings()) {
    EXPECT_GE(one.core_bytes,
              limits.concurrency_max * compression::decompressor_bytes_max(coding, limits.body));
  }
  EXPECT_EQ(decompress_requests().demands(*loop).owner, one.owner) << "they share their slots";
  limits.concurrency_max = 10;
  EXPECT_NE(decompress_requests(limits).demands(*loop).owner, one.owner);
}

TEST(DecompressRequests, BoundsTheRequestsOfACore) {
  DecompressRequestLimits limits;
  limits.concurrency_max = 0;
  TestClient client(routes(limits));
  EXPECT_EQ(post(client, "/echo", "gzip", compressed(Coding::gzip, "ab")).status(), 503);
  EXPECT_EQ(post(client, "/echo", "", "ab").status(), 200);
}

}  // namespace
}  // namespace weir::http::decompress_requests_test
