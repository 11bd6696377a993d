// Runs `weir serve` and the example `site` on a real folder: content, paths that try to leave it,
// and the access log.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/client.hpp"
#include "tests/process.hpp"
#include "tests/server.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests::serve_tool_test {
namespace {

std::string mixed_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& each : bytes) {
    state = state * 1664525 + 1013904223;
    each = static_cast<char>(state >> 24);
  }
  return bytes;
}

Response ask(Client& client, const std::string& text) {
  auto answer = client.exchange(text);
  EXPECT_TRUE(answer) << text << answer.error().message();
  return answer ? std::move(*answer) : Response();
}

class ServeTool : public EachBackend {
 protected:
  void SetUp() override {
    EachBackend::SetUp();
    tree_.write("www/index.html", "home");
    tree_.write("www/a.txt", "hello");
    tree_.write("www/.hidden", "hidden");
    tree_.write("www/sub/b.txt", "b");
    tree_.write("secret.txt", "secret");
    namespace fs = std::filesystem;
    fs::create_symlink("../secret.txt", tree_.path("www/out.txt"));
    fs::create_symlink(tree_.path("secret.txt"), tree_.path("www/absolute.txt"));
    fs::create_symlink("../secret.txt", tree_.path("www/a.txt.gz"));
    fs::create_symlink("..", tree_.path("www/up"));
  }
  Process start(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"serve", tree_.path("www"), "--port", "0", "--cores", "1",
                               "--backend", std::string(GetParam().option)});
    return Process(WEIR_TOOL_PROGRAM, more);
  }

  os::TemporaryTree tree_;
};

std::string request(std::string_view target, std::string_view lines = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) +
         "\r\n";
}

TEST_P(ServeTool, ServesFilesAndLogsRequests) {
  const std::string large = mixed_bytes(3'000'001);
  tree_.write("www/large.bin", large);
  Process tool = start();
  const auto port = tool.wait_for_port();
  ASSERT_TRUE(port) << tool.errors();
  Client client(*port);
  EXPECT_EQ(ask(client, request("/")).body, "home");
  EXPECT_EQ(ask(client, request("/a.txt")).body, "hello");
  const Response whole = ask(client, request("/large.bin"));
  EXPECT_TRUE(whole.body == large);
  const Response part = ask(client, request("/large.bin", "Range: bytes=100-2000099\r\n"));
  EXPECT_EQ(part.status, 206);
  EXPECT_TRUE(part.body == large.substr(100, 2'000'000));
  const std::string known = "If-None-Match: " + whole.header("ETag") + "\r\n";
  EXPECT_EQ(ask(client, request("/large.bin", known)).status, 304);
  EXPECT_EQ(ask(client, request("/sub/")).status, 404);
  EXPECT_TRUE(tool.wait_for("\"GET /sub/ HTTP/1.1\" 404 "));
  for (const auto* line : {"\"GET /a.txt HTTP/1.1\" 200 5\n", "large.bin HTTP/1.1\" 200 3000001\n",
                           "large.bin HTTP/1.1\" 206 2000000\n"}) {
    EXPECT_NE(tool.output().find(line), std::string::npos) << line;
  }
  EXPECT_NE(tool.output().find("127.0.0.1 - - ["), std::string::npos);
  tool.signal(SIGTERM);
  EXPECT_EQ(tool.wait_for_exit(), 0) << tool.errors();
}

TEST_P(ServeTool, NeverServesAFileOutsideOfTheFolder) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{},
        {"--follow-links", "--dotfiles", "--listing", "--precompressed"}}) {
    Process tool = start(options);
    const auto port = tool.wait_for_port();
    ASSERT_TRUE(port) << tool.errors();
    for (const std::string target : {"/../secret.txt",
                                     "/..%2fsecret.txt",
                                     "/..%2Fsecret.txt",
                                     "/%2e%2e/secret.txt",
                                     "/%2e%2e%2fsecret.txt",
                                     "/.%2e/secret.txt",
                                     "/sub/../../secret.txt",
                                     "/..%5csecret.txt",
                                     "/%5c..%5csecret.txt",
                                     "/..\\secret.txt",
                                     "/%252e%252e/secret.txt",
                                     "/%252e%252e%252fsecret.txt",
                                     "/a.txt%00",
                                     "/%00",
                                     "//secret.txt",
                                     "/sub//b.txt",
                                     "/out.txt",
                                     "/absolute.txt",
                                     "/up/secret.txt",
                                     "/up/",
                                     "/up",
                                     "/a.txt/../secret.txt",
                                     "/%c0%ae%c0%ae/secret.txt",
                                     "/..;/secret.txt",
                                     "/sub/%2e%2e/%2e%2e/secret.txt"}) {
      Client client(*port);
      const Response answer = ask(client, request(target));
      EXPECT_TRUE(answer.status == 404 || answer.status == 400) << target << " " << answer.status;
      EXPECT_EQ(answer.body.find("secret\n"), answer.body.npos) << target;
    }
    Client client(*port);
    const Response zipped = ask(client, request("/a.txt", "Accept-Encoding: gzip\r\n"));
    EXPECT_EQ(zipped.body, "hello") << "the neighbour is a link out of the folder";
    EXPECT_EQ(ask(client, request("/.hidden")).status, options.empty() ? 404 : 200);
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait_for_exit(), 0) << tool.errors();
  }
}

TEST_P(ServeTool, HasOptionsForPagesAndTls) {
  tree_.write("www/large.bin", mixed_bytes(300'001));
  Process listing = start({"--listing"});
  auto port = listing.wait_for_port();
  ASSERT_TRUE(port) << listing.errors();
  Client client(*port);
  EXPECT_NE(ask(client, request("/sub/")).body.find("b.txt"), std::string::npos);
  Process spa = start({"--spa"});
  port = spa.wait_for_port();
  ASSERT_TRUE(port) << spa.errors();
  Client other(*port);
  EXPECT_EQ(ask(other, request("/users/7")).body, "home");
  EXPECT_EQ(ask(other, request("/none.js")).status, 404);
  Process secure = start({"--tls-self-signed"});
  port = secure.wait_for_port();
  ASSERT_TRUE(port) << secure.errors();
  for (const auto& [path, size] : {std::pair("/a.txt", 5), std::pair("/large.bin", 300'001)}) {
    Process check(WEIR_TOOL_PROGRAM,
                  {"bench", "https://127.0.0.1:" + std::to_string(*port) + path, "--requests", "20",
                   "--connections", "2", "--body-bytes", std::to_string(size)});
    EXPECT_EQ(check.wait_for_exit(), 0) << check.output() << check.errors();
  }
}

// A file NAME.gz in any folder need not have the content of NAME.
TEST_P(ServeTool, SendsPrecompressedNeighboursByOption) {
  tree_.write("www/b.js", "plain");
  tree_.write("www/b.js.gz", "zipped");
  const auto answer = [&](std::vector<std::string> options) {
    Process tool = start(std::move(options));
    const auto port = tool.wait_for_port();
    EXPECT_TRUE(port) << tool.errors();
    if (!port) return std::string();
    Client client(*port);
    return ask(client, request("/b.js", "Accept-Encoding: gzip\r\n")).body;
  };
  EXPECT_EQ(answer({}), "plain");
  EXPECT_EQ(answer({"--precompressed"}), "zipped");
}

TEST_P(ServeTool, ListensOnLoopbackUnlessItHasAnAddress) {
  Process tool = start();
  const auto port = tool.wait_for_port();
  ASSERT_TRUE(port) << tool.errors();
  EXPECT_TRUE(tool.wait_for("listening on 127.0.0.1:" + std::to_string(*port)));
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--address", "127.0.0.2"}, {"--address=127.0.0.2"}}) {
    Process other = start(options);
    EXPECT_TRUE(other.wait_for("listening on 127.0.0.2:")) << other.errors();
  }
}

// A name of another site that leads to this machine must not make a page of that site read files.
TEST_P(ServeTool, AnswersForItsHostsOnly) {
  const auto status = [](std::uint16_t port, const std::string& host) {
    Client client(port);
    const Response answer = ask(client, "GET /a.txt HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff") << host;
    EXPECT_EQ(answer.header("Content-Security-Policy"), "") << "the site has its own";
    return answer.status;
  };
  Process tool = start({"--host", "site.example", "--host", "*.other.example"});
  auto port = tool.wait_for_port();
  ASSERT_TRUE(port) << tool.errors();
  for (const auto* host : {"localhost", "localhost:8080", "127.0.0.1", "[::1]:80", "site.example",
                           "a.other.example"}) {
    EXPECT_EQ(status(*port, host), 200) << host;
  }
  for (const auto* host : {"evil.example", "localhost.evil.example", "other.example", "10.1.2.3",
                           "0.0.0.0", "[::]", "[::ffff:127.0.0.1]"}) {
    EXPECT_EQ(status(*port, host), 421) << host;
  }
  Process anywhere = start({"--address", "0.0.0.0"});
  port = anywhere.wait_for_port();
  ASSERT_TRUE(port) << anywhere.errors();
  EXPECT_EQ(status(*port, "10.1.2.3"), 200);
  EXPECT_EQ(status(*port, "0.0.0.0"), 421);
  Process open = start({"--any-host"});
  port = open.wait_for_port();
  ASSERT_TRUE(port) << open.errors();
  EXPECT_EQ(status(*port, "evil.example"), 200);
}

TEST_P(ServeTool, SpeaksHttp2OnPlainConnectionsByOption) {
  using namespace std::string_view_literals;
  Process tool = start({"--http2-plain"});
  const auto port = tool.wait_for_port();
  ASSERT_TRUE(port) << tool.errors();
  Client client(*port);
  ASSERT_TRUE(client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv));
  client.finish_sending();
  const std::string answer = client.read_to_end().value_or("");
  EXPECT_TRUE(answer.size() >= 9 && answer[3] == 4) << "SETTINGS";
}

class ExampleSite : public ServeTool {};

TEST_P(ExampleSite, ServesPagesAndAnAnswerWithAVersion) {
  tree_.write("www/assets/a.gpx", "track");
  tree_.write("www/assets/a.gpx.br", "brotli");
  Server server("site", GetParam(), {tree_.path("www")});
  Client client(server.port());
  EXPECT_EQ(ask(client, request("/")).header("Cache-Control"), "no-cache");
  const Response plain = ask(client, request("/assets/a.gpx"));
  EXPECT_EQ(plain.header("Content-Type"), "application/gpx+xml");
  EXPECT_EQ(plain.header("Cache-Control"), "public, max-age=31536000, immutable");
  const Response packed = ask(client, request("/assets/a.gpx", "Accept-Encoding: br\r\n"));
  EXPECT_EQ(packed.body, "brotli");
  const Response settings = ask(client, request("/api/settings"));
  EXPECT_EQ(settings.body, "dark\n");
  const std::string known = "If-None-Match: " + settings.header("ETag") + "\r\n";
  EXPECT_EQ(ask(client, request("/api/settings", known)).status, 304);
  EXPECT_EQ(ask(client, request("/api/settings", "If-Match: \"other\"\r\n")).status, 412);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleSite, testing::ValuesIn(all_backends), name_of);
INSTANTIATE_TEST_SUITE_P(On, ServeTool, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::serve_tool_test
