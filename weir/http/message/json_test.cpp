// Tests of JSON bodies of handlers, alone and through a server.
#include "weir/http/message/json.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/json/read.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::json_test {
namespace {

struct Ping {
  int sequence;
};
struct Pong {
  int sequence;
  std::string from;
};
struct Order {
  std::string customer;
  std::vector<Ping> pings;
};

Ping echo(Ping ping) {
  return ping;
}
Pong from(std::string_view who, int number, Ping ping) {
  return {ping.sequence + number, std::string(who)};
}
Task<Pong> later(Request& request, Ping ping) {
  std::ignore = co_await sleep(1s);
  co_return Pong{ping.sequence, std::string(request.path())};
}

class JsonHandlerTest : public LoopTest {
 protected:
  template <class F>
  Response answer(F function, std::string_view body, std::string_view header_lines = {},
                  const std::vector<std::string_view>& caught = {}) {
    request_.emplace("POST /path", body, header_lines);
    const Handler handler = Handler::of(std::move(function));
    params_.clear();
    for (const std::string_view text : caught) params_.add(text);
    if (!handler.is_async()) return handler.call(request_->request(), params_);
    return run(handler.start(request_->request(), params_));
  }
  template <class F>
  std::string text_of(F function, std::string_view body = {},
                      const std::vector<std::string_view>& caught = {}) {
    const Response response = answer(std::move(function), body, {}, caught);
    EXPECT_EQ(response.status(), Status::ok);
    EXPECT_EQ(response.content_type(), "application/json");
    return std::string(response.body().text());
  }

  std::optional<TextRequest> request_;
  PathParams params_;
};

TEST_F(JsonHandlerTest, ReadsAndReturnsAStruct) {
  EXPECT_EQ(text_of(echo, R"({"sequence": 2})"), R"({"sequence":2})");
  EXPECT_EQ(text_of([](Ping ping) { return ping; }, R"({"sequence":-5})"), R"({"sequence":-5})");
  EXPECT_EQ(text_of([](Ping&& ping) { return ping; }, R"({"sequence":7})"), R"({"sequence":7})");
}

TEST_F(JsonHandlerTest, TakesTheBodyAfterRequestAndPathParams) {
  EXPECT_EQ(text_of(from, R"({"sequence":2})", {"me", "40"}), R"({"sequence":42,"from":"me"})");
  const auto with_request = [](const Request& request, int number, Ping ping) {
    return Pong{ping.sequence * number, std::string(request.path())};
  };
  EXPECT_EQ(text_of(with_request, R"({"sequence":2})", {"3"}), R"({"sequence":6,"from":"/path"})");
}

TEST_F(JsonHandlerTest, ReadsTheBodyForHandlersThatWait) {
  EXPECT_EQ(text_of(later, R"({"sequence":3})"), R"({"sequence":3,"from":"/path"})");
  EXPECT_EQ(elapsed(), 1s);
  const auto scoped = [](Scope& scope, int number, Ping ping) -> Task<Result<Ping>> {
    const auto child = []() -> Task<> { std::ignore = co_await sleep(1s); };
    scope.spawn(child());
    co_return Ping{ping.sequence + number};
  };
  EXPECT_EQ(text_of(scoped, R"({"sequence":3})", {"4"}), R"({"sequence":7})");
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(JsonHandlerTest, ReadsAndReturnsContainersAndVariants) {
  EXPECT_EQ(
      text_of([](std::vector<Ping> pings) { return pings; }, R"([{"sequence":1},{"sequence":2}])"),
      R"([{"sequence":1},{"sequence":2}])");
  EXPECT_EQ(text_of([](std::map<std::string, int> counts) { return counts; }, R"({"a":1})"),
            R"({"a":1})");
  EXPECT_EQ(text_of(
                [](std::variant<Ping, Order> either) {
                  return either.index() == 1 ? std::vector{1} : std::vector<int>();
                },
                R"({"customer":"x","pings":[]})"),
            "[1]");
}

TEST_F(JsonHandlerTest, ReturnsJsonWithoutTakingABody) {
  EXPECT_FALSE(Handler::of([] { return Pong{1, "x"}; }).is_async());
  EXPECT_EQ(text_of([] { return Pong{1, "x"}; }), R"({"sequence":1,"from":"x"})");
  EXPECT_EQ(text_of([]() -> Result<Pong> { return Pong{1, "x"}; }), R"({"sequence":1,"from":"x"})");
  EXPECT_EQ(answer([]() -> Result<Pong> { return fail(Errc::not_found); }, {}).status(),
            Status::not_found);
}

TEST_F(JsonHandlerTest, TakesABodyWithoutReturningJson) {
  const Response response =
      answer([](Ping ping) { return text(std::to_string(ping.sequence)); }, R"({"sequence":9})");
  EXPECT_EQ(response.body().text(), "9");
  EXPECT_EQ(response.content_type(), text_type);
  EXPECT_EQ(answer([](Ping) { return Status::accepted; }, R"({"sequence":9})").status(),
            Status::accepted);
  EXPECT_EQ(
      answer([](Ping) { return json(Ping{1}, Status::created); }, R"({"sequence":9})").status(),
      Status::created);
}

TEST_F(JsonHandlerTest, AnswersAnInvalidBodyWithAllPositions) {
  int calls = 0;
  const auto count = [&calls](Order) {
    ++calls;
    return Status::ok;
  };
  const Response response =
      answer(count, R"({"customer":"c","pings":[{"sequence":"2"},{"sequence":3},{}]})");
  EXPECT_EQ(response.status(), Status::unprocessable_content);
  EXPECT_EQ(sent_body(response),
            R"({"title":"Unprocessable Content","status":422,)"
            R"-("detail":"pings[0].sequence: expected an integer, found a string (at byte 37)",)-"
            R"-("errors":[{"in":"body","pointer":"/pings/0/sequence",)-"
            R"("detail":"expected an integer, found a string","offset":37},)"
            R"({"in":"body","pointer":"/pings/2/sequence","detail":"missing","offset":58}]})");
  EXPECT_EQ(answer(count, "").status(), Status::bad_request);
  EXPECT_EQ(answer(count, R"({"customer":"c","pings":[]} )" + std::string(1, '\0')).status(),
            Status::bad_request);
  EXPECT_EQ(calls, 0);
}

TEST_F(JsonHandlerTest, LimitsAndEscapesTheBodyTextInAnErrorResponse) {
  const Response response =
      answer(echo, "{\"<script>\x7f\u00e4\n" + std::string(10'000, 'x') + "\":1}");
  EXPECT_EQ(response.status(), Status::bad_request);
  EXPECT_LT(sent_body(response).size(), 600u);
}

TEST_F(JsonHandlerTest, AnswersOtherContentTypesWith415) {
  const std::string_view body = R"({"sequence":2})";
  for (const std::string_view type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8",
        "application/json;charset=UTF-8", "application/json ;a=b", "application/problem+json",
        "application/vnd.api+json; version=1"}) {
    const std::string line = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(answer(echo, body, line).status(), Status::ok) << type;
  }
  for (const std::string_view type :
       {"text/plain", "application/x-www-form-urlencoded", "json", "", "application/jsonp", "+json",
        "text/html; a=application/json", "application/json, text/html"}) {
    const std::string line = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(answer(echo, body, line).status(), Status::unsupported_media_type) << type;
  }
}

TEST_F(JsonHandlerTest, AnswersOtherCharsetsWith415) {
  const std::string_view body = R"({"sequence":2})";
  for (const std::string_view parameters :
       {"charset=utf-8", "Charset=\"UTF-8\"", "charset=us-ascii", "charset=utf8",
        "a=\";charset=latin1\" ; charset=utf-8", "a=\"\\\"\"", "", ";", " ; "}) {
    const std::string line = "Content-Type: application/json;" + std::string(parameters) + "\r\n";
    EXPECT_EQ(answer(echo, body, line).status(), Status::ok) << parameters;
  }
  for (const std::string_view parameters :
       {"charset=latin1", "charset=iso-8859-1", "charset=utf-16", "CHARSET=\"UTF-16LE\"",
        "a=b; charset=utf-7", "charset=utf-8;charset=latin1", "charset=", "charset", "charset=\"",
        "charset=\"utf-8\\", "charset =latin1", "charset= latin1x y", "charset=\"utf-8\"x",
        "=utf-8", "a=\"b\";charset=latin1", ";;charset=latin1"}) {
    const std::string line = "Content-Type: application/json;" + std::string(parameters) + "\r\n";
    EXPECT_EQ(answer(echo, body, line).status(), Status::unsupported_media_type) << parameters;
  }
}

TEST_F(JsonHandlerTest, ParametersOfAContentTypeFollowTheGrammar) {
  const std::string_view body = R"({"sequence":2})";
  const auto status = [&](std::string_view parameters) {
    return answer(echo, body, "Content-Type: a/b+json" + std::string(parameters) + "\r\n").status();
  };
  for (const std::string_view parameters : {"",
                                            ";",
                                            " ;",
                                            ";;",
                                            ";a=b",
                                            ";a=b;c=d",
                                            ";;a=b;",
                                            "; a=b ; c=d ;",
                                            ";a=\"\"",
                                            ";a=\"b\"",
                                            ";a=\"b\";c=d",
                                            ";a=\"b\" ; c=\"d\"",
                                            ";a=\"\\\"\"",
                                            ";a=\"\\\\\"",
                                            ";a=\"b;charset=x\"",
                                            ";a=\"\\\";charset=x\"",
                                            ";a=\"=\"",
                                            ";charsets=x",
                                            ";xcharset=x",
                                            ";charset=\"utf-8\";a=b",
                                            ";charset=utf-8 ;a=b",
                                            ";charset=US-ASCII",
                                            ";charset=UTF8",
                                            ";charset=utf-8;charset=utf8"}) {
    EXPECT_EQ(status(parameters), Status::ok) << parameters;
  }
  for (const std::string_view parameters : {";a",
                                            ";a=",
                                            ";=b",
                                            ";a=b c",
                                            ";a b=c",
                                            ";a =b",
                                            ";a=b;c",
                                            ";a=\"",
                                            ";a=\"b",
                                            ";a=\"b\\\"",
                                            ";a=\"b\\",
                                            ";a=\"b\"c",
                                            ";a=\"b\" c",
                                            ";a=\"b\"\"c\"",
                                            ";a=b\"c\"",
                                            ";a=b,c",
                                            ";a=(b)",
                                            ";charset=\"\"",
                                            ";charset=utf-8x",
                                            ";charset=xutf-8",
                                            ";charset=\"utf-8 \"",
                                            ";a=\"\\\\\";charset=x",
                                            ";a=\"b\";charset=x",
                                            ";a=b;charset=x;c=d",
                                            ";charset=utf-16;"}) {
    EXPECT_EQ(status(parameters), Status::unsupported_media_type) << parameters;
  }
}

TEST_F(JsonHandlerTest, TypesWithTheSuffixJsonAreJson) {
  const std::string_view body = R"({"sequence":2})";
  const auto status = [&](std::string_view lines) { return answer(echo, body, lines).status(); };
  for (const std::string_view type : {"a/b+json", "A/B+JSON", "x+json", " application/json "}) {
    EXPECT_EQ(status("Content-Type: " + std::string(type) + "\r\n"), Status::ok) << type;
  }
  for (const std::string_view type : {"+json", "json", "a/bjson", "a/b+jsonx", "application/jso",
                                      "application/json+", "a/b+json x", "application/ json"}) {
    EXPECT_EQ(status("Content-Type: " + std::string(type) + "\r\n"), Status::unsupported_media_type)
        << type;
  }
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Type: application/json\r\n"),
            Status::unsupported_media_type);
  EXPECT_EQ(status("Content-Encoding: identity\r\nX: y\r\nContent-Encoding: IDENTITY\r\n"),
            Status::ok);
  EXPECT_EQ(status("Content-Encoding: identitys\r\n"), Status::unsupported_media_type);
  EXPECT_EQ(status("Content-Typ: text/plain\r\nContent-Encodings: gzip\r\n"), Status::ok);
}

TEST_F(JsonHandlerTest, AnswersEncodedBodiesWith415) {
  const std::string_view body = R"({"sequence":2})";
  EXPECT_EQ(answer(echo, body, "Content-Encoding: Identity\r\n").status(), Status::ok);
  EXPECT_EQ(answer(later, body, "Content-Encoding: \r\n").status(), Status::ok);
  for (const std::string_view line :
       {"Content-Encoding: gzip\r\n", "content-encoding: br\r\n",
        "Content-Type: application/json\r\nContent-Encoding: identity, deflate\r\n",
        "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n"}) {
    EXPECT_EQ(answer(echo, body, line).status(), Status::unsupported_media_type) << line;
    EXPECT_EQ(answer(later, body, line).status(), Status::unsupported_media_type) << line;
  }
}

TEST_F(JsonHandlerTest, AnswersNotFoundIfAPathParamDoesNotFit) {
  EXPECT_EQ(answer(from, R"({"sequence":2})", {}, {"me", "x"}).status(), Status::not_found);
}

TEST(JsonBody, WritesBodiesOfEveryLength) {
  for (const std::size_t size : {0u, 1u, 59u, 60u, 61u, 62u, 63u, 1021u, 1022u, 1023u, 1024u, 1025u,
                                 16'383u, 16'384u, 100'000u}) {
    const std::vector<std::string> texts{std::string(size, 'x'), "y"};
    const Response response = json(texts);
    const auto back = weir::json::read<std::vector<std::string>>(response.body().text());
    ASSERT_TRUE(back) << size;
    EXPECT_EQ(*back, texts);
    EXPECT_FALSE(response.body().is_stream());
  }
}

TEST(JsonBody, HasTheGivenStatusAndTheTypeOfJson) {
  const Response ok = json(std::vector{1, 2});
  EXPECT_EQ(ok.status(), Status::ok);
  EXPECT_EQ(ok.content_type(), "application/json");
  EXPECT_EQ(ok.body().text(), "[1,2]");
  const Response created = json(std::vector<int>(), Status::created);
  EXPECT_EQ(created.status(), Status::created);
  EXPECT_EQ(created.body().text(), "[]");
}

TEST_F(JsonHandlerTest, ShortTextsNeedNoMemoryBlock) {
  const ScopedBlockPool pool(loop_->blocks());
  const auto blocks_of = [this](std::size_t size) {
    const std::size_t before = loop_->blocks().blocks_in_use();
    const Response response = json(std::string(size - 2, 'x'));
    EXPECT_EQ(response.body().text().size(), size);
    return loop_->blocks().blocks_in_use() - before;
  };
  EXPECT_EQ(blocks_of(Body::inline_max), 0U);
  EXPECT_EQ(blocks_of(Body::inline_max + 1), 1U);
}

// Properties of signatures.

using Full = Signature<Task<Result<Pong>> (*)(Request&, Scope&, int, std::string, Ping)>;
static_assert(Full::takes_body && Full::takes_scope && Full::is_valid);
static_assert(Full::shape.params == 2);
static_assert(!Signature<Pong (*)(int)>::takes_body && !Signature<Pong (*)(int)>::is_async);
static_assert(!Signature<Pong (*)(Ping&)>::takes_body);
static_assert(Signature<Pong (*)(Ping, int)>::takes_body, "the order of parameters is free");
static_assert(!Signature<Pong (*)(Ping, Ping)>::is_valid, "there is one body");

// Tests through a server.

class JsonWireTest : public HttpTest {
 protected:
  JsonWireTest() {
    routes_.post("/ping", echo);
    routes_.post("/later/{number}", [](int number, Ping ping) -> Task<Pong> {
      std::ignore = co_await sleep(1s);
      co_return Pong{number + ping.sequence, "later"};
    });
    routes_.post("/small", echo, {.body_max = 16});
    routes_.get("/pong", [] { return Pong{1, std::string(100, 'x')}; });
  }
  static std::string post(std::string_view path, std::string_view body) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
  }
};

TEST_F(JsonWireTest, ReadsABodyInOneSegmentOrMany) {
  serve();
  const std::string request = post("/ping", R"({"sequence": 2})");
  for (const std::size_t step : {request.size(), std::size_t{7}, std::size_t{1}}) {
    MemoryPeer& peer = connect();
    std::string received;
    for (std::size_t at = 0; at < request.size(); at += step) {
      received += talk(peer, request.substr(at, step));
    }
    const auto answers = sim::parse_http_responses(received);
    ASSERT_EQ(sim::statuses_of(answers), "200");
    EXPECT_EQ(answers[0].body, R"({"sequence":2})");
    EXPECT_EQ(answers[0].header("Content-Type"), "application/json");
    EXPECT_EQ(answers[0].header("Content-Length"), "14");
  }
}

TEST_F(JsonWireTest, AnswersPipelinedRequests) {
  serve();
  std::string batch;
  for (int i = 0; i < 10; ++i) {
    batch += post("/ping", "{\"sequence\":" + std::to_string(i) + "}");
    batch += post("/ping", "{\"sequence\":}");
  }
  const auto answers = sim::parse_http_responses(talk(connect(), batch));
  ASSERT_EQ(answers.size(), 20u);
  for (std::size_t i = 0; i < answers.size(); i += 2) {
    EXPECT_EQ(answers[i].body, "{\"sequence\":" + std::to_string(i / 2) + "}");
    EXPECT_EQ(answers[i + 1].status, 400);
  }
}

TEST_F(JsonWireTest, ReadsAChunkedBody) {
  serve();
  const std::string head = "POST /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(statuses(head + "5\r\n{\"seq\r\na\r\nuence\": 12\r\n1\r\n}\r\n0\r\n\r\n"), "200");
  EXPECT_EQ(statuses(head + "2\r\n{}\r\n0\r\n\r\n"), "422");
}

TEST_F(JsonWireTest, AnswersATooLargeBodyWith413) {
  serve();
  EXPECT_EQ(statuses(post("/small", R"({"sequence":123})")), "200");
  EXPECT_EQ(statuses(post("/small", R"({"sequence":1234})")), "413");
  EXPECT_EQ(statuses("POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "11\r\n{\"sequence\":1234}\r\n0\r\n\r\n"),
            "413");
}

TEST_F(JsonWireTest, AnswersAStalledBodyWith408) {
  serve();
  MemoryPeer& peer = connect();
  std::string request = post("/ping", R"({"sequence":123})");
  request.pop_back();
  talk(peer, request);
  pass(std::chrono::seconds(30));
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "408");
}

TEST_F(JsonWireTest, AnswersATruncatedBodyWith400) {
  serve();
  MemoryPeer& peer = connect();
  std::string request = post("/ping", R"({"sequence":123})");
  request.pop_back();
  talk(peer, request);
  peer.finish();
  settle();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "400");
}

TEST_F(JsonWireTest, WaitsForHandlersThatWait) {
  serve();
  MemoryPeer& peer = connect();
  EXPECT_EQ(talk(peer, post("/later/40", R"({"sequence":2})")), "");
  pass(std::chrono::seconds(1));
  const auto answers = sim::parse_http_responses(peer.received());
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].body, R"({"sequence":42,"from":"later"})");
  EXPECT_EQ(statuses(post("/later/x", R"({"sequence":2})")), "404");
}

TEST_F(JsonWireTest, AnswersHeadWithTheLengthOfTheJson) {
  serve();
  const auto answers = sim::parse_http_responses(
      talk(connect(), "HEAD /pong HTTP/1.1\r\nHost: a\r\n\r\n"), {"HEAD"});
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].header("Content-Length"), std::to_string(100 + 24));
}

}  // namespace
}  // namespace weir::http::json_test
