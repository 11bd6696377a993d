// Tests of generated requests: each kind appears, is well formed, and names its own response.
#include "weir/http_testing/detail/http_request.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "weir/sim/test/tiny_http_server.hpp"

namespace weir::sim::http_request_test {
namespace {

constexpr int draws = 4000;

/// Parses a request that a server must understand.
TinyRequest parsed(const HttpRequest& request) {
  std::string text = request.text;
  bool expects_continue = false;
  const std::optional<TinyRequest> taken = take_request(text, expects_continue);
  EXPECT_TRUE(taken) << request.text;
  EXPECT_EQ(text, "") << "more than one request: " << request.text;
  return taken.value_or(TinyRequest());
}

TEST(HttpRequestTest, EachOneExpectsTheResponseOfItsResource) {
  Random random(1);
  std::map<std::string, int> seen;
  for (int draw = 0; draw < draws; ++draw) {
    const auto id = static_cast<std::size_t>(draw % 12);
    const HttpRequest request = random_http_request(random, id, false);
    EXPECT_FALSE(request.closes_connection) << "it is not the last one";
    const TinyRequest server = parsed(request);
    EXPECT_EQ(server.status, 200);
    EXPECT_FALSE(server.closes);
    EXPECT_EQ(server.method, request.method);
    EXPECT_EQ(server.path[1], std::to_string(id));
    ++seen[server.method + " " + server.path[0]];
    const std::optional<std::string> body = tiny_body(server);
    EXPECT_EQ(request.status, body ? 200 : 404);
    EXPECT_EQ(request.body, request.method == "HEAD" ? "" : body.value_or(""));
  }
  EXPECT_EQ(seen.size(), 7U);
  for (const char* const one :
       {"GET slow", "GET pool", "GET lines", "GET missing", "HEAD n", "GET n"}) {
    EXPECT_NEAR(seen[one], draws / 8, 80) << one;
  }
  EXPECT_NEAR(seen["POST echo"], draws / 4, 100);
}

TEST(HttpRequestTest, BodiesAndWaitsAreDrawn) {
  Random random(2);
  std::set<char> letters;
  std::set<std::size_t> slow;
  std::map<std::string, std::size_t> largest;
  std::map<std::string, int> large;
  int posts = 0;
  int chunked = 0;
  int continued = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const TinyRequest server = parsed(random_http_request(random, 1, false));
    const std::string& resource = server.path[0];
    if (resource == "slow") slow.insert(std::stoul(server.path[2]));
    if (resource == "lines") {
      const std::size_t count = std::stoul(server.path[2]);
      largest[resource] = std::max(largest[resource], count);
      large[resource] += count >= 20 ? 1 : 0;
    }
    if (resource != "echo") continue;
    ++posts;
    chunked += server.chunked ? 1 : 0;
    continued += server.expects_continue ? 1 : 0;
    letters.insert(server.body.begin(), server.body.end());
    largest[resource] = std::max(largest[resource], server.body.size());
    large[resource] += server.body.size() >= 300 ? 1 : 0;
  }
  EXPECT_EQ(letters.size(), 26U);
  EXPECT_EQ(*letters.begin(), 'a');
  EXPECT_EQ(*letters.rbegin(), 'z');
  EXPECT_LT(*slow.rbegin(), 300U);
  EXPECT_GT(*slow.rbegin(), 290U);
  EXPECT_GT(slow.size(), 200U);
  EXPECT_NEAR(chunked, posts / 2, 80);
  EXPECT_NEAR(continued, posts / 5, 80);
  EXPECT_GT(largest["lines"], 2500U);
  EXPECT_LT(largest["lines"], 3000U);
  EXPECT_NEAR(large["lines"], draws / 80, 30) << "a tenth is large";
  EXPECT_GT(largest["echo"], 19'000U);
  EXPECT_LT(largest["echo"], 20'000U);
  EXPECT_NEAR(large["echo"], posts / 10, 50) << "a tenth is large";
}

TEST(HttpRequestTest, OnlyTheLastOneMayCloseTheConnection) {
  Random random(3);
  int closing = 0;
  std::set<std::string> malformed;
  int malformed_count = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const HttpRequest request = random_http_request(random, 1, true);
    const TinyRequest server = parsed(request);
    EXPECT_EQ(server.closes, request.closes_connection) << request.text;
    EXPECT_EQ(server.status == 400, request.status == 400) << request.text;
    closing += request.closes_connection ? 1 : 0;
    if (request.status != 400) continue;
    EXPECT_EQ(request.body, "");
    malformed.insert(request.text);
    ++malformed_count;
  }
  EXPECT_NEAR(closing, draws * 3 / 10, 120);
  EXPECT_NEAR(malformed_count, draws * 3 / 20, 100);
  EXPECT_EQ(malformed.size(), 4U);
}

TEST(HttpRequestTest, TheSameSeedGivesTheSameRequests) {
  Random one(4);
  Random same(4);
  for (std::size_t id = 0; id < 100; ++id) {
    EXPECT_EQ(random_http_request(one, id, id % 2 == 0).text,
              random_http_request(same, id, id % 2 == 0).text);
  }
  const HttpRequest usual;
  EXPECT_EQ(usual.method, "GET");
  EXPECT_EQ(usual.status, 200);
  EXPECT_FALSE(usual.closes_connection);
}

}  // namespace
}  // namespace weir::sim::http_request_test
