#include "weir/http/server/detail/connection.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::connection_test {
namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string get_of(std::string_view path, std::string_view more = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more) + "\r\n";
}

Task<Response> slow(int seconds) {
  std::ignore = co_await sleep(std::chrono::seconds(seconds));
  co_return text("slow " + std::to_string(seconds) + "\n");
}
Task<Response> at_once() {
  co_return text("at once\n");
}

class ConnectionTest : public HttpTest {
 protected:
  ConnectionTest() {
    routes_.get("/", [] { return text("hello\n"); });
    routes_.get("/slow/{seconds}", slow);
    routes_.get("/at-once", at_once);
    routes_.get("/large/{size}",
                [](int size) { return text(std::string(static_cast<std::size_t>(size), 'x')); });
    routes_.get("/status/{code}",
                [](int code) { return Response(Status{static_cast<std::uint16_t>(code)}); });
    routes_.post("/ignored", [] { return text("ignored\n"); });
  }
};

TEST_F(ConnectionTest, KeepsAlive) {
  serve();
  MemoryPeer& peer = connect();
  for (int round = 0; round < 3; ++round) {
    const auto answers = sim::parse_http_responses(talk(peer, get));
    ASSERT_EQ(sim::statuses_of(answers), "200");
    EXPECT_EQ(answers[0].body, "hello\n");
    EXPECT_EQ(answers[0].header("Content-Length"), "6");
    EXPECT_EQ(answers[0].header("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(answers[0].header("Connection"), "");
    EXPECT_FALSE(peer.ended());
    pass(59s);
  }
  peer.close();
  settle();
  expect_at_rest();
}

// A server keeps very many idle connections. The frame of serve_opened() has 392 bytes with clang,
// of which 16 are for the age and the bytes that the admin pages show. The bounds leave no room for
// a timer of each read (48 bytes), or for a second awaiter or a temporary that a change of
// serve_opened() puts into the frame. A sanitizer makes the frame a little larger.
TEST_F(ConnectionTest, AnIdleConnectionIsOneSmallFrame) {
#ifdef __clang__
  constexpr std::size_t bytes_max = BlockPool::caches_free_blocks ? 400 : 448;
#else
  constexpr std::size_t bytes_max = 784;
#endif
  loop_->blocks().set_cache_limit(BlockPool::cached_bytes_max);  // cached_bytes() shows their sizes
  serve();
  MemoryPeer& first = connect();  // leaves all blocks that the next one needs in the cache
  talk(first, get);
  first.close();
  settle();
  const std::size_t blocks_before = blocks();
  const std::size_t cached_before = loop_->blocks().cached_bytes();
  MemoryPeer& peer = connect();
  settle();
  EXPECT_EQ(blocks() - blocks_before, 1u);
  talk(peer, get);
  EXPECT_EQ(blocks() - blocks_before, 1u) << "it is idle again, and holds no buffer";
  const std::size_t bytes = cached_before - loop_->blocks().cached_bytes();
  // The thread sanitizer's frames also hold what other builds optimise away.
  EXPECT_TRUE(bytes <= bytes_max || !TestHeap::replaced) << bytes;
  RecordProperty("bytes", std::to_string(bytes));
}

TEST_F(ConnectionTest, AnswersInOrderForAllKindsOfHandlers) {
  serve();
  MemoryPeer& peer = connect();
  const std::string batch = std::string(get) + get_of("/slow/3") + get_of("/at-once") +
                            get_of("/large/40000") + get_of("/slow/2") + get_of("/nowhere") +
                            std::string(get);
  std::string text = talk(peer, batch);
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(text)), "200")
      << "does not wait for the slow one";
  pass(3s);
  text += peer.take();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(text)), "200 200 200 200");
  pass(2s);
  text += peer.take();
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200 200 200 404 200");
  EXPECT_EQ(answers[1].body, "slow 3\n");
  EXPECT_EQ(answers[2].body, "at once\n");
  EXPECT_EQ(answers[3].body.size(), 40000u);
  EXPECT_EQ(answers[4].body, "slow 2\n");
  EXPECT_EQ(answers[6].body, "hello\n");
}

// Each answer in its own packet would cost the peer a turn of its own.
TEST_F(ConnectionTest, PipelinedBatchIsOneSend) {
  serve();
  MemoryPeer& peer = connect();
  settle();
  std::string batch;
  for (int i = 0; i < 32; ++i) batch += i % 2 == 0 ? std::string(get) : get_of("/at-once");
  const std::uint64_t before = loop_->backend().counters().bytes_sent.value();
  peer.send(batch);
  std::size_t arrivals = 0;
  for (std::size_t seen = 0; turn() || peer.unread() != seen;) {
    if (peer.unread() != seen) ++arrivals;
    seen = peer.unread();
  }
  EXPECT_EQ(arrivals, 1u);
  const std::string text = peer.take();
  EXPECT_EQ(loop_->backend().counters().bytes_sent.value() - before, text.size());
  EXPECT_EQ(sim::parse_http_responses(text).size(), 32u);
}

TEST_F(ConnectionTest, CloseIsHonoured) {
  serve();
  MemoryPeer& peer = connect();
  const std::string text = talk(peer, get_of("/", "Connection: close\r\n") + std::string(get));
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(sim::statuses_of(answers), "200") << "the bytes behind it are no request";
  EXPECT_EQ(answers[0].header("Connection"), "close");
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(server_->counters().requests.value(), 1u);
}

// RFC 9112 §9.6: closing with unread input would reset the connection and could lose the answer.
TEST_F(ConnectionTest, BytesBehindTheLastAnswerDoNotResetIt) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/large/200000", "Connection: close\r\n"));
  settle();
  peer.send("more, although it said close");
  for (int round = 0; round < 10; ++round) {
    peer.received();
    settle();
  }
  const auto answers = sim::parse_http_responses(peer.received());
  EXPECT_EQ(sim::statuses_of(answers), "200");
  EXPECT_TRUE(peer.ended());
}

// A client that requests the close sends nothing more, so the connection need not linger.
TEST_F(ConnectionTest, CloseRequestedByTheClientDoesNotLinger) {
  serve();
  const auto open_after = [&](std::string_view request) {
    MemoryPeer& peer = connect();
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(peer, request))), "200") << request;
    EXPECT_TRUE(peer.ended());
    const auto open = server_->counters().connections_open.value();
    pass(1001ms);
    EXPECT_EQ(server_->counters().connections_open.value(), 0u);
    return open;
  };
  EXPECT_EQ(open_after(get_of("/", "Connection: close\r\n")), 0u);
  EXPECT_EQ(open_after("GET / HTTP/1.0\r\n\r\n"), 0u);
  // A client that sends more nevertheless gets no reset.
  MemoryPeer& rude = connect();
  talk(rude, get_of("/", "Connection: close\r\n"));
  talk(rude, get_of("/"));
  EXPECT_FALSE(rude.was_reset());
  // The connection lingers if the client has sent more, or may be about to: some clients send an
  // empty line behind a body.
  EXPECT_EQ(open_after(get_of("/", "Connection: close\r\n") + "\r\n"), 1u);
  EXPECT_EQ(open_after("POST /ignored HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                       "Content-Length: 2\r\n\r\nhi"),
            1u);
}

TEST_F(ConnectionTest, Http10ClosesWithoutKeepAlive) {
  serve();
  MemoryPeer& first = connect();
  auto answers = sim::parse_http_responses(talk(first, "GET / HTTP/1.0\r\n\r\n"));
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].header("Connection"), "close");
  EXPECT_TRUE(first.ended());

  MemoryPeer& second = connect();
  for (int round = 0; round < 2; ++round) {
    answers =
        sim::parse_http_responses(talk(second, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    ASSERT_EQ(sim::statuses_of(answers), "200");
    EXPECT_EQ(answers[0].header("Connection"), "keep-alive");
    EXPECT_FALSE(second.ended());
  }
}

TEST_F(ConnectionTest, HeadHasTheHeadersOfGetAndNoBody) {
  serve();
  MemoryPeer& peer = connect();
  const std::string head = "HEAD /large/100000 HTTP/1.1\r\nHost: a\r\n\r\n";
  const auto answers =
      sim::parse_http_responses(talk(peer, head + std::string(get)), {"HEAD", "GET"});
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].header("Content-Length"), "100000");
  EXPECT_EQ(answers[0].body, "");
  EXPECT_EQ(answers[1].body, "hello\n");
}

// A parse error in front of a request line does not depend on the request before it.
TEST_F(ConnectionTest, ParseErrorBehindHeadHasABody) {
  serve();
  MemoryPeer& peer = connect();
  const std::string text = talk(peer, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n\r\rX");
  const auto answers = sim::parse_http_responses(text, {"HEAD"});
  ASSERT_EQ(sim::statuses_of(answers), "200 400");
  EXPECT_FALSE(answers[1].body.empty());
}

TEST_F(ConnectionTest, BodilessStatusesHaveNoBody) {
  serve();
  for (const int code : {204, 304}) {
    MemoryPeer& peer = connect();
    const auto answers = sim::parse_http_responses(
        talk(peer, get_of("/status/" + std::to_string(code)) + std::string(get)));
    ASSERT_EQ(sim::statuses_of(answers), std::to_string(code) + " 200");
    EXPECT_EQ(answers[0].header("Content-Length"), "");
    EXPECT_EQ(answers[0].header("Content-Type"), "");
    EXPECT_FALSE(answers[0].header("Date").empty());
  }
}

TEST_F(ConnectionTest, InvalidStatusesOfHandlersBecome500) {
  serve();
  for (const char* const code : {"100", "101", "103", "199"}) {
    EXPECT_EQ(statuses(get_of("/status/" + std::string(code)) + std::string(get)), "500 200");
  }
  ASSERT_EQ(platform_.logged().size(), 4u);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /status/100: cannot send the status 100");
  EXPECT_EQ(server_->counters().handler_failures.value(), 4u);
}

TEST_F(ConnectionTest, AnswersOptionsAndUnsupportedMethods) {
  serve();
  const auto answers = sim::parse_http_responses(
      talk(connect(),
           "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"
           "DELETE / HTTP/1.1\r\nHost: a\r\n\r\nBREW / HTTP/1.1\r\nHost: a\r\n\r\n"
           "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"));
  ASSERT_EQ(answers.size(), 5u) << sim::statuses_of(answers);
  EXPECT_LT(answers[0].status, 300);
  EXPECT_LT(answers[1].status, 300);
  EXPECT_EQ(answers[1].header("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(answers[2].status, 405);
  EXPECT_EQ(answers[2].header("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(answers[3].status, 405);
  EXPECT_EQ(answers[3].header("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_GE(answers[4].status, 405);
}

TEST_F(ConnectionTest, TheDateIsRefreshedEachSecond) {
  serve();
  MemoryPeer& peer = connect();
  const auto date = [&] { return sim::parse_http_responses(talk(peer, get)).at(0).header("Date"); };
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
  pass(999ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
  pass(1ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:01 GMT");
  pass(30s + 500ms);
  EXPECT_EQ(date(), "Wed, 01 Jan 2025 00:00:31 GMT");
}

TEST_F(ConnectionTest, ParseErrorsCloseAndAreCountedByReason) {
  serve();
  MemoryPeer& peer = connect();
  const std::string text =
      talk(peer, std::string(get) + "GET / HTTP/1.1\nHost: a\r\n\r\n" + get.data());
  const auto answers = sim::parse_http_responses(text);
  ASSERT_EQ(sim::statuses_of(answers), "200 400");
  EXPECT_EQ(answers[1].header("Connection"), "close");
  EXPECT_TRUE(peer.ended());
  const auto& parse_errors = server_->counters().parse_errors;
  EXPECT_EQ(parse_errors[static_cast<std::size_t>(ParseError::bad_line_end)].value(), 1u);
}

// The server need not read the rest of a body, but it rejects a body that is already malformed.
TEST_F(ConnectionTest, MalformedBodyIsRejectedAlsoIfItsRestIsNotAwaited) {
  routes_.post("/piece/{code}", [](Request& request, int code) -> Task<Response> {
    const auto piece = co_await request.read();
    EXPECT_TRUE(piece);
    co_return Response(Status{static_cast<std::uint16_t>(code)});
  });
  routes_.post("/unread", [](Request&) -> Task<Response> { co_return Status::conflict; });
  serve();
  struct Row {
    std::string path;
    std::string headers;
    std::string body;
    std::string status;
  };
  std::uint64_t expected = 0;
  for (const Row& row :
       {Row{"/ignored", "Expect: 100-continue\r\n", "g\r\n", "400"},
        Row{"/unread", "Expect: 100-continue\r\n", "g\r\n", "400"},
        Row{"/unread", "", "g\r\n", "400"}, Row{"/piece/200", "", "1\r\na\r\ng\r\n", "400"},
        Row{"/piece/409", "", "1\r\na\r\ng\r\n", "409"}}) {
    EXPECT_EQ(statuses("POST " + row.path + " HTTP/1.1\r\nHost: a\r\n" + row.headers +
                       "Transfer-Encoding: chunked\r\n\r\n" + row.body + std::string(get)),
              row.status)
        << row.path << " " << row.headers;
    const auto& parse_errors = server_->counters().parse_errors;
    EXPECT_EQ(parse_errors[static_cast<std::size_t>(ParseError::bad_chunk_size)].value(),
              ++expected);
  }
}

TEST_F(ConnectionTest, AHandlerMayAnswerAPartOfABodyThatIsTooLarge) {
  routes_.post("/piece", [](Request& request) -> Task<Response> {
    EXPECT_TRUE(co_await request.read());
    co_return Response(Status::ok);
  });
  serve({.body_max = 4});
  EXPECT_EQ(statuses("POST /piece HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "1\r\na\r\n5\r\nbcdef\r\n" +
                     std::string(get)),
            "200");
}

TEST_F(ConnectionTest, AnswersOfLimitsArrive) {
  serve();
  const std::string flood(100 * 1024, 'x');
  EXPECT_EQ(statuses(get_of("/" + std::string(9000, 'a'))), "414");
  EXPECT_EQ(statuses(get_of("/", "X: " + flood + "\r\n")), "431");
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_EQ(statuses(get_of("/", many)), "431");
  // The client would lose its answer to these 50 KiB without the lingering close.
  EXPECT_EQ(statuses("POST /ignored HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" +
                     flood.substr(0, 50 * 1024)),
            "413");
}

TEST_F(ConnectionTest, LingeringEndsAfterASecondOr64KiB) {
  serve();
  MemoryPeer& quiet = connect();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(talk(quiet, "bad\r\n\r\n"))), "400");
  EXPECT_TRUE(quiet.ended());
  pass(900ms);
  EXPECT_EQ(server_->counters().connections_open.value(), 1u);
  pass(101ms);
  EXPECT_EQ(server_->counters().connections_open.value(), 0u);

  MemoryPeer& flooding = connect();
  talk(flooding, "bad\r\n\r\n");
  const std::string flood(100 * 1024, 'x');
  talk(flooding, flood);
  EXPECT_EQ(server_->counters().connections_open.value(), 0u);
}

// A peer with endless input must not keep other connections from the loop.
TEST_F(ConnectionTest, FloodOfRequestsDoesNotStarveOthers) {
  serve();
  MemoryPeer& flooding = connect();
  MemoryPeer& other = connect();
  settle();
  std::string flood;
  while (flood.size() < 64 * 1024) flood += get;
  std::size_t turns = 0;
  other.send(get);
  flooding.send(flood);
  while (other.unread() == 0 && turns < 4) {
    turn();
    flooding.received();
    flooding.send(flood);  // cut anywhere; a parse error would show
    ++turns;
  }
  EXPECT_LT(turns, 4u);
}

TEST_F(ConnectionTest, LogLineOfAnExceptionIsOneLine) {
  routes_.get("/throws", []() -> Response { throw std::runtime_error("a secret\nof\tmine"); });
  serve();
  const auto answers =
      sim::parse_http_responses(talk(connect(), get_of("/throws") + std::string(get)));
  ASSERT_EQ(sim::statuses_of(answers), "500 200");
  EXPECT_EQ(answers[0].body, R"({"title":"Internal Server Error","status":500})");
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /throws: handler failed: exception: a secret\\x0aof\\x09mine");
}

TEST_F(ConnectionTest, ForbiddenHeadersBecome500) {
  routes_.get("/bad/{kind}", [](std::string_view kind) {
    Response response = text("never seen\n");
    if (kind == "lf") response.add_header("X", "a\r\nSet-Cookie: b");
    if (kind == "nul") response.set_header("X", std::string_view("a\0b", 3));
    if (kind == "name") response.add_header("X Y", "a");
    if (kind == "length") response.add_header("content-length", "3");
    if (kind == "coding") response.set_header("Transfer-Encoding", "chunked");
    if (kind == "date") response.add_header("Date", "now");
    if (kind == "connection") response.add_header("Connection", "upgrade");
    return response;
  });
  serve();
  for (const char* const kind : {"lf", "nul", "name", "length", "coding", "date", "connection"}) {
    const auto answers = sim::parse_http_responses(
        talk(connect(), get_of("/bad/" + std::string(kind)) + std::string(get)));
    ASSERT_EQ(sim::statuses_of(answers), "500 200") << kind;
    EXPECT_EQ(answers[0].header("Set-Cookie"), "");
    EXPECT_EQ(answers[0].body, R"({"title":"Internal Server Error","status":500})");
  }
  EXPECT_EQ(platform_.logged().size(), 7u);
  EXPECT_EQ(platform_.logged()[3], "weir: GET /bad/length: cannot send the header content-length");
}

TEST_F(ConnectionTest, LargeBodiesArriveWhole) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/large/10000000") + std::string(get));
  for (int round = 0; round < 1000 && peer.received().size() < 10'000'200; ++round) settle();
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200");
  EXPECT_EQ(answers[0].body, std::string(10'000'000, 'x'));
}

Task<Result<>> two_pieces(BodySink& sink) {
  if (auto sent = co_await sink.write("one "); !sent) co_return sent;
  co_return co_await sink.write("two");
}

// RFC 9110 §9.3.2: the response to HEAD has the headers of the response to GET.
TEST_F(ConnectionTest, HeadHasTheHeadOfGetForEveryKindOfResponse) {
  routes_.get("/streamed", [] { return stream(text_type, two_pieces); });
  routes_.get("/throws", []() -> Response { throw std::runtime_error("no"); });
  routes_.get("/header", [] {
    Response response = text("body");
    response.add_header("X-Name", "value");
    return response;
  });
  serve();
  for (const std::string path : {"/", "/at-once", "/large/1", "/large/100000", "/status/200",
                                 "/status/204", "/status/205", "/status/304", "/status/404",
                                 "/status/600", "/streamed", "/throws", "/header", "/nowhere"}) {
    const std::string of_get = talk(connect(), get_of(path));
    const std::string head = of_get.substr(0, of_get.find("\r\n\r\n") + 4);
    EXPECT_TRUE(head.ends_with("\r\n\r\n")) << of_get;
    EXPECT_EQ(talk(connect(), "HEAD " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"), head) << path;
  }
}

TEST_F(ConnectionTest, RejectedHeadRequestsGetNoBodyIfTheirMethodIsKnown) {
  serve();
  struct Row {
    std::string_view sent;
    std::string_view status;
    bool has_body;
  };
  for (const Row& row :
       {Row{"HEAD / HTTP/1.1\r\nHost: a\r\nX : y\r\n", "400", false},
        Row{"HEAD / HTTP/2.0\r\n", "505", false},
        Row{"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", "413", false},
        Row{"HEAD / HT", "408", false}, Row{"HEAD", "408", true}, Row{"HEAD\t", "400", true},
        Row{"GET / HT", "408", true}}) {
    MemoryPeer& peer = connect();
    talk(peer, get);
    const std::size_t before = peer.received().size();
    talk(peer, row.sent);
    pass(10s);
    const std::string answer = peer.received().substr(before);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(row.status))) << answer;
    EXPECT_FALSE(answer.contains("Content-Length: 0\r\n")) << row.sent;
    EXPECT_EQ(!answer.ends_with("\r\n\r\n"), row.has_body) << row.sent << "\n" << answer;
    EXPECT_TRUE(peer.ended());
  }
}

TEST_F(ConnectionTest, RequestsBeforeAHalfCloseAreAllAnswered) {
  serve();
  MemoryPeer& peer = connect();
  peer.send(get_of("/slow/1") + get_of("/at-once") + get_of("/slow/2") + std::string(get));
  peer.finish();
  pass(3s);
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200 200");
  EXPECT_EQ(answers[2].body, "slow 2\n");
  EXPECT_TRUE(peer.ended());
  EXPECT_FALSE(peer.was_reset());
  EXPECT_EQ(server_->counters().connections_open.value(), 0U);
}

TEST_F(ConnectionTest, RequestKnowsTheAddressOfItsClient) {
  routes_.get("/peer", [](Request& request) { return text(request.peer_address().to_string()); });
  routes_.get("/peer/later", [](Request& request) -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text(request.peer_address().to_string());
  });
  serve();
  const auto address_of = [this](MemoryPeer& peer, std::string_view path) {
    talk(peer, get_of(path));
    pass(1s);
    const auto answers = sim::parse_http_responses(peer.received());
    return answers.empty() ? std::string() : answers.back().body;
  };
  MemoryPeer& one = connect();
  MemoryPeer& other = connect();
  const std::string first = address_of(one, "/peer");
  EXPECT_TRUE(os::Address::parse(first)) << first;
  EXPECT_NE(first, address_.to_string()) << "it is not that of the server";
  EXPECT_EQ(address_of(one, "/peer/later"), first);
  EXPECT_NE(address_of(other, "/peer"), first);
}

TEST_F(ConnectionTest, AddressOfAClientIsKnownAfterItHasGone) {
  std::string first;
  std::string last;
  routes_.get("/peer", [&](Request& request) -> Task<Response> {
    first = request.peer_address().to_string();
    request.on_end(
        [&](Request& ended, const SentResponse&) { last = ended.peer_address().to_string(); });
    std::ignore = co_await sleep(10s);
    co_return Status::ok;
  });
  serve();
  MemoryPeer& peer = connect();
  talk(peer, get_of("/peer"));
  EXPECT_EQ(last, "");
  peer.reset();
  pass(1s);
  EXPECT_EQ(last, first);
}

Task<Result<>> write_and_note(BodySink& sink, bool* ran) {
  *ran = true;
  co_return co_await sink.write("not to be sent");
}

// The client would take a body for the beginning of the next response.
TEST_F(ConnectionTest, BodyOfABodilessStatusIsNotSent) {
  bool streamed = false;
  const auto with_status = [](Response response, int code) {
    response.set_status(Status{static_cast<std::uint16_t>(code)});
    return response;
  };
  routes_.get("/text/{code}",
              [with_status](int code) { return with_status(text("not to be sent"), code); });
  routes_.get("/stream/{code}", [with_status, &streamed](int code) {
    return with_status(stream(text_type, write_and_note, &streamed), code);
  });
  serve();
  for (const std::string path : {"/text/", "/stream/"}) {
    for (const std::string code : {"204", "205", "304"}) {
      const std::string raw = talk(connect(), get_of(path + code) + std::string(get));
      EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(raw)), code + " 200") << path;
      EXPECT_FALSE(raw.contains("not to be sent")) << raw;
      EXPECT_FALSE(raw.contains("Transfer-Encoding")) << raw;
    }
  }
  EXPECT_FALSE(streamed);
}

TEST_F(ConnectionTest, LingeringConnectionHoldsNoBuffer) {
  serve({.connections_max = 1});
  const auto buffers = [this] {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use(BlockUse::buffer);
  };
  const std::size_t before = buffers();
  MemoryPeer& closing = connect();
  settle();
  MemoryPeer& beyond = connect();
  settle();
  talk(closing, "bad\r\n\r\n");
  EXPECT_TRUE(closing.ended());
  EXPECT_TRUE(beyond.ended());
  EXPECT_EQ(platform_.open_descriptors(), 3U) << "the listener and both connections";
  EXPECT_EQ(buffers(), before);
  talk(closing, "dropped");
  talk(beyond, "dropped");
  EXPECT_EQ(platform_.open_descriptors(), 3U);
  EXPECT_EQ(buffers(), before);
}

}  // namespace
}  // namespace weir::http::connection_test
