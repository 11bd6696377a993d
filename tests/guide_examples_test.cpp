// Tests the examples that only the pages of docs/guide use, on every backend.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/client.hpp"
#include "tests/server.hpp"

namespace weir::tests::guide_examples_test {
namespace {

class ExampleAlbum : public EachBackend {};
class ExampleErrors : public EachBackend {};
class ExampleEvents : public EachBackend {};
class ExampleSharedState : public EachBackend {};
class ExampleFanOut : public EachBackend {};
class ExampleWebService : public EachBackend {};

TEST_P(ExampleFanOut, AnswersWithTheResultsOfBothServices) {
  // The example asks itself, so it must know its port before it listens.
  const os::Address address = free_address();
  const std::string text = address.to_string();
  const std::size_t colon = text.find(':');
  Server server("fan_out", GetParam(),
                {"--address", text.substr(0, colon), "--port", text.substr(colon + 1)});
  Client client(address);
  for (int request = 0; request < 3; ++request) {
    const auto prices = client.exchange(get("/prices"));
    ASSERT_TRUE(prices) << prices.error().message();
    EXPECT_EQ(prices->body, R"([{"shop":"north","cents":250},{"shop":"south","cents":250}])");
  }
}

std::string payment(std::string_view account, std::string_view body) {
  return "POST /accounts/" + std::string(account) +
         "/payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(ExampleFanOutTested, TestsItsService) {
  Process tested = Process::example("fan_out_tested");
  EXPECT_EQ(tested.wait_for_exit(), 0) << tested.output();
  EXPECT_EQ(tested.output(), "passed\n");
}

TEST(ExampleNotesTested, TestsItsService) {
  Process tested = Process::example("notes_tested");
  EXPECT_EQ(tested.wait_for_exit(), 0) << tested.output();
  EXPECT_EQ(tested.output(), "passed\n");
}

TEST_P(ExampleErrors, AnswersFailuresWithTheStatusOfTheirError) {
  Server server("errors", GetParam());
  Client client = server.connect();
  const auto account = client.exchange(get("/accounts/1"));
  ASSERT_TRUE(account) << account.error().message();
  EXPECT_EQ(account->body, R"({"number":1,"cents":100})");
  EXPECT_FALSE(account->has_header("Cache-Control"));

  const auto missing = client.exchange(get("/accounts/7"));
  ASSERT_TRUE(missing) << missing.error().message();
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(missing->header("Cache-Control"), "no-store");

  const auto status = [&](std::string_view number, std::string_view body) {
    const auto answer = client.exchange(payment(number, body));
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(status("7", R"({"cents":1})"), 404);
  EXPECT_EQ(status("1", R"({"cents":0})"), 400);
  EXPECT_EQ(status("1", R"({"cents":900})"), 409);
  EXPECT_EQ(status("1", R"({"cents":70})"), 500);  // there is no folder for receipts
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains(
      "weir: POST /accounts/1/payments: handler failed: No such file or directory\n"))
      << server.process().errors();
}

TEST_P(ExampleErrors, ContinuesAfterAnException) {
  Server server("errors", GetParam());
  Client client = server.connect();
  EXPECT_EQ(client.exchange(get("/broken"))->status, 500);
  EXPECT_EQ(client.exchange(get("/accounts/2"))->status, 200);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains(
      "weir: GET /broken: handler failed: exception: a fault of this program\n"))
      << server.process().errors();
}

TEST_P(ExampleEvents, EveryCoreCountsAllOrders) {
  Server server("events", GetParam());
  for (int order = 0; order < 4; ++order) {
    EXPECT_EQ(server.exchange(post("/orders/3", ""))->status, 202);
  }
  // The requests use several connections, because the kernel chooses their cores.
  for (int count = 0; count < 8; ++count) {
    EXPECT_TRUE(eventually([&] { return server.exchange(get("/orders"))->body == "12 pieces\n"; }));
  }
  EXPECT_TRUE(server.process().wait_for("packed 3\n"));
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ExampleSharedState, IsTheSameOnEveryCore) {
  Server server("shared_state", GetParam());
  // Each request uses a connection of its own, because the kernel chooses its core.
  for (int count = 0; count < 8; ++count) {
    EXPECT_EQ(server.exchange(get("/prices/tea"))->body, R"({"cents":250})");
  }
  EXPECT_EQ(server.exchange(get("/prices/cocoa"))->status, 404);
  EXPECT_EQ(server.exchange(get("/served"))->body, R"({"prices":9})");
  EXPECT_EQ(server.exchange(post("/tickets", ""))->body, R"({"number":2})");
  EXPECT_EQ(server.exchange(post("/tickets", ""))->body, R"({"number":1})");
  EXPECT_EQ(server.exchange(post("/tickets", ""))->status, 409);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

std::string with_header(std::string_view path, std::string_view line) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(line) +
         "\r\n\r\n";
}

TEST_P(ExampleWebService, HasItsMiddleware) {
  Server server("web_service", GetParam());
  Client client = server.connect();
  const auto hello = client.exchange(with_header("/text", "Origin: https://a.example.net"));
  ASSERT_TRUE(hello) << hello.error().message();
  EXPECT_EQ(hello->body, "hello\n");
  EXPECT_EQ(hello->header("Access-Control-Allow-Origin"), "https://a.example.net");
  EXPECT_EQ(hello->header("X-Frame-Options"), "DENY");
  EXPECT_EQ(hello->header("X-Robots-Tag"), "noindex");
  EXPECT_TRUE(hello->has_header("X-Request-Id"));
  const auto known =
      client.exchange(with_header("/text", "If-None-Match: " + hello->header("ETag")));
  EXPECT_EQ(known->status, 304);
  EXPECT_EQ(client.exchange(get("/none"))->status, 404);
  EXPECT_EQ(client.exchange(get("/readyz"))->body, R"({"status":"ok"})");
  EXPECT_EQ(client.exchange(get("/admin/name"))->status, 401);
  EXPECT_EQ(
      client.exchange(with_header("/admin/name", "Authorization: Basic YW5uOnNlY3JldA=="))->body,
      "ann");
  EXPECT_EQ(client.exchange(with_header("/api/name", "Authorization: Bearer t-1"))->body, "robot");
  EXPECT_EQ(client.exchange(get("/notes/owner"))->status, 401);
  EXPECT_EQ(client.exchange("GET /text HTTP/1.1\r\nHost: evil.test\r\n\r\n")->status, 421);
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().output().contains("\"GET /none HTTP/1.1\" 404 "))
      << server.process().output();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleWebService, testing::ValuesIn(all_backends), name_of);
/// Returns a POST with a cookie, and a body of this type.
std::string post_with(std::string_view path, std::string_view cookie, std::string_view type,
                      std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nCookie: " + std::string(cookie) +
         "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST_P(ExampleAlbum, KeepsALoginAndReadsForms) {
  Server server("album", GetParam());
  constexpr std::string_view form = "application/x-www-form-urlencoded";
  const auto wrong = server.exchange(post_with("/login", "a=b", form, "user=ada&password=x"));
  ASSERT_TRUE(wrong) << wrong.error().message();
  EXPECT_EQ(wrong->status, 403);
  const auto login = server.exchange(post_with("/login", "a=b", form, "user=ada&password=secret"));
  EXPECT_EQ(login->body, "welcome\n");
  const std::string set = login->header("Set-Cookie");
  EXPECT_TRUE(set.starts_with("__Host-session=")) << set;
  const std::string cookie = set.substr(0, set.find(';'));
  // Each request uses a connection of its own, because the kernel chooses its core.
  for (int count = 0; count < 4; ++count) {
    EXPECT_EQ(server.exchange(with_header("/login", "Cookie: " + cookie))->body,
              R"({"user":"ada","uploads":0})");
  }
  constexpr std::string_view type = "multipart/form-data; boundary=XX";
  constexpr std::string_view title =
      "--XX\r\nContent-Disposition: form-data; name=title\r\n\r\nSea\r\n--XX--\r\n";
  EXPECT_EQ(server.exchange(post_with("/pictures", cookie, type, title))->body, "[]");
  EXPECT_EQ(server.exchange(post_with("/pictures", "a=b", type, title))->status, 403);
  const std::string_view cut = title.substr(0, title.size() - 8);  // without the last boundary
  EXPECT_EQ(server.exchange(post_with("/pictures", cookie, type, cut))->status, 400);
  EXPECT_EQ(server.exchange(post_with("/logout", cookie, "x/y", ""))->status, 204);
  EXPECT_EQ(server.exchange(with_header("/login", "Cookie: " + cookie))->status, 403);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleAlbum, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleErrors, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleEvents, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleSharedState, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ExampleFanOut, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::guide_examples_test
