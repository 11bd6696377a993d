// Tests of responses that stream: their sources, their arguments and their length.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::stream_test {
namespace {

/// A source of bytes that can only be moved.
class Pieces {
 public:
  explicit Pieces(std::vector<std::string> pieces)
      : pieces_(std::make_unique<std::vector<std::string>>(std::move(pieces))) {}
  Task<Result<Bytes>> read() {
    if (next_ == pieces_->size()) co_return Bytes();
    const std::string& piece = (*pieces_)[next_++];
    if (piece == "broken") co_return fail(Errc::end_of_stream);
    co_return to_bytes(piece);
  }

 private:
  std::unique_ptr<std::vector<std::string>> pieces_;
  std::size_t next_ = 0;
};

/// A source as a connection is one: its end is an error.
class Connected {
 public:
  Task<Result<Buffer>> read() {
    if (std::exchange(ended_, true)) co_return fail(Errc::end_of_stream);
    Buffer buffer = Buffer::with_capacity(4);
    std::memcpy(buffer.room().data(), "abcd", 4);
    buffer.commit(4);
    co_return std::move(buffer);
  }

 private:
  bool ended_ = false;
};

Task<Result<>> write_moved(BodySink& sink, std::unique_ptr<std::string> text) {
  co_return co_await sink.write(*text);
}
Task<Result<>> write_ten(BodySink& sink) {
  if (auto sent = co_await sink.write("12345"); !sent) co_return sent;
  if (auto slept = co_await sleep(1s); !slept) co_return slept;
  co_return co_await sink.write("67890");
}

class StreamTest : public HttpTest {
 protected:
  StreamTest() {
    routes_.get("/moved", [] {
      return stream("text/plain", {.length = 5}, write_moved,
                    std::make_unique<std::string>("moved"));
    });
    routes_.get("/pieces", [] { return stream("text/plain", Pieces({"one ", "two"})); });
    routes_.get("/created", [] {
      const StreamOptions options{.length = 3, .status = Status::created};
      return stream("text/plain", options, Pieces({"one"}));
    });
    routes_.get("/broken", [] { return stream("text/plain", Pieces({"one", "broken"})); });
    routes_.get("/connected", [] { return stream("text/plain", Connected()); });
    routes_.get("/ten/{length}", [](unsigned length) {
      return stream("text/plain", {.length = length}, write_ten);
    });
    routes_.get("/none/{length}", [](unsigned length) {
      return stream("text/plain", {.length = length}, Pieces({}));
    });
  }
  std::string ask(std::string_view line, std::string_view more = {}) {
    MemoryPeer& peer = connect();
    talk(peer, std::string(line) + "\r\nHost: a\r\n" + std::string(more) + "\r\n");
    pass(2s);
    return peer.received();
  }
  std::string get(std::string_view path) { return ask("GET " + std::string(path) + " HTTP/1.1"); }
};

TEST_F(StreamTest, LengthIsSentAsContentLength) {
  serve();
  const auto answers = sim::parse_http_responses(get("/moved") + get("/ten/10") + get("/none/0"));
  ASSERT_EQ(sim::statuses_of(answers), "200 200 200");
  EXPECT_EQ(answers[0].header("Content-Length"), "5");
  EXPECT_EQ(answers[0].header("Transfer-Encoding"), "");
  EXPECT_EQ(answers[0].body, "moved");
  EXPECT_EQ(answers[1].body, "1234567890");
  EXPECT_EQ(answers[2].header("Content-Length"), "0");
}

TEST_F(StreamTest, LengthKeepsA10ConnectionOpen) {
  serve();
  const std::string text = ask("GET /moved HTTP/1.0", "Connection: keep-alive\r\n");
  EXPECT_NE(text.find("Content-Length: 5\r\n"), text.npos) << text;
  EXPECT_NE(text.find("Connection: keep-alive\r\n"), text.npos) << text;
}

TEST_F(StreamTest, HeadRequestGetsTheLengthAndNoBody) {
  serve();
  const std::string text = ask("HEAD /ten/10 HTTP/1.1");
  EXPECT_NE(text.find("Content-Length: 10\r\n"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\n")) << text;
}

TEST_F(StreamTest, SourceIsSentToItsEnd) {
  serve();
  const auto answers =
      sim::parse_http_responses(get("/pieces") + get("/created") + get("/connected"));
  ASSERT_EQ(sim::statuses_of(answers), "200 201 200");
  EXPECT_EQ(answers[0].header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(answers[0].body, "one two");
  EXPECT_EQ(answers[1].body, "one");
  EXPECT_EQ(answers[2].body, "abcd");
}

TEST_F(StreamTest, ErrorOfASourceCutsTheBodyOff) {
  serve();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(get("/broken"))), "200-");
}

TEST_F(StreamTest, BodyShorterThanItsLengthIsCutOffAndLogged) {
  serve();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(get("/ten/11"))), "200-");
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(get("/none/1"))), "500");
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[0],
            "weir: GET /ten/11: response body incomplete: it is shorter than its length");
}

TEST_F(StreamTest, BodyLongerThanItsLengthIsCutOffAndLogged) {
  serve();
  const std::string text = get("/ten/9");
  EXPECT_TRUE(text.ends_with("\r\n\r\n12345")) << text;
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(get("/ten/4"))), "500");
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /ten/9: response body exceeds its length");
}

}  // namespace
}  // namespace weir::http::stream_test
