// Tests of the reader of responses.
#include "tools/weir/response_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::bench {
namespace {

const std::string hello =
    "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 21:15:46 GMT\r\nContent-Length: 5\r\n\r\nhello";
const std::string chunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n";

/// The result of reading `input` on a new connection.
struct Outcome {
  unsigned whole = 0;
  ResponseError fault = ResponseError::none;
  bool operator==(const Outcome&) const = default;
  friend void PrintTo(const Outcome& outcome, std::ostream* out) {
    *out << outcome.whole << " whole, " << name_of(outcome.fault);
  }
};

Outcome read_in_pieces(const std::vector<std::string_view>& pieces, const ResponseRules& rules,
                       unsigned wanted = 100) {
  ResponseReference reference;
  reference.rules = rules;
  ResponseReader reader(reference);
  Outcome outcome;
  for (const std::string_view piece : pieces) outcome.whole += reader.read(piece, wanted);
  if (rules.closing) outcome.whole += reader.end();
  outcome.fault = reader.error();
  return outcome;
}

/// Reads `input` whole, byte by byte, and cut in two at every position. All results must agree.
Outcome read_every_way(const std::string& input, const ResponseRules& rules = {}) {
  const Outcome whole = read_in_pieces({input}, rules);
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) {
    bytes.push_back(std::string_view(input).substr(at, 1));
    const std::string_view text = input;
    EXPECT_EQ(read_in_pieces({text.substr(0, at), text.substr(at)}, rules), whole)
        << "cut at " << at;
  }
  EXPECT_EQ(read_in_pieces(bytes, rules), whole) << "byte by byte";
  return whole;
}

Outcome good(unsigned whole) {
  return {.whole = whole};
}
Outcome bad(ResponseError fault, unsigned whole = 0) {
  return {.whole = whole, .fault = fault};
}

TEST(ResponseReader, CountsResponsesInPiecesOfAnySize) {
  EXPECT_EQ(read_every_way(hello), good(1));
  EXPECT_EQ(read_every_way(hello + hello + hello), good(3));
  EXPECT_EQ(read_every_way(chunked + chunked), good(2));
}

TEST(ResponseReader, FramingDoesNotChangeTheBody) {
  EXPECT_EQ(read_every_way(hello + chunked + hello), good(3));
}

TEST(ResponseReader, AcceptsAnotherHeadWithTheSameBody) {
  std::string later = hello;
  later.replace(later.find(":46"), 3, ":47");
  EXPECT_EQ(read_every_way(hello + later + hello), good(3));
}

TEST(ResponseReader, RejectsAnotherBody) {
  std::string other = hello;
  other.back() = 'x';
  EXPECT_EQ(read_every_way(hello + other), bad(ResponseError::body, 1));
  ResponseRules vary;
  vary.bodies_vary = true;
  EXPECT_EQ(read_every_way(hello + other, vary), good(2));
}

TEST(ResponseReader, RejectsAnotherLength) {
  const std::string longer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!";
  const std::string shorter = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell";
  EXPECT_EQ(read_every_way(hello + longer), bad(ResponseError::length, 1));
  EXPECT_EQ(read_every_way(hello + shorter), bad(ResponseError::length, 1));
  ResponseRules asked;
  asked.body_bytes = 6;
  EXPECT_EQ(read_every_way(hello, asked), bad(ResponseError::length));
  EXPECT_EQ(read_every_way(longer, asked), good(1));
}

TEST(ResponseReader, RejectsAnotherStatus) {
  const std::string missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
  EXPECT_EQ(read_every_way(missing), bad(ResponseError::status));
  ResponseRules rules;
  rules.status = 404;
  EXPECT_EQ(read_every_way(missing, rules), good(1));
}

/// Returns the description of the error in `second`, which follows `first`.
std::string description(const std::string& first, const std::string& second,
                        ResponseRules rules = {}) {
  ResponseReference reference;
  reference.rules = rules;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read(first, 1), 1U);
  reader.read(second, 1);
  return reader.describe_error();
}

TEST(ResponseReader, DescribesTheExpectedAndTheActualValue) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(description(head + "hello", head + "heLLo"),
            "byte 2 of the body: expected 'l', got 'L': " + head);
  EXPECT_EQ(description(head + "hello", head + std::string("hell\0", 5)),
            "byte 4 of the body: expected 'o', got byte 0: " + head);
  const std::string short_head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
  EXPECT_EQ(description(head + "hello", short_head + "hell"),
            "expected a body of 5 bytes, got 4: " + short_head);
  const std::string missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(description(head + "hello", missing), "expected 200, got 404: " + missing);
  EXPECT_EQ(description(head + "hello", head + "hello!"),
            "unexpected bytes after the last response: !");
  EXPECT_EQ(description(head + "hello", "HTTP/2 200\r\n\r\n"), "HTTP/2 200\r\n\r\n");
}

TEST(ResponseReader, RejectsMoreResponsesThanRequests) {
  ResponseReference reference;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read(hello + hello, 1), 1U);
  EXPECT_EQ(reader.error(), ResponseError::unexpected);
  EXPECT_EQ(reader.read(hello, 1), 0U) << "nothing is read after an error";
}

TEST(ResponseReader, SkipsInterimResponses) {
  EXPECT_EQ(read_every_way("HTTP/1.1 100 Continue\r\n\r\n" + hello), good(1));
  EXPECT_EQ(read_every_way("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
            bad(ResponseError::malformed));
}

TEST(ResponseReader, ReadsResponsesWithoutABody) {
  EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), good(1));
  ResponseRules no_content;
  no_content.status = 204;
  EXPECT_EQ(read_every_way("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 \r\n\r\n", no_content),
            good(2));
  ResponseRules to_head;
  to_head.to_head = true;
  const std::string head = hello.substr(0, hello.size() - 5);
  EXPECT_EQ(read_every_way(head + head, to_head), good(2));
}

TEST(ResponseReader, AcceptsARepeatedContentLength) {
  const std::string twice = "Content-Length: 5\r\nContent-Length: ";
  EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\n" + twice + "5\r\n\r\nhello"), good(1));
  EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\n" + twice + "6\r\n\r\nhello"),
            bad(ResponseError::malformed));
}

/// Reads `input`, then the end of the connection, with default rules.
Outcome read_to_end(const std::string& input) {
  ResponseReference reference;
  ResponseReader reader(reference);
  Outcome outcome{.whole = reader.read(input, 100)};
  outcome.whole += reader.end();
  outcome.fault = reader.error();
  return outcome;
}

TEST(ResponseReader, TheEndOfTheConnectionEndsABodyOnlyIfAllowed) {
  const std::string open_ended = "HTTP/1.1 200 OK\r\n\r\nhello";
  EXPECT_EQ(read_every_way(open_ended), bad(ResponseError::no_length));
  ResponseRules closing;
  closing.closing = true;
  EXPECT_EQ(read_every_way(open_ended, closing), good(1));
  EXPECT_EQ(read_to_end("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\nhello"), good(1));
  EXPECT_EQ(read_to_end("HTTP/1.0 200 OK\r\n\r\nhello"), good(1));
  EXPECT_EQ(read_to_end("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello"),
            bad(ResponseError::no_length));
  EXPECT_EQ(read_every_way(hello.substr(0, hello.size() - 1), closing),
            bad(ResponseError::malformed));
}

TEST(ResponseReader, ReportsAnAnnouncedClose) {
  ResponseReference reference;
  ResponseReader reader(reference);
  const std::string closing =
      "HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 5\r\n\r\nhello";
  reader.read(hello, 1);
  EXPECT_FALSE(reader.closes());
  reader.read(closing, 1);
  EXPECT_TRUE(reader.closes());
  reader.read(closing, 1);  // equal bytes are not parsed again
  EXPECT_TRUE(reader.closes());
  reader.read(hello, 1);
  EXPECT_FALSE(reader.closes());
}

TEST(ResponseReader, ComparesAcrossConnections) {
  ResponseReference reference;
  ResponseReader first(reference);
  ResponseReader second(reference);
  // Both begin before the reference exists.
  EXPECT_EQ(first.read(hello.substr(0, hello.size() - 2), 1), 0U);
  EXPECT_EQ(second.read(hello.substr(0, hello.size() - 2), 1), 0U);
  EXPECT_EQ(first.read("lo", 1), 1U);
  EXPECT_EQ(second.read("lx", 1), 0U);
  EXPECT_EQ(second.error(), ResponseError::body);
}

TEST(ResponseReader, ComparesTheBeginningOfLongBodies) {
  constexpr std::size_t size = 200'000;
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  const std::string body(size, 'a');
  std::string early = body;
  early[ResponseReference::body_bytes_max - 1] = 'b';
  const auto read = [&](const std::string& second) {
    std::vector<std::string_view> pieces;
    const std::string all = head + body + head + second;
    for (std::size_t at = 0; at < all.size(); at += 9973) {
      pieces.push_back(std::string_view(all).substr(at, 9973));
    }
    return read_in_pieces(pieces, {});
  };
  EXPECT_EQ(read(body), good(2));
  EXPECT_EQ(read(early), bad(ResponseError::body, 1));
}

TEST(ResponseReader, RejectsMalformedResponses) {
  for (const std::string head : {
           "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.0 20 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 600 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 200 O\nK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
           "HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
           "\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
       }) {
    EXPECT_EQ(read_every_way(head + "hello"), bad(ResponseError::malformed)) << head;
  }
  EXPECT_EQ(read_every_way(chunked.substr(0, chunked.find("he")) + "hello\r\n0\r\n\r\n"),
            bad(ResponseError::malformed));
}

TEST(ResponseReader, RejectsAHeadWithoutEnd) {
  const std::string endless =
      "HTTP/1.1 200 OK\r\nX: " + std::string(ResponseReader::head_bytes_max, 'x');
  EXPECT_EQ(read_in_pieces({endless}, {}), bad(ResponseError::malformed));
}

}  // namespace
}  // namespace weir::bench
