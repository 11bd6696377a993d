// Tests of the parser of responses.
#include "tools/weir/check/response_parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::check::response_parser_test {
namespace {

/// Reads `text` in one piece, and checks that reading it byte by byte has the same result.
ResponseParser read(std::string_view text, bool ends = false, std::string_view method = "GET") {
  ResponseParser whole;
  ResponseParser bytewise;
  for (ResponseParser* each : {&whole, &bytewise}) each->expect_response_to(method);
  whole.read(text);
  for (std::size_t index = 0; index < text.size(); ++index) bytewise.read(text.substr(index, 1));
  if (ends) {
    whole.end();
    bytewise.end();
  }
  EXPECT_EQ(whole.protocol_error(), bytewise.protocol_error()) << text;
  EXPECT_EQ(whole.final_count(), bytewise.final_count()) << text;
  return whole;
}

TEST(ResponseParser, ReadsResponsesOfEveryFraming) {
  const ResponseParser reader = read(
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
      "HTTP/1.1 404\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"
      "HTTP/1.1 204 None\r\n\r\n"
      "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n"
      "HTTP/1.0 200 OK\r\n\r\nto the end",
      true);
  EXPECT_EQ(reader.protocol_error(), "");
  EXPECT_EQ(reader.final_count(), 5U);
  EXPECT_TRUE(reader.interim());
  ASSERT_EQ(reader.responses().size(), 6U);
  EXPECT_EQ(reader.responses()[1].body, "hello");
  EXPECT_EQ(reader.responses()[2].body, "no");
  EXPECT_EQ(reader.responses()[5].body, "to the end");
  EXPECT_TRUE(reader.responses()[5].closes && reader.responses()[5].close_delimited);
  EXPECT_FALSE(reader.responses()[1].closes);
}

TEST(ResponseParser, DetectsAnAnnouncedClose) {
  const auto closes = [](std::string_view head) {
    return read(std::string(head) + "Content-Length: 0\r\n\r\n").responses().at(0).closes;
  };
  EXPECT_FALSE(closes("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(closes("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n"));
  EXPECT_TRUE(closes("HTTP/1.0 200 OK\r\n"));
  EXPECT_FALSE(closes("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n"));
}

TEST(ResponseParser, AResponseToHeadHasNoBody) {
  const ResponseParser reader = read(
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
      false, "HEAD");
  EXPECT_EQ(reader.final_count(), 2U);
  EXPECT_EQ(reader.protocol_error(), "");
  EXPECT_EQ(
      read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "HEAD").protocol_error(),
      "bytes that are not a response");
}

TEST(ResponseParser, DescribesProtocolErrors) {
  const auto fault = [](std::string_view text, bool ends = false) {
    return read(text, ends).protocol_error();
  };
  EXPECT_EQ(fault("hello\r\n"), "bytes that are not a response");
  EXPECT_EQ(fault("HTTP/2.0 200 OK\r\n\r\n"), "bytes that are not a response");
  EXPECT_EQ(fault(std::string("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64", 15)), "frames of HTTP/2");
  EXPECT_EQ(fault(std::string("\0\0\6\1\0\0\0\0\0\0\3\0\0\0\x64", 15)),
            "bytes that are not a response");
  EXPECT_EQ(fault("HTTP/1.1 20 OK\r\n\r\n"), "a malformed status line");
  EXPECT_EQ(fault("HTTP/1.1 2000 OK\r\n\r\n"), "a malformed status line");
  EXPECT_EQ(fault("HTTP/1.1 999 OK\r\n\r\n"), "a malformed status line");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX : y\r\n\r\n"), "a malformed header line");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\n y\r\n\r\n"), "a malformed header line");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX: a\nb\r\n\r\n"), "a CR or LF that is not part of CRLF");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX: a\bb\r\n\r\n"), "control characters in a header");
  EXPECT_EQ(fault("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
            "an upgrade without a request for it");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nConnection: a b\r\n\r\n"), "bad_connection");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "a response with Content-Length and Transfer-Encoding");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n"),
            "a Content-Length that is not a number");
  EXPECT_EQ(fault("HTTP/1.1 204 OK\r\nContent-Length: 0\r\n\r\n"),
            "a length in a response without a body");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), "an unknown coding");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx"), "a broken chunk");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", true),
            "a truncated response");
  EXPECT_EQ(fault("HTTP/1.1 200", true), "a truncated response");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX: " + std::string(ResponseParser::head_bytes_max, 'a')),
            "a head without an end");
  EXPECT_EQ(fault("HTTP/1.1 200 " + std::string(ResponseParser::head_bytes_max, 'a')),
            "a head without an end");
}

TEST(ResponseParser, LimitsTheNumberOfResponses) {
  ResponseParser reader;
  for (int sent = 0; sent < 100'000; ++sent) reader.read("HTTP/1.1 102 Processing\r\n\r\n");
  EXPECT_EQ(reader.protocol_error(), "too many responses");
  EXPECT_EQ(reader.responses().size(), ResponseParser::responses_max);
}

TEST(ResponseParser, AResetEndsABodyWithoutLength) {
  ResponseParser without;
  without.read("HTTP/1.1 431 Much\r\nConnection: close\r\n\r\nmuch");
  EXPECT_EQ(without.final_count(), 0U);
  without.reset();
  EXPECT_EQ(without.final_count(), 1U);
  ResponseParser with;
  with.read("HTTP/1.1 431 Much\r\nContent-Length: 9\r\n\r\nmuch");
  with.reset();
  EXPECT_EQ(with.final_count(), 0U);
  EXPECT_EQ(with.protocol_error(), "");
}

TEST(ResponseParser, StoresTheBeginningOfALongBody) {
  const std::string body(100'000, 'b');
  ResponseParser reader;
  reader.read("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body);
  EXPECT_EQ(reader.final_count(), 1U);
  EXPECT_EQ(reader.responses()[0].body_bytes, 100'000U);
  EXPECT_EQ(reader.responses()[0].body.size(), Response::stored_body_bytes_max);
}

TEST(ResponseParser, JoinsHeadersOfOneNameInAnyLetterCase) {
  const ResponseParser reader = read(
      "HTTP/1.1 200 OK\r\nX-A:  one \r\nx-a: two\r\nB:\r\nX-A: three\r\nContent-Length: 0\r\n\r\n");
  const Response& response = reader.responses().at(0);
  EXPECT_EQ(response.header("x-A"), "one, two, three");
  EXPECT_EQ(response.header("b"), "");
  EXPECT_EQ(response.header("X"), std::nullopt);
  EXPECT_EQ(response.headers.size(), 5U);
}

TEST(ResponseParser, AcceptsStatusesFrom100To599WithOrWithoutAReason) {
  const auto status = [](std::string_view line) {
    const ResponseParser reader = read(std::string(line) + "\r\nX: y\r\n\r\n");
    return reader.protocol_error() == "" ? reader.responses().at(0).status : 0;
  };
  EXPECT_EQ(status("HTTP/1.1 100"), 100);
  EXPECT_EQ(status("HTTP/1.1 199 "), 199);
  EXPECT_EQ(status("HTTP/1.0 200 OK"), 200);
  EXPECT_EQ(status("HTTP/1.9 599 x"), 599);
  for (const char* line :
       {"HTTP/1.1 099", "HTTP/1.1 600", "HTTP/1.", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20",
        "HTTP/1.x 200 OK", "HTTP/1.1-200 OK", "HTTP/1.1 200-OK", "HTTP/1.1 2x0 OK"}) {
    EXPECT_EQ(status(line), 0) << line;
  }
}

TEST(ResponseParser, LimitsTheSizeOfAHead) {
  const std::string begin = "HTTP/1.1 200 ";
  const std::string largest =
      begin + std::string(ResponseParser::head_bytes_max - begin.size(), 'a');
  ResponseParser reader;
  reader.read(largest);
  EXPECT_EQ(reader.protocol_error(), "");
  reader.read("aa");
  EXPECT_EQ(reader.protocol_error(), "a head without an end");
}

TEST(ResponseParser, AcceptsTheLargestNumberOfResponses) {
  ResponseParser reader;
  for (std::size_t sent = 0; sent < ResponseParser::responses_max; ++sent) {
    reader.read("HTTP/1.1 204 None\r\n\r\n");
  }
  EXPECT_EQ(reader.protocol_error(), "");
  EXPECT_EQ(reader.final_count(), ResponseParser::responses_max);
  reader.read("HTTP/1.1 204 None\r\n\r\n");
  EXPECT_EQ(reader.protocol_error(), "too many responses");
  EXPECT_EQ(reader.responses().size(), ResponseParser::responses_max);
}

TEST(ResponseParser, RejectsLengthsThatAreNotNumbers) {
  const auto fault = [](std::string_view status, std::string_view header) {
    return read("HTTP/1.1 " + std::string(status) + "\r\n" + std::string(header) + "\r\n\r\n")
        .protocol_error();
  };
  for (const char* value : {"-5", "5x", "", "+5", "99999999999999999999", "0x5"}) {
    EXPECT_EQ(fault("200 OK", "Content-Length: " + std::string(value)),
              "a Content-Length that is not a number")
        << value;
  }
  EXPECT_EQ(fault("304 Same", "Content-Length: x"), "a Content-Length that is not a number");
  const std::string none = "a length in a response without a body";
  EXPECT_EQ(fault("204 None", "Transfer-Encoding: chunked"), none);
  EXPECT_EQ(fault("100 Continue", "Content-Length: 0"), none);
  EXPECT_EQ(fault("199 Odd", "Transfer-Encoding: chunked"), none);
  EXPECT_EQ(fault("200 OK", "Transfer-Encoding: gzip, chunked"), "an unknown coding");
  EXPECT_EQ(fault("200 OK", "no colon"), "a malformed header line");
  EXPECT_EQ(fault("200 OK", ": x"), "a malformed header line");
}

TEST(ResponseParser, KnowsTheMethodOfEveryRequest) {
  ResponseParser reader;
  for (const char* method : {"GET", "HEAD", "GET"}) reader.expect_response_to(method);
  reader.read(
      "HTTP/1.1 102 Wait\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
      "HTTP/1.1 102 Wait\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nget");
  EXPECT_EQ(reader.protocol_error(), "");
  EXPECT_EQ(reader.final_count(), 4U);
  ASSERT_EQ(reader.responses().size(), 6U);
  EXPECT_EQ(reader.responses()[3].body_bytes, 0U);
  EXPECT_EQ(reader.responses()[4].body, "end");
  EXPECT_EQ(reader.responses()[4].body_bytes, 3U);
  EXPECT_EQ(reader.responses()[5].body, "get") << "requests without a method count as GET";
}

TEST(ResponseParser, IgnoresInputAfterAnError) {
  ResponseParser reader;
  reader.read("HTTP/1.1 204 None\r\n\r\nhello");
  ASSERT_EQ(reader.protocol_error(), "bytes that are not a response");
  reader.read("HTTP/1.1 204 None\r\n\r\n");
  reader.end();
  reader.reset();
  EXPECT_EQ(reader.protocol_error(), "bytes that are not a response");
  EXPECT_EQ(reader.final_count(), 1U);
  EXPECT_FALSE(reader.interim());
}

TEST(ResponseParser, TheEndMayOnlyComeBetweenResponses) {
  const auto fault = [](std::string_view text) { return read(text, true).protocol_error(); };
  EXPECT_EQ(fault(""), "");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), "");
  EXPECT_EQ(fault("H"), "a truncated response");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), "a truncated response");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"),
            "a truncated response");
  const ResponseParser reader = read("HTTP/1.1 200 OK\r\n\r\n", true);
  EXPECT_EQ(reader.final_count(), 1U);
  EXPECT_TRUE(reader.responses().at(0).complete);
}

TEST(ResponseParser, MarksIncompleteResponses) {
  ResponseParser reader;
  reader.read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh");
  ASSERT_EQ(reader.responses().size(), 1U);
  EXPECT_FALSE(reader.responses()[0].complete);
  EXPECT_EQ(reader.final_count(), 0U);
  reader.read("i");
  EXPECT_TRUE(reader.responses()[0].complete);
  EXPECT_EQ(reader.final_count(), 1U);
}

TEST(ResponseParser, StoresABodyOfTheLargestSizeWhole) {
  constexpr std::size_t largest = Response::stored_body_bytes_max;
  for (const std::size_t size : {largest - 1, largest, largest + 1}) {
    ResponseParser reader;
    reader.read("HTTP/1.1 200 OK\r\n\r\n" + std::string(size - 1, 'b'));
    reader.read("c");
    reader.end();
    const Response& response = reader.responses().at(0);
    EXPECT_EQ(response.body_bytes, size);
    EXPECT_EQ(response.body.size(), std::min(size, largest));
    EXPECT_EQ(response.body.back(), size > largest ? 'b' : 'c');
  }
}

}  // namespace
}  // namespace weir::check::response_parser_test
