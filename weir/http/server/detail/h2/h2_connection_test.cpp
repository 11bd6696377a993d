// Tests of HTTP/2 connections of a server, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_connection_test {
namespace {

using namespace frames;

constexpr std::uint8_t end_stream = FrameFlag::end_stream;

class H2ConnectionTest : public H2ConnectionFixture, public ::testing::Test {};

Task<Response> echo(Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return Response(body.error());
  co_return text(std::string(*body));
}

Task<Response> sleepy() {
  std::ignore = co_await sleep(std::chrono::seconds(3));
  co_return text("awake");
}

TEST_F(H2ConnectionTest, CountsMalformedRequests) {
  begin();
  const auto request = [](std::uint32_t stream, std::string_view name, std::string_view value) {
    return headers(stream, block({{":method", "GET"},
                                  {":scheme", "http"},
                                  {":path", "/"},
                                  {":authority", "a"},
                                  {name, value}}));
  };
  const auto counted = [this](ParseError error) {
    return server_->counters().parse_errors[static_cast<std::size_t>(error)].value();
  };
  std::uint32_t stream = 1;
  std::uint64_t count = 0;
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"connection", "close"}, {"a b", "x"}, {"content-length", "5"}}) {
    answer(request(stream, name, value));
    pass(1s);  // resets cost work, so the server is slow
    stream += 2;
    EXPECT_EQ(counted(ParseError::malformed_fields), ++count) << name;
    EXPECT_EQ(server_->counters().http2_streams_reset.value(), count) << name;
  }
  answer(headers(stream, "\xff\xff\xff\xff\xff\xff"));
  EXPECT_EQ(counted(ParseError::bad_field_block), 1U);
}

TEST_F(H2ConnectionTest, CountsResponsesThatWereSent) {
  routes_.get("/", [] { return text("hello"); });
  routes_.get("/sleepy", sleepy);
  routes_.get("/large", [] { return text(std::string(200'000, 'l')); });
  begin();
  const auto expect_counts = [this](std::uint64_t requests, std::uint64_t responses) {
    EXPECT_EQ(server_->counters().requests.value(), requests);
    EXPECT_EQ(server_->counters().responses.value(), responses);
  };
  answer(get(1, "/") + get(3, "/sleepy"));
  expect_counts(2, 1);
  answer(rst_stream(3));
  expect_counts(2, 1);
  answer(get(5, "/nowhere"));
  expect_counts(3, 2);
  answer(get(7, "/large"));
  answer(rst_stream(7));
  expect_counts(4, 2);
}

// A request whose head is rejected must not inherit the tunnel of an earlier one.
TEST_F(H2ConnectionTest, ARejectedHeadBehindAConnectLetsTheBodyArrive) {
  begin();
  const std::string connect = headers(
      1, block({{":method", "CONNECT"}, {":authority", "a.test:443"}}), FrameFlag::end_headers);
  std::string many =
      block({{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}});
  for (int number = 0; number < 200; ++number) many += block({{"x", "y"}});
  const std::string lines = answer(connect + headers(3, many, FrameFlag::end_headers));
  EXPECT_TRUE(lines.starts_with("head 1 :status=405 ")) << lines;
  EXPECT_NE(lines.find("head 3 :status=431 "), lines.npos) << lines;
  EXPECT_EQ(lines.find("reset 3"), lines.npos) << lines;
}

TEST_F(H2ConnectionTest, AnswersRequests) {
  routes_.get("/", [] { return text("hello"); });
  begin();
  EXPECT_EQ(answer(get(1, "/") + get(3, "/missing")),
            "head 1 :status=200 content-type=text/plain; charset=utf-8 content-length=5\n"
            "data 1 hello end\n"
            "head 3 :status=404 content-type=application/problem+json content-length=34\n"
            "data 3 {\"title\":\"Not Found\",\"status\":404} end\n");
  EXPECT_EQ(answer(request(5, "HEAD", "/")),
            "head 5 :status=200 content-type=text/plain; charset=utf-8 content-length=5 end\n");
}

TEST_F(H2ConnectionTest, TellsTheVersion) {
  routes_.get("/", [](Request& request) {
    return text(request.version() == Version::http_2     ? "2"
                : request.version() == Version::http_1_1 ? "1.1"
                                                         : "1.0");
  });
  begin();
  EXPECT_TRUE(answer(get(1, "/")).ends_with("data 1 2 end\n"));
  EXPECT_TRUE(talk(connect(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("1.1"));
  EXPECT_TRUE(talk(connect(), "GET / HTTP/1.0\r\n\r\n").ends_with("1.0"));
}

struct EchoServer : H2ConnectionFixture {
  explicit EchoServer(const H2Limits& limits) {
    routes_.post("/", echo);
    begin({.h2 = limits});
  }
};

TEST(H2ConnectionLimits, ServeAlsoOutsideOfTheirRanges) {
  constexpr std::uint32_t window_and_one = 1U << 31U;
  constexpr std::uint32_t most = 0xFFFFFFFF;
  const auto work = [](std::int32_t value) {
    return WorkLimits{.burst = value, .refill_per_second = value};
  };
  const H2Limits rows[] = {
      {.streams_max = 0, .work = {}},
      {.streams_max = most, .work = {}},
      {.stream_window = 0, .work = {}},
      {.stream_window = window_and_one, .work = {}},
      {.connection_window = 0, .work = {}},
      {.connection_window = window_and_one, .work = {}},
      {.stream_window = most, .connection_window = most, .work = {}},
      {.block_bytes_max = 0, .work = {}},
      {.block_bytes_max = most, .work = {}},
      {.block_frames_max = 0, .work = {}},
      {.block_frames_max = most, .work = {}},
      {.bodies_max = 0, .work = {}},
      {.field_list_max = most, .work = {}},
      {.control_bytes_max = 0, .work = {}},
      {.output_max = 0, .work = {}},
      {.work = work(0)},
      {.work = work(std::numeric_limits<std::int32_t>::min())},
      {.work = work(std::numeric_limits<std::int32_t>::max())},
  };
  for (std::size_t row = 0; row < std::size(rows); ++row) {
    SCOPED_TRACE(row);
    EchoServer server(rows[row]);
    for (std::uint32_t id = 1; id < 7; id += 2) {
      const std::string lines = server.answer(post(id, "/") + data(id, "x", end_stream));
      EXPECT_TRUE(lines.ends_with("x end\n")) << lines;
    }
  }
}

TEST(H2ConnectionLimits, CountAllFramesOfAFieldBlock) {
  EchoServer server({.block_frames_max = 0xFFFFFFFF, .work = {.burst = 1'000'000'000}});
  std::string frames = headers(1, "", end_stream);
  for (int count = 0; count < 0xFFFF; ++count) frames += continuation(1, "", 0);
  EXPECT_EQ(server.answer(frames), "goaway 0 e11\n");
}

TEST_F(H2ConnectionTest, IdleConnectionGivesWayToANewOne) {
  routes_.get("/", [] { return text("hello"); });
  routes_.get("/sleepy", sleepy);
  begin({.connections_max = 1});
  constexpr std::string_view http1 = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  answer(get(1, "/sleepy"));
  pass(std::chrono::seconds(1));
  EXPECT_TRUE(talk(connect(), http1).starts_with("HTTP/1.1 503 ")) << "there is a request";
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(received().ends_with("awake end\n"));
  pass(std::chrono::seconds(1));
  EXPECT_TRUE(talk(connect(), http1).ends_with("hello"));
  EXPECT_EQ(received(), "goaway 1 e0\n");
  EXPECT_TRUE(peer_->ended());
  EXPECT_EQ(server_->counters().connections_evicted.value(), 1U);
}

TEST_F(H2ConnectionTest, AStreamOfAnEvictedConnectionMayBeSentAgain) {
  routes_.get("/", [] { return text("hello"); });
  begin({.connections_max = 1});
  answer(get(1, "/"));
  pass(std::chrono::seconds(1));
  received();
  MemoryPeer& next = connect();
  peer_->send(get(3, "/"));
  settle();
  EXPECT_EQ(received(), "goaway 1 e0\n");
  EXPECT_TRUE(peer_->ended());
  EXPECT_TRUE(talk(next, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("hello"));
  EXPECT_EQ(server_->counters().connections_open.value(), 1U);
}

TEST_F(H2ConnectionTest, InvitesTheBodyOfAClientThatWaits) {
  routes_.post("/", echo);
  begin();
  EXPECT_EQ(answer(headers(1,
                           block({{":method", "POST"},
                                  {":scheme", "http"},
                                  {":path", "/"},
                                  {":authority", "a"},
                                  {"expect", "100-continue"}}),
                           FrameFlag::end_headers)),
            "head 1 :status=100\n");
  EXPECT_TRUE(answer(data(1, "hello", end_stream)).ends_with("data 1 hello end\n"));
}

TEST_F(H2ConnectionTest, PassesTrailersToTheHandler) {
  routes_.post("/", [](Request& request) -> Task<Response> {
    std::ignore = co_await request.body();
    co_return text(std::string(request.trailers().get("x-sum").value_or("none")));
  });
  begin();
  const std::string trailers = headers(1, block({{"x-sum", "42"}}));
  EXPECT_TRUE(answer(post(1, "/") + data(1, "hello") + trailers).ends_with("data 1 42 end\n"));
  EXPECT_EQ(answer(post(3, "/") + headers(3, block({{":path", "/"}}))), "reset 3 1\n");
}

TEST_F(H2ConnectionTest, SendsTheMoreUrgentResponseFirst) {
  routes_.get("/", [] { return text(std::string(50'000, 'x')); });
  begin({}, setting(SettingId::initial_window_size, 0));
  const auto with_priority = [](std::uint32_t id, std::string_view priority) {
    return headers(id, block({{":method", "GET"},
                              {":scheme", "http"},
                              {":path", "/"},
                              {":authority", "a"},
                              {"priority", priority}}));
  };
  answer(with_priority(1, "u=7") + with_priority(3, "u=0"));
  const std::string lines = answer(settings(setting(SettingId::initial_window_size, 60'000)));
  EXPECT_LT(lines.find("data 3 "), lines.find("data 1 "));
}

TEST_F(H2ConnectionTest, KeepsNothingOfARequestForTheNextOne) {
  routes_.get("/", [] { return text(std::string(50'000, 'x')); });
  begin({}, setting(SettingId::initial_window_size, 0));
  const auto with = [](std::uint32_t id, std::string_view method, std::string_view priority) {
    return headers(id, block({{":method", method},
                              {":scheme", "http"},
                              {":path", "/"},
                              {":authority", "a"},
                              {"priority", priority}}));
  };
  // HEAD needs no window. It ends before the next request, which may use its memory.
  const std::string heads = answer(with(1, "HEAD", "u=7, i") + get(3, "/") + with(5, "GET", "u=5"));
  EXPECT_NE(heads.find("content-length=50000 end\n"), std::string::npos);
  const std::string lines = answer(settings(setting(SettingId::initial_window_size, 60'000)));
  ASSERT_NE(lines.find("data 5 "), std::string::npos);
  EXPECT_LT(lines.find("data 3 "), lines.find("data 5 ")) << "it has the priority of another one";
}

TEST_F(H2ConnectionTest, SendsTheErrorPageOfARejectedRequestUnlessTheMethodIsHead) {
  routes_.get("/", [] { return text("hello"); });
  begin();
  const auto with_space = [](std::uint32_t id, std::string_view method) {
    return request(id, method, "/a b");
  };
  const auto head = [](std::string_view id) {
    return "head " + std::string(id) +
           " :status=400 content-type=application/problem+json content-length=36";
  };
  const std::string page = " {\"title\":\"Bad Request\",\"status\":400} end\n";
  EXPECT_TRUE(answer(request(1, "HEAD", "/") + with_space(3, "GET") + with_space(5, "HEAD") +
                     with_space(7, "PUT"))
                  .ends_with(" content-length=5 end\n" + head("3") + "\ndata 3" + page + head("5") +
                             " end\n" + head("7") + "\ndata 7" + page));
}

TEST_F(H2ConnectionTest, BeginsWithAPrefaceInPieces) {
  routes_.get("/", [] { return text("hello"); });
  serve();
  peer_ = &connect();
  std::string received;
  for (const char each : preface() + get(1, "/")) received += talk(*peer_, {&each, 1});
  EXPECT_TRUE(receiver_.read(received).ends_with("data 1 hello end\n"));
}

TEST_F(H2ConnectionTest, ServesHttp1Beside) {
  routes_.get("/", [] { return text("hello"); });
  serve();
  EXPECT_EQ(statuses("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "200");
  EXPECT_EQ(statuses("PRI * HTTP/1.1\r\nHost: a\r\n\r\n"), "400");
}

TEST_F(H2ConnectionTest, BeginsOnlyWithTheFirstBytesOfAConnection) {
  routes_.get("/", [] { return text("hello"); });
  serve();
  MemoryPeer& peer = connect();
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_TRUE(talk(peer, get).ends_with("hello"));
  EXPECT_TRUE(talk(peer, preface()).starts_with("HTTP/1.1 505 "));
  EXPECT_NE(talk(connect(), get + preface()).find("HTTP/1.1 505 "), std::string::npos);
}

TEST_F(H2ConnectionTest, IsOffByDefault) {
  plain_http2_ = PlainHttp2::off;
  serve();
  EXPECT_EQ(statuses(preface()), "505");
}

TEST_F(H2ConnectionTest, RunsHandlersAtTheSameTime) {
  routes_.get("/sleepy", sleepy);
  routes_.get("/", [] { return text("hello"); });
  begin();
  EXPECT_EQ(answer(get(1, "/sleepy") + get(3, "/sleepy")), "");
  EXPECT_TRUE(answer(get(5, "/")).ends_with("data 5 hello end\n"));
  pass(std::chrono::seconds(3));
  const std::string both = received();
  EXPECT_NE(both.find("data 1 awake end\n"), std::string::npos);
  EXPECT_NE(both.find("data 3 awake end\n"), std::string::npos);
}

TEST_F(H2ConnectionTest, PassesTheBodyToTheHandler) {
  routes_.post("/", echo);
  begin();
  EXPECT_EQ(answer(post(1, "/")), "");
  EXPECT_EQ(answer(data(1, "hel")), "");
  EXPECT_TRUE(answer(data(1, "lo", end_stream)).ends_with("data 1 hello end\n"));
  EXPECT_TRUE(answer(post(3, "/") + data(3, "whole", end_stream)).ends_with("data 3 whole end\n"));
  EXPECT_TRUE(answer(post(5, "/") + data(5, "", end_stream)).ends_with("content-length=0 end\n"));
}

TEST_F(H2ConnectionTest, SendsALargeBodyInTheWindowOfTheClient) {
  const std::string large(200'000, '#');
  routes_.get("/", [&] { return text(large); });
  begin();
  std::string body;
  const auto count = [&](const std::string& lines) {
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '#'));
  };
  std::size_t size = count(answer(get(1, "/")));
  EXPECT_EQ(size, 65'535u);
  size += count(answer(window_update(0, 100'000)));
  EXPECT_EQ(size, 65'535u);
  size += count(answer(window_update(1, 100'000)));
  EXPECT_EQ(size, 165'535u);
  const std::string last = answer(window_update(0, 100'000) + window_update(1, 100'000));
  EXPECT_EQ(size + count(last), large.size());
  EXPECT_TRUE(last.ends_with(" end\n"));
}

TEST_F(H2ConnectionTest, CountsItsStreams) {
  routes_.get("/sleepy", sleepy);
  Limits limits;
  limits.h2.streams_max = 2;
  begin(limits);
  const ServerCounters& counters = server_->counters();
  EXPECT_NE(answer(get(1, "/sleepy") + get(3, "/sleepy") + get(5, "/")), "");
  EXPECT_EQ(counters.http2_connections.value(), 1U);
  EXPECT_EQ(counters.http2_streams.value(), 2U);
  EXPECT_EQ(counters.http2_streams_open.value(), 2U);
  EXPECT_EQ(counters.http2_streams_refused.value(), 1U);
  EXPECT_EQ(counters.http2_streams_reset.value(), 0U);
  answer(rst_stream(1));
  EXPECT_EQ(counters.http2_streams_reset.value(), 1U);
  EXPECT_EQ(counters.http2_streams_open.value(), 1U);
  pass(std::chrono::seconds(3));
  received();
  EXPECT_EQ(counters.http2_streams_open.value(), 0U);
  EXPECT_EQ(counters.http2_streams.value(), 2U);
}

TEST_F(H2ConnectionTest, CancelsTheHandlerOfAStreamThatIsReset) {
  bool cancelled = false;
  routes_.get("/", [&]() -> Task<Response> {
    const auto slept = co_await sleep(std::chrono::hours(1));
    cancelled = !slept;
    co_return text("late");
  });
  begin();
  EXPECT_EQ(answer(get(1, "/") + rst_stream(1)), "");
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(server_->connections().draining(), false);
}

TEST_F(H2ConnectionTest, StreamsABody) {
  routes_.get("/", [] {
    return stream("text/plain", [](BodySink& sink) -> Task<Result<>> {
      for (int part = 0; part < 3; ++part) {
        WEIR_CO_TRY(co_await sink.write("part"));
        WEIR_CO_TRY(co_await sleep(std::chrono::seconds(1)));
      }
      co_return {};
    });
  });
  begin();
  EXPECT_EQ(answer(get(1, "/")), "head 1 :status=200 content-type=text/plain\ndata 1 part\n");
  pass(std::chrono::seconds(1));
  EXPECT_EQ(received(), "data 1 part\n");
  pass(std::chrono::seconds(2));
  EXPECT_EQ(received(), "data 1 part\ndata 1  end\n");
}

Task<Result<>> write_with_status(BodySink& sink, std::string body) {
  WEIR_CO_TRY(co_await sink.write(body));
  co_return sink.add_trailer("Grpc-Status", "0");
}

TEST_F(H2ConnectionTest, EndsAStreamWithTrailers) {
  routes_.get("/", [] { return stream("a/b", write_with_status, std::string("body")); });
  routes_.get("/empty", [] { return stream("a/b", write_with_status, std::string()); });
  routes_.get("/large", [] { return stream("a/b", write_with_status, std::string(70'000, 'x')); });
  begin();
  const std::string head = "head 1 :status=200 content-type=a/b\n";
  EXPECT_EQ(answer(get(1, "/")), head + "data 1 body\nhead 1 grpc-status=0 end\n");
  EXPECT_TRUE(answer(get(3, "/empty")).ends_with("head 3 grpc-status=0 end\n"));
  EXPECT_TRUE(answer(get(5, "/large")).ends_with("x\n")) << "the window is used up";
  EXPECT_TRUE(answer(window_update(0, 10'000) + window_update(5, 10'000))
                  .ends_with("x\nhead 5 grpc-status=0 end\n"));
  EXPECT_TRUE(answer(request(7, "HEAD", "/")).ends_with("content-type=a/b end\n"));
}

TEST_F(H2ConnectionTest, LeavesOutHeadersOfConnectionsOfHttp1) {
  routes_.get("/", [] {
    Response response = text("hello");
    response.add_header("Keep-Alive", "timeout=5");
    response.add_header("X-Name", "1");
    response.add_header("Upgrade", "h2c");
    return response;
  });
  begin();
  EXPECT_TRUE(answer(get(1, "/"))
                  .starts_with("head 1 :status=200 content-type=text/plain; charset=utf-8 "
                               "content-length=5 x-name=1\n"));
}

TEST_F(H2ConnectionTest, RejectsMalformedRequests) {
  begin();
  EXPECT_EQ(answer(headers(1, block({{":method", "GET"}}))), "reset 1 1\n");
  EXPECT_EQ(answer(headers(3, "\xFF\xFF\xFF\xFF\xFF\xFF")), "reset 3 9\ngoaway 3 e9\n");
}

TEST_F(H2ConnectionTest, TakesAsLongAHeadAsItAnnounces) {
  routes_.get("/", [](Request& request) {
    return text(std::to_string(request.header("x").value_or("").size()));
  });
  constexpr std::size_t size = 200'000;
  Limits limits;
  limits.head.headers_bytes_max = limits.h2.field_list_max = 256 * 1024;
  begin(limits);
  const std::string long_field(size, 'x');
  const std::string whole = block({{":method", "GET"},
                                   {":scheme", "http"},
                                   {":path", "/"},
                                   {":authority", "a"},
                                   {"x", long_field}});
  std::string input =
      headers(1, std::string_view(whole).substr(0, frame_payload_default), FrameFlag::end_stream);
  for (std::size_t at = frame_payload_default; at < whole.size(); at += frame_payload_default) {
    const bool last = at + frame_payload_default >= whole.size();
    input += continuation(1, std::string_view(whole).substr(at, frame_payload_default),
                          last ? FrameFlag::end_headers : std::uint8_t{0});
  }
  const std::string lines = answer(input);
  EXPECT_TRUE(lines.ends_with("data 1 200000 end\n")) << lines;
}

TEST_F(H2ConnectionTest, TheBytesBehindAConnectAreNoBody) {
  routes_.get("/", [] { return text("hello"); });
  begin();
  const std::string connect = headers(
      1, block({{":method", "CONNECT"}, {":authority", "a.test:443"}}), FrameFlag::end_headers);
  const std::string lines = answer(connect);
  EXPECT_TRUE(lines.starts_with("head 1 :status=405 ")) << lines;
  EXPECT_TRUE(lines.ends_with(" end\nreset 1 0\n")) << lines;
}

TEST_F(H2ConnectionTest, RejectsForbiddenAndLongTrailers) {
  routes_.post("/", echo);
  routes_.post("/ignore", [] { return text("ignored"); });
  begin();
  const std::string forbidden = block({{"trailer", "x"}});
  std::string many;
  for (int number = 0; number < 200; ++number) many += block({{"x", "y"}});
  const ServerCounters& counters = server_->counters();
  const auto count = [&](ParseError error) {
    return counters.parse_errors[static_cast<std::size_t>(error)].value();
  };
  std::uint32_t stream = 1;
  for (const std::string_view path : {"/", "/ignore"}) {
    for (const auto& [trailers, status] : {std::pair(forbidden, "400"), std::pair(many, "431")}) {
      const std::string lines =
          answer(post(stream, path) + data(stream, "body") + headers(stream, trailers));
      EXPECT_TRUE(lines.starts_with("head " + std::to_string(stream) + " :status=" + status))
          << lines;
      EXPECT_EQ(lines.find("reset"), lines.npos) << lines;
      stream += 2;
    }
  }
  EXPECT_EQ(count(ParseError::forbidden_trailer), 2U);
  EXPECT_EQ(count(ParseError::too_many_trailers), 2U);
}

TEST_F(H2ConnectionTest, AHandlerThatHasReadAPartMayAnswerABodyThatIsTooLarge) {
  const auto read_a_part = [](Request& request) -> Task<Response> {
    EXPECT_TRUE(co_await request.read());
    std::ignore = co_await sleep(std::chrono::seconds(1));
    co_return text("enough");
  };
  routes_.post("/", read_a_part, {.body_max = 10});
  begin();
  EXPECT_EQ(answer(post(1, "/") + data(1, "first")), "");
  EXPECT_EQ(answer(data(1, std::string(20, 'x'))), "");
  pass(std::chrono::seconds(1));
  const std::string lines = received();
  EXPECT_TRUE(lines.starts_with("head 1 :status=200 ")) << lines;
}

TEST_F(H2ConnectionTest, ReportsABodyThatIsTooLarge) {
  routes_.post("/", echo);
  Limits limits;
  limits.body_max = 10;
  begin(limits);
  EXPECT_TRUE(answer(post(1, "/") + data(1, "0123456789", end_stream)).ends_with("9 end\n"));
  const std::string late = answer(post(3, "/") + data(3, "0123456789x"));
  EXPECT_TRUE(late.starts_with("head 3 :status=413 ")) << late;
  EXPECT_TRUE(late.ends_with("} end\n")) << late;
  const std::string early = answer(headers(5,
                                           block({{":method", "POST"},
                                                  {":scheme", "http"},
                                                  {":path", "/"},
                                                  {":authority", "a"},
                                                  {"content-length", "11"}}),
                                           FrameFlag::end_headers));
  EXPECT_TRUE(early.starts_with("head 5 :status=413 ")) << early;
  constexpr auto too_large = static_cast<std::size_t>(ParseError::body_too_large);
  EXPECT_EQ(server_->counters().parse_errors[too_large].value(), 2u);
}

TEST_F(H2ConnectionTest, AnswersWhenABodyThatNobodyReadsHasEnded) {
  routes_.post("/", [] { return text("hello"); });
  routes_.post("/error", [] { return Response(Status::conflict); });
  Limits limits;
  limits.unread_body_max = 10;
  begin(limits);
  EXPECT_EQ(answer(post(1, "/") + data(1, "0123456789")), "");
  EXPECT_TRUE(answer(data(1, "", end_stream)).ends_with("data 1 hello end\n"));
  EXPECT_EQ(answer(post(3, "/")), "");
  EXPECT_TRUE(answer(headers(3, block({{"x-sum", "1"}}))).ends_with("data 3 hello end\n"));
  EXPECT_EQ(answer(post(5, "/") + data(5, "0123456789")), "");
  EXPECT_TRUE(answer(data(5, "x")).ends_with("data 5 hello end\n"));
  EXPECT_TRUE(answer(post(7, "/error")).ends_with("} end\n"));
  EXPECT_EQ(answer(post(9, "/") + rst_stream(9)), "");
  EXPECT_EQ(answer(post(11, "/")), "");
  pass(std::chrono::seconds(6));
  const std::string later = received();
  EXPECT_TRUE(later.starts_with("reset 5 0\nreset 7 0\nhead 11 :status=408 ")) << later;
}

TEST_F(H2ConnectionTest, DropsABodyThatATaskDoesNotRead) {
  routes_.post("/", []() -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::seconds(1));
    co_return text("hello");
  });
  Limits limits;
  limits.unread_body_max = 10;
  begin(limits);
  EXPECT_EQ(answer(post(1, "/") + data(1, "01234")), "");
  pass(std::chrono::seconds(1));
  EXPECT_EQ(answer(data(1, "56789")), "");
  EXPECT_TRUE(answer(data(1, "", end_stream)).ends_with("data 1 hello end\n"));
  EXPECT_EQ(answer(post(3, "/") + data(3, "0123456789x")), "");
  pass(std::chrono::seconds(1));
  EXPECT_TRUE(received().ends_with("data 3 hello end\n"));
  EXPECT_EQ(answer(post(5, "/")), "");
  pass(std::chrono::seconds(7));
  const std::string later = received();
  EXPECT_TRUE(later.starts_with("reset 3 0\nhead 5 :status=408 ")) << later;
}

TEST_F(H2ConnectionTest, SpeaksOnlyHttp2IfItIsToldSo) {
  plain_http2_ = PlainHttp2::only;
  serve();
  peer_ = &connect();
  const std::string lines = answer("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(lines.ends_with("goaway 0 e1\n")) << lines;
}

TEST_F(H2ConnectionTest, EndsBodiesThatStall) {
  routes_.post("/", echo);
  begin();
  EXPECT_EQ(answer(post(1, "/") + data(1, "hel")), "");
  pass(std::chrono::seconds(21));
  const std::string lines = received();
  EXPECT_TRUE(lines.starts_with("head 1 :status=408 ")) << lines;
  EXPECT_TRUE(lines.ends_with("reset 1 0\n")) << lines;
}

TEST_F(H2ConnectionTest, LimitsTheBytesThatWaitForAHandler) {
  routes_.post("/", [](Request& request) -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::seconds(1));
    std::size_t size = 0;
    for (;;) {
      const auto piece = co_await request.read();
      if (!piece || piece->empty()) break;
      size += piece->size();
    }
    co_return text(std::to_string(size));
  });
  begin();
  const std::string part = data(1, std::string(16'384, 'x'));
  EXPECT_EQ(answer(post(1, "/") + part + part + part + part), "");
  EXPECT_LE(loop_->blocks().blocks_in_use(BlockUse::buffer), 4u);
  pass(std::chrono::seconds(1));
  EXPECT_EQ(received(), "window_update 1 131072\n") << "the window grows";
  EXPECT_TRUE(answer(data(1, "", end_stream)).ends_with("data 1 65536 end\n"));
}

TEST_F(H2ConnectionTest, ResetsStreamsWhoseClientDoesNotOpenItsWindow) {
  routes_.get("/", [] { return text("hello"); });
  routes_.get("/stream", [] {
    return stream("text/plain", [](BodySink& sink) -> Task<Result<>> {
      for (;;) WEIR_CO_TRY(co_await sink.write("part"));
    });
  });
  begin({}, setting(SettingId::initial_window_size, 2));
  EXPECT_TRUE(answer(get(1, "/") + get(3, "/stream")).ends_with("data 3 pa\n"));
  pass(std::chrono::seconds(9));
  EXPECT_EQ(received(), "");
  pass(std::chrono::seconds(2));
  EXPECT_EQ(received(), "reset 1 8\nreset 3 8\n");
  EXPECT_EQ(server_->counters().slow_readers.value(), 2u);
}

TEST_F(H2ConnectionTest, CancelsAllHandlersWhenTheClientLeaves) {
  routes_.get("/sleepy", []() -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::hours(1));
    co_return text("late");
  });
  routes_.post("/", echo);
  routes_.get("/large", [] { return text(std::string(200'000, 'x')); });
  begin();
  answer(get(1, "/sleepy") + post(3, "/") + get(5, "/large"));
  peer_->reset();
  settle();
  expect_at_rest();
}

TEST_F(H2ConnectionTest, HoldsAtMostTheMemoryOfItsBound) {
  routes_.post("/", echo);
  Limits limits;
  limits.body_max = 150'000;
  limits.h2.streams_max = 8;
  const MemoryBound bound = memory_bound(limits, {.connections_max = 1, .http2 = true});
  begin(limits);
  const std::size_t before = allocated_bytes();
  const std::string part(16'384, 'x');
  std::size_t most = 0;
  for (std::uint32_t id = 1; id < 16; id += 2) {
    answer(post(id, "/"));
    for (int count = 0; count < 9; ++count) {
      answer(data(id, part));
      most = std::max(most, allocated_bytes());
    }
  }
  EXPECT_EQ(server_->counters().requests.value(), 8u);
  if (before != 0) {
    EXPECT_GT(most - before, 8 * 9 * part.size());
  }
  EXPECT_LE(most - std::min(most, before), bound.connection);
  EXPECT_LT(bound.connection, 18u * 1024 * 1024);
}

TEST_F(H2ConnectionTest, EndsFloods) {
  routes_.get("/sleepy", sleepy);
  begin();
  std::string flood;
  for (std::uint32_t id = 1; id < 400; id += 2) flood += get(id, "/sleepy") + rst_stream(id);
  std::string lines;
  for (int round = 0; round < 50 && !peer_->ended(); ++round) {
    lines = answer(flood);
    pass(std::chrono::milliseconds(100));
  }
  EXPECT_FALSE(lines.empty());
}

TEST_F(H2ConnectionTest, EndsIdleConnections) {
  begin();
  pass(std::chrono::seconds(61));
  EXPECT_EQ(received(), "goaway 0 e0\n");
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(peer_->ended());
}

TEST_F(H2ConnectionTest, DrainsInTwoPhases) {
  routes_.get("/sleepy", sleepy);
  begin();
  answer(get(1, "/sleepy"));
  drain();
  settle();
  EXPECT_EQ(received(), "goaway 2147483647 e0\nping f0 drained?\n");
  EXPECT_EQ(answer(ping("drained?", FrameFlag::ack)), "goaway 1 e0\n");
  pass(std::chrono::seconds(3));
  EXPECT_TRUE(received().ends_with("data 1 awake end\n"));
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(stopped());
}

}  // namespace
}  // namespace weir::http::h2_connection_test
