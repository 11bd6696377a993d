// Tests of Request::on_end() and of filters around the errors of the server.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::request_end_test {
namespace {

/// Describes each request that ends, and marks each response.
struct Observer {
  std::string* lines;

  std::optional<Response> before(Request& request) const {
    request.on_end([out = lines](Request& ended, const SentResponse& sent) {
      out->append(ended.method_text()).append(" ").append(ended.path_text()).append(" ");
      out->append(ended.route()).append(" ").append(std::to_string(code_of(sent.status)));
      out->append(" ").append(std::to_string(sent.body_bytes));
      out->append(sent.complete ? "\n" : " cut\n");
    });
    return std::nullopt;
  }
  void after(Request&, Response& response) const { response.set_header("X-Mark", "seen"); }
};

Task<Result<>> write_slowly(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("12345"));
  WEIR_CO_TRY(co_await sleep(1s));
  co_return co_await sink.write("67890");
}
Task<Result<>> write_and_fail(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("123"));
  co_return fail(Errc::not_found);
}
/// Fails when the head was sent, and before the first byte.
Task<Result<>> fail_slowly(BodySink&) {
  std::ignore = co_await sleep(1s);
  co_return fail(Errc::not_found);
}
Task<Response> answer_slowly() {
  std::ignore = co_await sleep(2s);
  co_return text("slow");
}

void add_routes(Router& routes, std::string* lines) {
  routes.use(Observer(lines));
  routes.get("/text/{x}", [](std::string_view x) { return text(x); });
  routes.get("/slow", answer_slowly);
  routes.get("/late", answer_slowly, {.timeout = 1s});
  routes.get("/throw", []() -> Response { throw std::runtime_error("thrown"); });
  routes.get("/stream", [] { return stream("a/b", write_slowly); });
  routes.get("/broken", [] { return stream("a/b", write_and_fail); });
  routes.get("/failing", [] { return stream("a/b", fail_slowly); });
  routes.get("/large", [] { return text(std::string(1'000'000, 'x')); });
  routes.post("/post", [](Json<std::string> body) { return text(std::move(*body)); },
              {.body_max = 4});
}

class RequestEndTest : public HttpTest {
 protected:
  RequestEndTest() { add_routes(routes_, &lines_); }
  std::string ask(std::string_view line, std::string_view rest = "\r\n") {
    MemoryPeer& peer = connect();
    std::string answer =
        talk(peer, std::string(line) + " HTTP/1.1\r\nHost: a\r\n" + std::string(rest));
    pass(3s);
    return answer + peer.take();
  }

  std::string lines_;
};

TEST_F(RequestEndTest, ReportsWholeResponses) {
  serve();
  ask("GET /text/word");
  ask("HEAD /text/word");
  ask("GET /slow");
  ask("GET /none");
  EXPECT_EQ(lines_.substr(0, lines_.rfind("GET")),
            "GET /text/word /text/{x} 200 4\n"
            "HEAD /text/word /text/{x} 200 0\n"
            "GET /slow /slow 200 4\n");
  EXPECT_TRUE(lines_.substr(lines_.rfind("GET")).starts_with("GET /none  404 "));
  EXPECT_FALSE(lines_.ends_with(" 0\n")) << "the page of the error counts";
}

TEST_F(RequestEndTest, ReportsStreamsWhenTheyEnd) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(lines_, "");
  pass(1s);
  EXPECT_EQ(lines_, "GET /stream /stream 200 10\n");
  ask("HEAD /stream");
  EXPECT_EQ(lines_, "GET /stream /stream 200 10\nHEAD /stream /stream 200 0\n");
}

using ObservedGroupTest = HttpTest;

// The connection uses one Call for all its requests.
TEST_F(ObservedGroupTest, AStreamWithoutAnObserverLeavesNoFactsToTheNextRequest) {
  std::string lines;
  routes_.get("/stream", [] { return stream("a/b", write_slowly); });
  routes_.group("/observed", Observer(&lines)).get("/text", [] { return text("word"); });
  serve();
  MemoryPeer& peer = connect();
  talk(peer,
       "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
       "GET /observed/text HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(1s);
  EXPECT_EQ(lines, "GET /observed/text /observed/text 200 4\n");
}

TEST_F(RequestEndTest, ReportsResponsesThatAreCutOff) {
  serve();
  ask("GET /broken");
  EXPECT_EQ(lines_, "GET /broken /broken 200 3 cut\n");
  lines_.clear();
  MemoryPeer& peer = connect();
  talk(peer, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  peer.reset();
  pass(3s);
  EXPECT_EQ(lines_, "GET /stream /stream 200 5 cut\n");
}

TEST_F(RequestEndTest, ReportsWhatWasSentOfACut) {
  serve();
  ask("GET /failing");
  EXPECT_EQ(lines_, "GET /failing /failing 200 0 cut\n");
  lines_.clear();
  MemoryPeer& reader = connect();
  reader.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  reader.reset();
  pass(3s);
  constexpr std::string_view start = "GET /large /large 200 ";
  ASSERT_TRUE(lines_.starts_with(start) && lines_.ends_with(" cut\n")) << lines_;
  EXPECT_GT(std::stoul(lines_.substr(start.size())), 0U);
  EXPECT_LT(std::stoul(lines_.substr(start.size())), 1'000'000U);
  lines_.clear();
  MemoryPeer& early = connect();
  early.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  settle();
  early.reset();
  pass(3s);
  EXPECT_TRUE(lines_.ends_with(" 0 cut\n")) << lines_;
}

TEST_F(RequestEndTest, FiltersMarkTheErrorsOfTheServer) {
  serve();
  for (const char* line : {"GET /throw", "GET /late", "GET /none", "POST /slow"}) {
    EXPECT_TRUE(ask(line).contains("X-Mark: seen\r\n")) << line;
  }
  const std::string head = "Content-Type: application/json\r\nContent-Length: 5\r\n\r\n12345";
  const std::string too_large = ask("POST /post", head);
  EXPECT_TRUE(too_large.starts_with("HTTP/1.1 413 ")) << too_large;
  EXPECT_TRUE(too_large.contains("X-Mark: seen\r\n"));
  EXPECT_TRUE(lines_.contains("GET /throw /throw 500 "));
  EXPECT_TRUE(lines_.contains("GET /late /late 503 "));
  EXPECT_TRUE(lines_.contains("POST /slow  405 "));
}

TEST_F(RequestEndTest, ReportsEachRequestOfAConnection) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer,
       "GET /text/a HTTP/1.1\r\nHost: a\r\n\r\nGET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
       "GET /text/bcd HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(3s);
  EXPECT_EQ(lines_,
            "GET /text/a /text/{x} 200 1\nGET /stream /stream 200 10\n"
            "GET /text/bcd /text/{x} 200 3\n");
}

class RequestEndH2Test : public H2ConnectionFixture, public ::testing::Test {
 protected:
  RequestEndH2Test() { add_routes(routes_, &lines_); }
  void ask(std::uint32_t stream, std::string_view path) {
    answer(frames::get(stream, path));
    pass(3s);
    received();
  }
  std::string lines_;
};

TEST_F(RequestEndH2Test, ReportsResponses) {
  begin();
  ask(1, "/text/word");
  ask(3, "/slow");
  ask(5, "/stream");
  EXPECT_EQ(lines_,
            "GET /text/word /text/{x} 200 4\nGET /slow /slow 200 4\nGET /stream /stream 200 10\n");
  lines_.clear();
  ask(7, "/broken");
  EXPECT_EQ(lines_, "GET /broken /broken 200 3 cut\n");
  lines_.clear();
  answer(frames::get(9, "/stream"));
  peer_->reset();
  pass(3s);
  EXPECT_EQ(lines_, "GET /stream /stream 200 5 cut\n");
}

TEST_F(RequestEndH2Test, ReportsWhatWasSentOfACut) {
  begin();
  ask(1, "/failing");
  EXPECT_EQ(lines_, "GET /failing /failing 200 0 cut\n");
  lines_.clear();
  answer(frames::get(3, "/large"));
  answer(frames::rst_stream(3));
  EXPECT_EQ(lines_, "GET /large /large 200 65535 cut\n");
  lines_.clear();
  answer(frames::get(5, "/slow"));
  answer(frames::rst_stream(5));
  pass(3s);
  EXPECT_TRUE(lines_.ends_with(" 0 cut\n")) << lines_;
}

}  // namespace
}  // namespace weir::http::request_end_test
