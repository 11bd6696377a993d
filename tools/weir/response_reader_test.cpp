// Tests of the reader of responses.
#include "tools/weir/response_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::bench::response_reader_test {
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
  const std::string longer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!";
  EXPECT_EQ(read_every_way(hello + longer, vary), good(2)) << "the length may differ too";
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

TEST(ResponseReader, RejectsARepeatedContentLength) {
  const std::string twice = "Content-Length: 5\r\nContent-Length: ";
  for (const char* second : {"5", "6"}) {
    EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\n" + twice + second + "\r\n\r\nhello"),
              bad(ResponseError::malformed));
  }
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
           "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\n",
           "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\n",
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
      "HTTP/1.1 200 OK\r\nX: " + std::string(http::HeadLimits().headers_bytes_max, 'x');
  EXPECT_EQ(read_in_pieces({endless}, {}), bad(ResponseError::malformed));
}

TEST(ResponseReader, AcceptsAHeadOfTheLargestSizeOnly) {
  const std::string status = "HTTP/1.1 200 OK\r\n";
  const std::string begin = "Content-Length: 5\r\nX: ";
  const std::string end = "\r\n\r\n";
  const std::size_t rest = http::HeadLimits().headers_bytes_max - begin.size() - end.size();
  const std::string largest = status + begin + std::string(rest, 'x') + end;
  const std::string too_large = status + begin + std::string(rest + 1, 'x') + end;
  for (const std::size_t first : {std::size_t{1}, largest.size() - 3, largest.size()}) {
    const auto read = [&](std::string_view head) {
      return read_in_pieces({head.substr(0, first), head.substr(first), "hello"}, {});
    };
    EXPECT_EQ(read(largest), good(1)) << first;
    EXPECT_EQ(read(too_large), bad(ResponseError::malformed)) << first;
  }
}

TEST(ResponseReader, AcceptsStatusesFrom100To999) {
  const auto read = [](const std::string& status, unsigned expected) {
    ResponseRules rules;
    rules.status = expected;
    return read_every_way("HTTP/1.1 " + status + " X\r\nContent-Length: 0\r\n\r\n", rules);
  };
  EXPECT_EQ(read("200", 200), good(1));
  EXPECT_EQ(read("599", 599), good(1));
  EXPECT_EQ(read("600", 600), good(1));
  EXPECT_EQ(read("999", 999), good(1));
  EXPECT_EQ(read("099", 99), bad(ResponseError::malformed));
  EXPECT_EQ(read("199", 200), bad(ResponseError::malformed)) << "interim, but has a length";
  for (const std::string status : {"100", "102", "199"}) {
    EXPECT_EQ(read_every_way("HTTP/1.1 " + status + " X\r\n\r\n" + hello), good(1)) << status;
  }
  EXPECT_EQ(read_every_way("HTTP/1.1 100 X\r\nTransfer-Encoding: chunked\r\n\r\n" + hello),
            bad(ResponseError::malformed));
}

TEST(ResponseReader, ReadsNoBodyAfter304) {
  ResponseRules rules;
  rules.status = 304;
  const std::string same = "HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(read_every_way(same + same, rules), good(2));
}

TEST(ResponseReader, RejectsARepeatedTransferEncoding) {
  EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            bad(ResponseError::malformed));
  EXPECT_EQ(read_every_way("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n"),
            good(1));
}

TEST(ResponseReader, RejectsAllInputIfNoResponseIsWanted) {
  ResponseReference reference;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read("", 0), 0U);
  EXPECT_EQ(reader.error(), ResponseError::none);
  EXPECT_EQ(reader.read(hello, 0), 0U);
  EXPECT_EQ(reader.error(), ResponseError::unexpected);
  EXPECT_EQ(reader.end(), 0U);
  EXPECT_EQ(reader.error(), ResponseError::unexpected) << "the first error stays";
}

TEST(ResponseReader, IsIdleBetweenResponses) {
  ResponseReference reference;
  ResponseReader reader(reference);
  EXPECT_TRUE(reader.idle());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(reader.read(hello.substr(0, 5), 1), 0U);
    EXPECT_FALSE(reader.idle()) << "in the head";
    EXPECT_EQ(reader.read(hello.substr(5, hello.size() - 6), 1), 0U);
    EXPECT_FALSE(reader.idle()) << "in the body";
    EXPECT_EQ(reader.read("o", 1), 1U);
    EXPECT_TRUE(reader.idle());
  }
  EXPECT_EQ(reader.end(), 0U);
  EXPECT_EQ(reader.error(), ResponseError::none) << "the connection may end between responses";
  EXPECT_TRUE(reference.known);
  EXPECT_EQ(reference.body, "hello");
  EXPECT_EQ(reference.body_bytes, 5U);
}

TEST(ResponseReader, TakesOnlyWholeResponsesAsRepetitions) {
  ResponseReference reference;
  ResponseReader reader(reference);
  const std::string begin = hello.substr(0, hello.size() - 2);
  EXPECT_EQ(reader.read(begin, 1), 0U);
  EXPECT_EQ(reader.read("lo", 1), 1U);
  EXPECT_EQ(reader.read("lo", 1), 0U) << "the end of a response is not a response";
  EXPECT_EQ(reader.read("\r\n\r\n", 1), 0U);
  EXPECT_EQ(reader.error(), ResponseError::malformed);
}

TEST(ResponseReader, ReportsTheFirstDifferentByteOfABodyInPieces) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n";
  ResponseReference reference;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read(head + "abcdefgh", 1), 1U);
  EXPECT_EQ(reader.read(head + "ab", 1), 0U);
  EXPECT_EQ(reader.read("cdX", 1), 0U);
  EXPECT_EQ(reader.error(), ResponseError::none) << "the length is compared first";
  EXPECT_EQ(reader.read("Ygh", 1), 0U);
  EXPECT_EQ(reader.error(), ResponseError::body);
  EXPECT_EQ(reader.describe_error(), "byte 4 of the body: expected 'e', got 'X': " + head);
}

TEST(ResponseReader, ADifferenceConcernsItsOwnConnectionOnly) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
  ResponseReference reference;
  ResponseReader first(reference);
  EXPECT_EQ(first.read(head + "ab", 1), 1U);
  ResponseReader second(reference);
  EXPECT_EQ(second.read(head + "aX", 1), 0U);
  ResponseReader third(reference);
  EXPECT_EQ(third.read(head + "ab", 1), 1U);
  EXPECT_EQ(third.error(), ResponseError::none);
}

TEST(ResponseReader, ShowsPrintableBytesAndTheCodesOfOthers) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  const auto shown = [&](char expected, char got) {
    return description(head + expected, head + got);
  };
  EXPECT_EQ(shown('!', ' '), "byte 0 of the body: expected '!', got byte 32: " + head);
  EXPECT_EQ(shown('~', '\x7f'), "byte 0 of the body: expected '~', got byte 127: " + head);
  EXPECT_EQ(shown('\xff', 'a'), "byte 0 of the body: expected byte 255, got 'a': " + head);
}

TEST(ResponseReader, DescriptionsShowAtMost400BytesOfAServer) {
  const std::string long_head = "HTTP/2 200\r\nX: " + std::string(500, 'x') + "\r\n\r\n";
  EXPECT_EQ(description(hello, long_head), long_head.substr(0, 400));
  const std::string more(500, 'm');
  EXPECT_EQ(description(hello, hello + more),
            "unexpected bytes after the last response: " + more.substr(0, 400));
}

TEST(ResponseReader, FindsOptionsInTheConnectionHeader) {
  const auto closes = [](const std::string& version, const std::string& value) {
    ResponseReference reference;
    ResponseReader reader(reference);
    const std::string line = value.empty() ? "" : "Connection:" + value + "\r\n";
    EXPECT_EQ(reader.read(version + " 200 OK\r\n" + line + "Content-Length: 0\r\n\r\n", 1), 1U);
    return reader.closes();
  };
  for (const char* value : {"close", " CLOSE ", "close,x", "x,close", ", close", "x , close ,"}) {
    EXPECT_TRUE(closes("HTTP/1.1", value)) << value;
  }
  for (const char* value : {"", "closed", "x-close", "keep-alive", "x,y", "clos,e"}) {
    EXPECT_FALSE(closes("HTTP/1.1", value)) << value;
  }
  EXPECT_TRUE(closes("HTTP/1.0", ""));
  EXPECT_TRUE(closes("HTTP/1.0", "x"));
  EXPECT_TRUE(closes("HTTP/1.0", "keep-alive, close"));
  EXPECT_FALSE(closes("HTTP/1.0", "x, Keep-Alive"));
}

TEST(ResponseReader, ABodyUntilTheEndCloses) {
  ResponseReference reference;
  reference.rules.closing = true;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read("HTTP/1.1 200 OK\r\n\r\nhel", 1), 0U);
  EXPECT_EQ(reader.read("lo", 1), 0U);
  EXPECT_FALSE(reader.idle());
  EXPECT_EQ(reader.end(), 1U);
  EXPECT_TRUE(reader.closes());
  EXPECT_TRUE(reader.idle());
  EXPECT_EQ(reference.body, "hello");

  ResponseReader other(reference);
  EXPECT_EQ(other.read("HTTP/1.1 200 OK\r\n\r\nhell", 1), 0U);
  EXPECT_EQ(other.end(), 0U);
  EXPECT_EQ(other.error(), ResponseError::length);
}

TEST(ResponseReader, ComparesNoByteBeyondTheComparedPart) {
  constexpr std::size_t compared = ResponseReference::body_bytes_max;
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(compared + 1) + "\r\n\r\n";
  const std::string body(compared + 1, 'a');
  std::string last = body;
  last[compared - 1] = 'b';
  std::string beyond = body;
  beyond[compared] = 'b';
  ResponseReference reference;
  ResponseReader reader(reference);
  EXPECT_EQ(reader.read(head + body, 1), 1U);
  EXPECT_EQ(reference.body.size(), compared);
  EXPECT_EQ(reference.body_bytes, compared + 1);
  EXPECT_EQ(reader.read(head + beyond, 1), 1U);
  EXPECT_EQ(reader.read(head + last, 1), 0U);
  EXPECT_EQ(reader.error(), ResponseError::body);
}

/// Reads `bodies` as responses that must have the numbers 998, 999, 100, 101 and so on.
Outcome read_numbered(const std::vector<std::string>& bodies, std::string* described = nullptr) {
  ResponseReference reference;
  reference.rules.number_placeholder = {.offset = 0, .digits = 3};
  ResponseReader reader(reference);
  reader.expect(998);
  Outcome outcome;
  for (const std::string& body : bodies) {
    outcome.whole += reader.read(
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body, 1);
  }
  outcome.fault = reader.error();
  const std::string text = reader.describe_error();
  if (described != nullptr) *described = text.substr(0, text.find(": HTTP"));
  return outcome;
}

TEST(ResponseReader, ExpectsTheNumbersOfTheRequestsInTheirOrder) {
  std::string described;
  EXPECT_EQ(read_numbered({"<998>", "<999>", "<100>", "<101>"}), good(4));
  EXPECT_EQ(read_numbered({"<998>", "<998>"}, &described), bad(ResponseError::number, 1));
  EXPECT_EQ(described, "expected 999, got 998");
  EXPECT_EQ(read_numbered({"<998>", "<999>", "<101>"}, &described), bad(ResponseError::number, 2));
  EXPECT_EQ(described, "expected 100, got 101");
  EXPECT_EQ(read_numbered({"hello"}, &described), bad(ResponseError::number));
  EXPECT_EQ(described, "expected 998, got: hello");
}

TEST(ResponseReader, ComparesTheBodyAroundTheNumber) {
  std::string described;
  EXPECT_EQ(read_numbered({"<998>", "(999>"}, &described), bad(ResponseError::body, 1));
  EXPECT_EQ(described, "byte 0 of the body: expected '<', got '('");
  EXPECT_EQ(read_numbered({"<998>", "<999)"}, &described), bad(ResponseError::body, 1));
  EXPECT_EQ(described, "byte 4 of the body: expected '>', got ')'");
  EXPECT_EQ(read_numbered({"<998>", "<999>>"}, &described), bad(ResponseError::length, 1));
  EXPECT_EQ(described, "expected a body of 5 bytes, got 6");
  EXPECT_EQ(read_numbered({"<998>", "<9"}, &described), bad(ResponseError::length, 1));
}

TEST(ResponseReader, NamesEveryError) {
  EXPECT_EQ(name_of(ResponseError::none), "none");
  EXPECT_EQ(name_of(ResponseError::malformed), "malformed response");
  EXPECT_EQ(name_of(ResponseError::no_length), "response without length");
  EXPECT_EQ(name_of(ResponseError::status), "wrong status");
  EXPECT_EQ(name_of(ResponseError::length), "wrong length");
  EXPECT_EQ(name_of(ResponseError::body), "wrong body");
  EXPECT_EQ(name_of(ResponseError::number), "number of another request");
  EXPECT_EQ(name_of(ResponseError::unexpected), "unexpected bytes");
}

}  // namespace
}  // namespace weir::bench::response_reader_test
