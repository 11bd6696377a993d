// Runs the logs example and checks the ids of requests, changes of levels, and the end of the
// log.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "tests/process.hpp"

namespace weir::tests::log_examples_test {
namespace {

Process start(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--listen=127.0.0.1:0", "--runtime.cores=2",
                                     "--runtime.pin=false"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Process::example("logs", arguments);
}

/// Returns the JSON records in the log of a program.
std::vector<nlohmann::json> records(std::string_view text) {
  std::vector<nlohmann::json> records;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with('{')) records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

TEST(LogsExample, RequestsCarryTheirIdsAndNothingIsLostAtTheEnd) {
  constexpr int count = 200;
  Process process = start({"--log.level=debug", "--log.format=json"});
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port.has_value()) << process.errors();
  Client client(*port);
  for (int i = 0; i < count; ++i) {
    const std::string id = i == 0 ? "X-Request-Id: mine\r\n" : "";
    const auto answer = client.exchange("GET /greet/n" + std::to_string(i) +
                                        " HTTP/1.1\r\nHost: localhost\r\n" + id + "\r\n");
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->body, "Hello, n" + std::to_string(i) + "!\n");
  }
  client.close();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  auto all = records(process.errors());
  ASSERT_EQ(all.size(), 1 + 2u * count);
  EXPECT_EQ(all[0].at("message"), "open");
  EXPECT_FALSE(all[0].contains("request"));
  all.erase(all.begin());
  EXPECT_EQ(all[0].at("request"), "mine");
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::string name = "n" + std::to_string(i / 2);
    EXPECT_EQ(all[i].at("message"), "looks for a greeting");
    EXPECT_EQ(all[i].at("level"), "debug");
    EXPECT_EQ(all[i].at("logger"), "store");
    EXPECT_EQ(all[i + 1].at("message"), "greeted");
    EXPECT_EQ(all[i + 1].at("logger"), "http");
    EXPECT_EQ(all[i + 1].at("name"), name);
    EXPECT_EQ(all[i].at("name"), name);
    EXPECT_EQ(all[i].at("request"), all[i + 1].at("request"));
    if (i > 0) {
      EXPECT_NE(all[i].at("request"), all[i - 1].at("request"));
    }
  }
}

TEST(LogsExample, LevelsChangeWhileItRuns) {
  Process process = start({"--log.levels.http=off"});
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port.has_value()) << process.errors();
  EXPECT_TRUE(process.wait_for(" info [-] store: open\n")) << process.errors();
  Client client(*port);
  EXPECT_EQ(client.exchange(get("/greet/quiet"))->status, 200);
  const auto put = client.exchange(
      "PUT /levels/store/trace HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(put) << put.error().message();
  EXPECT_EQ(put->status, 204);
  const auto wrong = client.exchange(
      "PUT /levels/store/loud HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(wrong) << wrong.error().message();
  EXPECT_EQ(wrong->status, 400);
  EXPECT_EQ(client.exchange(get("/greet/traced"))->status, 200);
  EXPECT_TRUE(process.wait_for(" bytes=6\n")) << process.errors();
  client.close();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_FALSE(process.errors().contains("bytes=5")) << process.errors();
  EXPECT_FALSE(process.errors().contains("greeted")) << process.errors();
}

}  // namespace
}  // namespace weir::tests::log_examples_test
