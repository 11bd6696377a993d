// Tests of the id of a request in its response.
#include "weir/web/middleware/request_id.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/web/test/ask.hpp"

namespace weir::http::request_id_test {
namespace {

Router routes() {
  Router router;
  router.trust_id_header("X-Request-Id");
  router.use(request_id());
  router.get("/", [](Request& request) { return text(request.id()); });
  return router;
}

TEST(RequestId, IsThatOfTheHandler) {
  TestClient client(routes());
  const auto first = client.get("/");
  EXPECT_FALSE(first.body().empty());
  EXPECT_EQ(header_of(first, "X-Request-Id"), first.body());
  EXPECT_NE(header_of(client.get("/"), "X-Request-Id"), first.body());
  EXPECT_NE(header_of(client.get("/none"), "X-Request-Id"), "-");
}

TEST(RequestId, IsThatOfATrustedHeader) {
  TestClient client(routes());
  const auto answer = ask(client, Method::get, "/", {{"X-Request-Id", "abc-1"}});
  EXPECT_EQ(answer.body(), "abc-1");
  EXPECT_EQ(header_of(answer, "X-Request-Id"), "abc-1");
  const auto odd = ask(client, Method::get, "/", {{"X-Request-Id", "a\"b"}});
  EXPECT_NE(header_of(odd, "X-Request-Id"), "a\"b");
  EXPECT_NE(header_of(odd, "X-Request-Id"), "-");
}

TEST(RequestId, MayHaveAnotherName) {
  Router router;
  router.use(request_id({.header = "X-Trace"}));
  TestClient client(std::move(router));
  EXPECT_NE(header_of(client.get("/"), "X-Trace"), "-");
}

}  // namespace
}  // namespace weir::http::request_id_test
