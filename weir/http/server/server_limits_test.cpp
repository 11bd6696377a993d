// Tests that a server applies the limits that it was given, exactly, on every use of a connection.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"

namespace weir::http::server_limits_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post_of(std::string_view path, std::size_t length) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}
std::string chunked_of(std::string_view path) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
}

Task<Response> size_of_body(Request& request) {
  const auto body = co_await request.body_view();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(std::to_string(body->size()));
}

class ServerLimitsTest : public HttpTest {
 protected:
  ServerLimitsTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.get("/large", [] { return text(std::string(1'000'000, 'x')); });
    routes_.post("/size", size_of_body);
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.post("/none", size_of_body, {.body_max = 0});
  }

  std::string answers(MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }
  std::uint64_t open() { return server_->counters().connections_open.value(); }
  std::uint64_t rejected(ParseError error) {
    return server_->counters().parse_errors[static_cast<std::size_t>(error)].value();
  }
  /// Returns the number of streams that the server has open, without its listener.
  std::size_t open_streams() const { return platform_.open_descriptors() - 1; }
};

TEST_F(ServerLimitsTest, HeadsHaveAtMostTheLimitsOfTheServer) {
  serve({.head = {.request_line_max = 30,
                  .headers_bytes_max = 40,
                  .headers_max = 2,
                  .empty_lines_max = 1}});
  struct Row {
    std::string request;
    const char* status;
  };
  const std::string line = "GET / HTTP/1.1\r\n";
  const Row rows[] = {
      {"GET /" + std::string(16, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", "404"},
      {"GET /" + std::string(17, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"},
      {line + "Host: a\r\nX: " + std::string(24, 'x') + "\r\n\r\n", "200"},
      {line + "Host: a\r\nX: " + std::string(25, 'x') + "\r\n\r\n", "431"},
      {line + "Host: a\r\nX:\r\n\r\n", "200"},
      {line + "Host: a\r\nX:\r\nY:\r\n\r\n", "431"},
      {"\r\n" + std::string(get), "200"},
      {"\r\n\r\n" + std::string(get), "400"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(statuses(row.request), row.status) << row.request;
    EXPECT_EQ(statuses(std::string(get) + row.request), "200 " + std::string(row.status))
        << row.request;
    MemoryPeer& bytewise = connect();
    talk(bytewise, get);
    for (const char each : row.request) talk(bytewise, {&each, 1});
    EXPECT_EQ(answers(bytewise), "200 " + std::string(row.status)) << row.request;
  }
}

TEST_F(ServerLimitsTest, ChunksHaveAtMostTheLimitsOfTheServer) {
  serve({.chunks = {
             .line_max = 8, .extensions_max = 10, .trailers_bytes_max = 8, .trailers_max = 2}});
  struct Row {
    std::string body;
    const char* status;
    ParseError error;
  };
  const Row rows[] = {
      {"00000001\r\na\r\n0\r\n\r\n", "200", ParseError::none},
      {"000000001\r\na\r\n0\r\n\r\n", "400", ParseError::chunk_line_too_long},
      {"1;abcd\r\na\r\n1;abcd\r\na\r\n0\r\n\r\n", "200", ParseError::none},
      {"1;abcd\r\na\r\n1;abcd\r\na\r\n0;a\r\n\r\n", "400", ParseError::chunk_extensions_too_long},
      {"1\r\na\r\n0\r\nA:bcdefg\r\n\r\n", "200", ParseError::none},
      {"1\r\na\r\n0\r\nA:bcdefgh\r\n\r\n", "431", ParseError::trailers_too_long},
      {"1\r\na\r\n0\r\nA:\r\nB:\r\n\r\n", "200", ParseError::none},
      {"1\r\na\r\n0\r\nA:\r\nB:\r\nC:\r\n\r\n", "431", ParseError::too_many_trailers},
  };
  for (const char* const path : {"/size", "/ignored"}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(path + row.body);
      const std::uint64_t before = rejected(row.error);
      EXPECT_EQ(statuses(chunked_of(path) + row.body), row.status);
      // A body before it uses the same decoder.
      EXPECT_EQ(statuses(chunked_of(path) + rows[2].body + chunked_of(path) + row.body),
                "200 " + std::string(row.status));
      EXPECT_EQ(rejected(row.error), row.error == ParseError::none ? 0 : before + 2);
    }
  }
}

TEST_F(ServerLimitsTest, ChunkedBodyThatNoHandlerReadsHasAtMostTheLimit) {
  serve({.body_max = 20, .unread_body_max = 100});
  std::uint64_t expected = 0;
  for (const std::string path : {"/ignored", "/nowhere"}) {
    const std::string usual = path == "/ignored" ? "200" : "404";
    for (const bool late : {false, true}) {
      SCOPED_TRACE(path + (late ? ", late" : ""));
      MemoryPeer& fits = connect();
      const std::string ten = "a\r\n0123456789\r\n";
      talk(fits, chunked_of(path) + (late ? "" : ten));
      talk(fits, (late ? ten : "") + ten + "0\r\n\r\n" + std::string(get));
      EXPECT_EQ(answers(fits), usual + " 200");
      EXPECT_FALSE(fits.ended());
      MemoryPeer& longer = connect();
      talk(longer, chunked_of(path) + (late ? "" : ten));
      talk(longer, (late ? ten : "") + ten + "1\r\nx\r\n0\r\n\r\n" + std::string(get));
      EXPECT_EQ(answers(longer), "413");
      EXPECT_TRUE(longer.ended());
      EXPECT_EQ(rejected(ParseError::body_too_large), ++expected);
    }
  }
}

TEST_F(ServerLimitsTest, RouteMayForbidBodies) {
  serve();
  EXPECT_EQ(statuses(post_of("/none", 0) + std::string(get)), "200 200");
  EXPECT_EQ(statuses(chunked_of("/none") + "0\r\n\r\n" + std::string(get)), "200 200");
  EXPECT_EQ(statuses(post_of("/none", 1) + "x" + std::string(get)), "413");
  EXPECT_EQ(statuses(chunked_of("/none") + "1\r\nx\r\n0\r\n\r\n" + std::string(get)), "413");
}

struct Tags {
  std::vector<int> tags;
};

std::string tags_of(std::size_t count) {
  std::string text;
  for (std::size_t each = 0; each < count; ++each) text += "&tags=1";
  return text;
}

TEST_F(ServerLimitsTest, RouteLimitsTheValuesOfQueriesAndForms) {
  const auto of_query = [](const Query<Tags>& query) {
    return text(std::to_string(query->tags.size()));
  };
  const auto of_form = [](const Form<Tags>& form) {
    return text(std::to_string(form->tags.size()));
  };
  routes_.get("/query", of_query);
  routes_.get("/query/few", of_query, {.values_max = 2});
  routes_.get("/query/many", of_query, {.values_max = 3000});
  routes_.post("/form", of_form);
  routes_.post("/form/many", of_form, {.values_max = 3000});
  serve({.head = {.request_line_max = 64 * 1024}});
  const auto query = [this](const std::string& path, std::size_t count) {
    return statuses("GET " + path + "?" + tags_of(count) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  const auto form = [this](const std::string& path, std::size_t count) {
    const std::string body = tags_of(count);
    std::string head = post_of(path, body.size());
    head.insert(head.size() - 2, "Content-Type: application/x-www-form-urlencoded\r\n");
    return statuses(head + body);
  };
  EXPECT_EQ(query("/query", 1024), "200");
  EXPECT_EQ(query("/query", 1025), "400");
  EXPECT_EQ(query("/query/few", 2), "200");
  EXPECT_EQ(query("/query/few", 3), "400");
  EXPECT_EQ(query("/query/many", 3000), "200");
  EXPECT_EQ(query("/query/many", 3001), "400");
  EXPECT_EQ(form("/form", 1025), "422");
  EXPECT_EQ(form("/form/many", 3000), "200");
  EXPECT_EQ(form("/form/many", 3001), "422");
}

TEST_F(ServerLimitsTest, UnreadBodiesMayEachHaveTheLimit) {
  serve({.unread_body_max = 10});
  MemoryPeer& peer = connect();
  std::string expected;
  for (int round = 0; round < 3; ++round) {
    talk(peer, post_of("/ignored", 10));
    talk(peer, "0123456789");
    talk(peer, chunked_of("/ignored"));
    talk(peer, "a\r\n0123456789\r\n0\r\n\r\n");
    expected += round == 0 ? "200 200" : " 200 200";
    EXPECT_EQ(answers(peer), expected);
  }
  EXPECT_FALSE(peer.ended());
}

TEST_F(ServerLimitsTest, TimeoutsAreThoseOfTheServer) {
  serve({.head_timeout = 3s, .idle_timeout = 5s, .first_request_timeout = 2s});
  MemoryPeer& silent = connect();
  MemoryPeer& in_head = connect();
  MemoryPeer& idle = connect();
  talk(idle, get);
  talk(in_head, get.substr(0, 10));
  pass(1999ms);
  EXPECT_FALSE(silent.ended());
  pass(1ms);
  EXPECT_TRUE(silent.ended());
  pass(999ms);
  EXPECT_EQ(answers(in_head), "");
  pass(1ms);
  EXPECT_EQ(answers(in_head), "408");
  pass(1999ms);
  EXPECT_FALSE(idle.ended());
  pass(1ms);
  EXPECT_TRUE(idle.ended());
}

TEST_F(ServerLimitsTest, BodyRateIsThatOfTheServer) {
  serve({.body_rate = {2s, 100, 3s}});
  const auto expect_408_after = [this](MemoryPeer& peer, Duration length) {
    pass(length - 1ms);
    EXPECT_EQ(answers(peer), "");
    pass(1ms);
    EXPECT_EQ(answers(peer), "408");
  };
  for (const char* const path : {"/size", "/ignored"}) {
    SCOPED_TRACE(path);
    MemoryPeer& stalled = connect();
    talk(stalled, post_of(path, 10'000));
    expect_408_after(stalled, 2s);
    MemoryPeer& slow = connect();
    talk(slow, post_of(path, 10'000));
    pass(1s);
    talk(slow, std::string(50, 'x'));
    expect_408_after(slow, 1500ms);
    MemoryPeer& burst = connect();
    talk(burst, post_of(path, 10'000));
    talk(burst, std::string(5000, 'x'));
    expect_408_after(burst, 3s);
  }
}

TEST_F(ServerLimitsTest, WriteRateIsThatOfTheServer) {
  serve({.write_rate = {4s, 240, 4s}});
  MemoryPeer& peer = connect();
  peer.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  pass(3999ms);
  EXPECT_EQ(open(), 1U);
  pass(1ms);
  EXPECT_EQ(open(), 0U);
  EXPECT_EQ(server_->counters().slow_readers.value(), 1U);
}

TEST_F(ServerLimitsTest, LingerTimeoutIsThatOfTheServer) {
  serve({.linger_timeout = 3s});
  talk(connect(), "bad\r\n\r\n");
  talk(connect(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(open(), 1U) << "the second one needs no permit any more";
  EXPECT_EQ(open_streams(), 2U);
  pass(2999ms);
  EXPECT_EQ(open(), 1U);
  EXPECT_EQ(open_streams(), 2U);
  pass(1ms);
  EXPECT_EQ(open(), 0U);
  EXPECT_EQ(open_streams(), 0U);
}

// Otherwise a peer could hold a connection that the server wants to close.
TEST_F(ServerLimitsTest, BytesDoNotExtendTheLingering) {
  serve({.connections_max = 2});
  MemoryPeer& closing = connect();
  MemoryPeer& served = connect();
  settle();
  MemoryPeer& beyond = connect();
  talk(closing, "bad\r\n\r\n");
  EXPECT_EQ(answers(closing), "400");
  EXPECT_EQ(answers(beyond), "503");
  for (int step = 0; step < 9; ++step) {
    pass(100ms);
    talk(closing, "x");
    talk(beyond, "x");
    EXPECT_EQ(open_streams(), 3U) << step;
  }
  pass(99ms);
  EXPECT_EQ(open_streams(), 3U);
  pass(1ms);
  EXPECT_EQ(open_streams(), 1U);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(served, get))), "200");
}

TEST_F(ServerLimitsTest, RejectedConnectionReadsAtMostTheLimit) {
  serve({.linger_bytes_max = 100, .connections_max = 1});
  for (const std::size_t size : {99U, 100U, 101U}) {
    MemoryPeer& holder = connect();
    talk(holder, get.substr(0, 5));
    MemoryPeer& beyond = connect();
    settle();
    talk(beyond, std::string(50, 'x'));
    talk(beyond, std::string(size - 50, 'x'));
    EXPECT_EQ(open_streams(), size > 100 ? 1U : 2U) << size;
    pass(1s);
    EXPECT_EQ(open_streams(), 1U);
    holder.reset();
    settle();
  }
  EXPECT_EQ(server_->counters().connections_rejected.value(), 3U);
  EXPECT_EQ(server_->counters().connections_accepted.value(), 3U);
  EXPECT_EQ(server_->counters().responses.value(), 0U) << "nothing was requested";
}

TEST_F(ServerLimitsTest, StopClosesRejectedConnectionsImmediately) {
  serve({.connections_max = 1});
  connect();
  settle();
  connect();
  settle();
  EXPECT_EQ(open_streams(), 2U);
  stop();
  settle();
  EXPECT_TRUE(stopped());
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(ServerLimitsTest, PeerThatLeavesIsNotASilentConnection) {
  serve();
  MemoryPeer& closing = connect();
  MemoryPeer& finishing = connect();
  MemoryPeer& resetting = connect();
  settle();
  EXPECT_EQ(open(), 3U);
  closing.close();
  finishing.finish();
  resetting.reset();
  settle();
  EXPECT_EQ(open(), 0U);
  MemoryPeer& later = connect();
  pass(14s);
  later.finish();
  settle();
  EXPECT_EQ(open(), 0U);
  EXPECT_EQ(server_->counters().connections_accepted.value(), 4U);
  EXPECT_EQ(server_->counters().silent_connections.value(), 0U);
}

}  // namespace
}  // namespace weir::http::server_limits_test
