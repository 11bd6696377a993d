// Tests of the HTTP client against the servers of Python, Node and Go, as far as they are
// installed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tests/process.hpp"
#include "weir/http/client/client.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir::tests::real_servers_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t large_bytes = 8 * 1024 * 1024;

/// Returns the status and the body, or the error.
Task<std::string> answer_to(http::Client& client, http::ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return response.error().message();
  const std::string status = std::to_string(http::code_of(response->status()));
  const auto body = co_await response->body();
  if (!body) co_return status + " " + body.error().message();
  co_return status + " " + *body;
}

Task<std::string> get(http::Client& client, std::string url) {
  return answer_to(client, http::ClientRequest(http::Method::get, url));
}

/// Sends requests of each kind. The server at `origin` has the routes of tests/peers, and closes a
/// connection that is idle for a short time. Node also announces this time.
Task<> ask_everything(std::string origin) {
  http::ClientOptions options;
  options.limits.idle_timeout = 20s;  // the server closes first
  http::Client client(std::move(options));
  for (int request = 0; request < 3; ++request) {
    EXPECT_EQ(co_await get(client, origin + "/hello"), "200 hello");
    EXPECT_EQ(co_await get(client, origin + "/chunked"), "200 onetwothree");
    EXPECT_EQ(co_await get(client, origin + "/nothing"), "204 ");
    http::ClientRequest head(http::Method::head, origin + "/hello");
    EXPECT_EQ(co_await answer_to(client, std::move(head)), "200 ");
    EXPECT_EQ(client.connection_count(), 1U) << "all requests use one connection";
    EXPECT_EQ(client.idle_count(), 1U);
  }
  EXPECT_EQ((co_await get(client, origin + "/large")).size(), large_bytes + 4);
  EXPECT_EQ((co_await get(client, origin + "/none")).substr(0, 3), "404");

  http::ClientRequest post(http::Method::post, origin + "/echo");
  post.set_body("text/plain", http::Body(http::Literal("a body")));
  post.set_header("Expect", "100-continue");
  EXPECT_EQ(co_await answer_to(client, std::move(post)), "200 a body");
  http::ClientRequest long_post(http::Method::post, origin + "/echo");
  long_post.set_body("text/plain", http::Body(std::string(large_bytes, 'x')));
  EXPECT_EQ((co_await answer_to(client, std::move(long_post))).size(), large_bytes + 4);
  const auto write = [](http::BodySink& sink) -> Task<Result<>> {
    for (int piece = 0; piece < 100; ++piece) {
      const auto written = co_await sink.write("piece\n");
      if (!written) co_return written;
    }
    co_return {};
  };
  http::ClientRequest streamed(http::Method::post, origin + "/echo");
  streamed.set_body("text/plain", http::Body(http::StreamFunction(write)));
  EXPECT_EQ((co_await answer_to(client, std::move(streamed))).size(), 600U + 4);

  EXPECT_EQ(co_await get(client, origin + "/close"), "200 closing");
  EXPECT_EQ(client.connection_count(), 0U);
  EXPECT_EQ(co_await get(client, origin + "/hello"), "200 hello");
  EXPECT_EQ(client.idle_count(), 1U);
  for (int waited = 0; client.idle_count() > 0 && waited < 300; ++waited) {
    static_cast<void>(co_await sleep(100ms));
  }
  EXPECT_EQ(client.connection_count(), 0U) << "the timeout of the server has ended";
  http::ClientRequest after(http::Method::post, origin + "/echo");
  after.set_body("text/plain", http::Body(http::Literal("after")));
  EXPECT_EQ(co_await answer_to(client, std::move(after)), "200 after");
}

void ask_server(Process& server) {
  const auto port = server.wait_for_port();
  ASSERT_TRUE(port) << server.errors();
  const std::string origin = "http://127.0.0.1:" + std::to_string(*port);
  const int status = Runtime({.cores = 1, .announce = false}).run_on_each_core([&](Scope&) {
    return ask_everything(origin);
  });
  EXPECT_EQ(status, 0);
}

const std::filesystem::path peers = std::filesystem::path(WEIR_TEST_DATA_DIR) / "../peers";

TEST(RealServers, PythonAnswersTheClient) {
  const std::string python = in_path("python3");
  if (python.empty()) GTEST_SKIP() << "there is no python3";
  Process server(python, {(peers / "server.py").string()});
  ask_server(server);
}

TEST(RealServers, NodeAnswersTheClient) {
  const std::string node = in_path("node");
  if (node.empty()) GTEST_SKIP() << "there is no node";
  Process server(node, {(peers / "server.js").string()});
  ask_server(server);
}

TEST(RealServers, GoAnswersTheClient) {
  const std::string go = in_path("go");
  if (go.empty()) GTEST_SKIP() << "there is no go";
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("weir-go-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string program = (folder / "server").string();
  Process build(go, {"build", "-o", program, (peers / "server.go").string()});
  if (build.wait_for_exit(3 * default_timeout) != 0) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "go cannot build here: " << build.errors();
  }
  {
    Process server(program);
    ask_server(server);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::tests::real_servers_test
