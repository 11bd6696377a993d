// Tests that the result of the head parser depends only on the bytes of a head, not on how they
// arrive.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/test/head_arrival.hpp"

namespace weir::http::parser_arrival_test {
namespace {

using std::string_view_literals::operator""sv;

struct ValidHead {
  std::string_view text;
  std::string_view content;  ///< as describe() shows it
};

constexpr ValidHead valid_request_lines[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / 1.1 @a [Host:a]"},
    {"GET /? HTTP/1.1\r\nHost:\t a \t\r\n\r\n", "GET /? 1.1 path=/ ? @a [Host:a]"},
    {"HEAD /a%20b/?c%3d=d?e/f HTTP/1.1\r\nhost:a.test:8080\r\n\r\n",
     "HEAD /a%20b/?c%3d=d?e/f 1.1 path=/a%20b/ escapes ?c%3d=d?e/f @a.test:8080 "
     "[host:a.test:8080]"},
    {"GET /plain?q=%41 HTTP/1.0\r\n\r\n", "GET /plain?q=%41 1.0 path=/plain ?q=%41 close"},
    {"POST /%41 HTTP/1.0\r\n\r\n", "POST /%41 1.0 escapes close"},
    {"GET /a/.well-known/..b/... HTTP/1.0\r\n\r\n", "GET /a/.well-known/..b/... 1.0 close"},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * 1.1 asterisk @a [Host:a]"},
    {"OPTIONS http://b.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
     "OPTIONS http://b.test/ 1.1 absolute path=/ @b.test [Host:a]"},
    {"GET http://b.test:1?q HTTP/1.1\r\nHost: a\r\n\r\n",
     "GET http://b.test:1?q 1.1 absolute path=/ ?q @b.test:1 [Host:a]"},
    {"DELETE HTTPS://[::1]/x HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n",
     "DELETE HTTPS://[::1]/x 1.1 absolute path=/x @[::1] [Host:[2001:db8::1]:443]"},
    {"CONNECT a.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n",
     "CONNECT a.test:443 1.1 authority path= @a.test:443 [Host:b.test]"},
    {"PATCH /0123456789abcdefghijklmnopqrstuvwxyz/0123456789;v=1,2:@!$&'()*+=~._- HTTP/1.1\r\n"
     "Host: a\r\n\r\n",
     "PATCH /0123456789abcdefghijklmnopqrstuvwxyz/0123456789;v=1,2:@!$&'()*+=~._- 1.1 @a "
     "[Host:a]"},
    {"\r\n\r\nTRACE / HTTP/1.0\r\n\r\n", "TRACE / 1.0 close"},
    {"\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a 1.1 @a [Host:a]"},
    {"GETS / HTTP/1.0\r\n\r\n", "GETS other / 1.0 close"},
    {"POSTS / HTTP/1.0\r\n\r\n", "POSTS other / 1.0 close"},
    {"!#$%&'*+-.^_`|~09 /x HTTP/1.9\r\nHost: a\r\n\r\n",
     "!#$%&'*+-.^_`|~09 other /x 1.1 @a [Host:a]"},
    {"PRI / HTTP/1.0\r\n\r\n", "PRI other / 1.0 close"},
};

constexpr ValidHead valid_headers[] = {
    {"POST /f HTTP/1.1\r\nHost: a.test\r\nContent-Length: 12\r\n\r\n",
     "POST /f 1.1 @a.test [Host:a.test] [Content-Length:12] length=12 body"},
    {"PUT /x HTTP/1.0\r\ncontent-length:0\r\n\r\n", "PUT /x 1.0 [content-length:0] length=0 close"},
    {"BREW /pot HTTP/1.7\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n",
     "BREW other /pot 1.1 @a [Host:a] [Transfer-Encoding:Chunked] [Expect:100-continue] chunked "
     "body continue"},
    {"PATCH /p HTTP/1.1\r\nHost: a\r\nConnection: upgrade , close\r\nUpgrade: h2c\r\n\r\n",
     "PATCH /p 1.1 @a [Host:a] [Connection:upgrade , close] [Upgrade:h2c] close upgrade"},
    {"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nHost: a\r\n\r\n",
     "GET / 1.1 @a [Upgrade:h2c] [Connection:Upgrade] [Host:a] upgrade"},
    {"GET / HTTP/1.0\r\nConnection: keep-alive, upgrade\r\nUpgrade: x\r\nExpect: no\r\n\r\n",
     "GET / 1.0 [Connection:keep-alive, upgrade] [Upgrade:x] [Expect:no]"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
     "GET / 1.1 @a [Host:a] [Connection:keep-alive] [Connection:close] close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
     "GET / 1.1 @a [Host:a] [Connection:close] [Connection:keep-alive] close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nExpect: ,\r\nExpect: 100-continue\r\n\r\n",
     "GET / 1.1 @a [Host:a] [Expect:,] [Expect:100-continue] continue"},
    {"GET / HTTP/1.1\r\nHost: a\r\nExpect: ,\r\n\r\n", "GET / 1.1 @a [Host:a] [Expect:,]"},
    {"GET / HTTP/1.1\r\nHost: a\r\nx_y~|`^.!#$%&'*+-9: \xff\x80\t,\"\r\n\r\n",
     "GET / 1.1 @a [Host:a] [x_y~|`^.!#$%&'*+-9:\xff\x80\t,\"]"},
    {"GET / HTTP/1.1\r\nA:\r\nB: \r\nC:\t\r\nD:  \r\nE:e\r\nF:  f\r\nG: g \r\nH:\th\t\r\n"
     "I: \ti \t \r\nHost: a\r\nJ: j\tk l\r\n\r\n",
     "GET / 1.1 @a [A:] [B:] [C:] [D:] [E:e] [F:f] [G:g] [H:h] [I:i] [Host:a] [J:j\tk l]"},
    {"GET / HTTP/1.1\r\nHost: a\r\nA-Name-That-Is-Much-Longer-Than-Two-Blocks: a value that is "
     "longer than two blocks, too; it ends here\r\nX: y\r\n\r\n",
     "GET / 1.1 @a [Host:a] [A-Name-That-Is-Much-Longer-Than-Two-Blocks:a value that is longer "
     "than two blocks, too; it ends here] [X:y]"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked \t\r\n\r\n",
     "POST / 1.1 @a [Host:a] [Transfer-Encoding:chunked] chunked body"},
    {"POST / HTTP/1.1\r\nHost: a\r\nCONTENT-LENGTH:\t007\t\r\n\r\n",
     "POST / 1.1 @a [Host:a] [CONTENT-LENGTH:007] length=7 body"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\nContent-Lengths: 2\r\nX-Content-Length: "
     "3\r\n"
     "Transfer_Encoding: chunked\r\nTransfer-Encodin: x\r\nHosts: b\r\n\r\n",
     "POST / 1.1 @a [Host:a] [Content_Length:1] [Content-Lengths:2] [X-Content-Length:3] "
     "[Transfer_Encoding:chunked] [Transfer-Encodin:x] [Hosts:b]"},
    {"POST / HTTP/1.1\r\nContent-Length: 9223372036854775807\r\nhOsT: a\r\n\r\n",
     "POST / 1.1 @a [Content-Length:9223372036854775807] [hOsT:a] length=9223372036854775807 body"},
    {"GET / HTTP/1.1\r\nHost:a\r\n\r\n", "GET / 1.1 @a [Host:a]"},
    {"GET / HTTP/1.1\r\nHost:  a:80 \r\n\r\n", "GET / 1.1 @a:80 [Host:a:80]"},
    {"GET / HTTP/1.1\r\nHOST: a%C3%A9.test\r\n\r\n", "GET / 1.1 @a%C3%A9.test [HOST:a%C3%A9.test]"},
    {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET / 1.0 @a [Host:a] close"},
};

TEST(ParserArrival, RequestLinesHaveTheSameContentForEveryArrival) {
  for (const ValidHead& each : valid_request_lines) {
    expect_for_every_arrival(each.text, complete_head(each.text, each.content));
  }
}

TEST(ParserArrival, OptionsForAWholeServerHasThePathAsterisk) {
  const std::string_view text = "OPTIONS http://b.test HTTP/1.1\r\nHost: a\r\n\r\n";
  expect_for_every_arrival(
      text, complete_head(text, "OPTIONS http://b.test 1.1 asterisk path=* @b.test [Host:a]"));
}

TEST(ParserArrival, HeadersHaveTheSameContentForEveryArrival) {
  for (const ValidHead& each : valid_headers) {
    expect_for_every_arrival(each.text, complete_head(each.text, each.content));
  }
}

TEST(ParserArrival, HostLinesOfEveryLengthHaveTheSameContent) {
  for (const std::size_t length : {1U, 8U, 54U, 55U, 56U, 57U, 64U, 100U}) {
    const std::string host(length, 'h');
    const std::string text = "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: y\r\n\r\n";
    expect_for_every_arrival(
        text, complete_head(text, "GET / 1.1 @" + host + " [Host:" + host + "] [X:y]"));
  }
}

TEST(ParserArrival, LengthsOfPathsAndValuesDoNotMatter) {
  for (std::size_t length = 0; length <= 40; ++length) {
    const std::string path = "/" + std::string(length, 'p');
    const std::string value(length, 'v');
    const std::string text = "GET " + path + " HTTP/1.0\r\nN" + value + ": " + value + "\r\n\r\n";
    expect_for_every_arrival(
        text, complete_head(text, "GET " + path + " 1.0 [N" + value + ":" + value + "] close"));
  }
}

struct InvalidHead {
  std::string_view text;  ///< bytes up to the first one that makes the head invalid
  ParseError error;
};

constexpr InvalidHead invalid_request_lines[] = {
    {"\n", ParseError::bad_line_end},
    {"\rG", ParseError::bad_line_end},
    {"\r\n\n", ParseError::bad_line_end},
    {"\r\n\r\r", ParseError::bad_line_end},
    {"\r\n\r\n\r\n\r\n\r\n", ParseError::too_many_empty_lines},
    {" ", ParseError::bad_method},
    {"(", ParseError::bad_method},
    {"GE\"", ParseError::bad_method},
    {"GET/", ParseError::bad_method},
    {"GET\t", ParseError::bad_method},
    {"\x80", ParseError::bad_method},
    {"GET\r", ParseError::bad_line_end},
    {"GET\n", ParseError::bad_line_end},
    {"GET  ", ParseError::bad_target},
    {"GET /\"", ParseError::bad_target},
    {"GET /a<", ParseError::bad_target},
    {"GET /a\\b ", ParseError::bad_target},
    {"GET /\x80", ParseError::bad_target},
    {"GET /\t", ParseError::bad_target},
    {"POST /a/b#", ParseError::bad_target},
    {"POST http://[::1]/\"", ParseError::bad_target},
    {"GET /\r", ParseError::bad_line_end},
    {"GET /a\n", ParseError::bad_line_end},
    {"GET a ", ParseError::bad_target_form},
    {"GET * ", ParseError::bad_target_form},
    {"PRX * ", ParseError::bad_target_form},
    {"PRI *? ", ParseError::bad_target_form},
    {"POST ftp://a/ ", ParseError::bad_target_form},
    {"CONNECT / ", ParseError::bad_target_form},
    {"CONNECT a ", ParseError::bad_target_authority},
    {"GET http://u@a/ ", ParseError::bad_target_authority},
    {"GET http://a[/ ", ParseError::bad_target_authority},
    {"GET /%4 ", ParseError::bad_escape},
    {"GET /%0g?q ", ParseError::bad_escape},
    {"POST /%00?q ", ParseError::nul_escape},
    {"GET /a/.. ", ParseError::dot_segment},
    {"GET /%2e/a ", ParseError::dot_segment},
    {"GET / h", ParseError::bad_version},
    {"GET /  ", ParseError::bad_version},
    {"GET / HTTP/x", ParseError::bad_version},
    {"GET / HTTP/1x", ParseError::bad_version},
    {"GET / HTTP/1.x", ParseError::bad_version},
    {"GET / HTTP/1.1x", ParseError::bad_version},
    {"GET /x HTTP/1.10", ParseError::bad_version},
    {"GET / \r", ParseError::bad_line_end},
    {"GET / HTTP/1.1\n", ParseError::bad_line_end},
    {"GET / HTTP/2.0\r\n", ParseError::unsupported_version},
    {"GET / HTTP/0.9\r\n", ParseError::unsupported_version},
    {"PRI / HTTP/2.0\r\n", ParseError::unsupported_version},
    {"OPTIONS * HTTP/2.0\r\n", ParseError::unsupported_version},
    {"PRI * HTTP/2.0\r\n", ParseError::http2_preface},
    {"PRI * HTTP/1.1\r\n", ParseError::bad_target_form},
    {"PRI * HTTP/1.0\r\n", ParseError::bad_target_form},
    {"PRI * HTTP/2.1\r\n", ParseError::bad_target_form},
};

constexpr InvalidHead invalid_lines[] = {
    {"X ", ParseError::space_before_colon},
    {"X\t", ParseError::space_before_colon},
    {"A-Name-That-Is-Longer-Than-A-Block ", ParseError::space_before_colon},
    {" ", ParseError::folded_line},
    {"\t", ParseError::folded_line},
    {"X: y\r\n ", ParseError::folded_line},
    {":", ParseError::bad_header_name},
    {"X(", ParseError::bad_header_name},
    {"X\x80", ParseError::bad_header_name},
    {"X\"", ParseError::bad_header_name},
    {"X\r", ParseError::bad_line_end},
    {"X\n", ParseError::bad_line_end},
    {"\n", ParseError::bad_line_end},
    {"\rX", ParseError::bad_line_end},
    {"X: y\r\n\n", ParseError::bad_line_end},
    {"X: a\x01", ParseError::bad_header_value},
    {"X:\x7f", ParseError::bad_header_value},
    {"X: a\tb\x1f", ParseError::bad_header_value},
    {"X: a\n", ParseError::bad_line_end},
    {"X: a\rb", ParseError::bad_line_end},
    {"X:\r\r", ParseError::bad_line_end},
    {"Host: b\r\n", ParseError::repeated_host},
    {"host:a\r\n", ParseError::repeated_host},
    {"Content-Length: +1\r\n", ParseError::bad_content_length},
    {"Content-Length:\r\n", ParseError::bad_content_length},
    {"Content-Length: 1, 1\r\n", ParseError::repeated_content_length},
    {"Content-Length: 1\r\ncontent-length: 1\r\n", ParseError::repeated_content_length},
    {"Content-Length: 0\r\nContent-Length: 0\r\n", ParseError::repeated_content_length},
    {"Transfer-Encoding: x\r\n", ParseError::unknown_transfer_coding},
    {"Transfer-Encoding: chunked, x\r\n", ParseError::bad_transfer_encoding},
    {"Transfer-Encoding:\r\n", ParseError::bad_transfer_encoding},
    {"Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n",
     ParseError::repeated_transfer_encoding},
    {"Connection: (\r\n", ParseError::bad_connection},
    {"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", ParseError::both_lengths},
    {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", ParseError::both_lengths},
    {"Expect: x\r\n\r\n", ParseError::unknown_expectation},
    {"Expect: 100-continue\r\nExpect: x\r\n\r\n", ParseError::unknown_expectation},
    {"Expect: x\r\nExpect: 100-continue\r\n\r\n", ParseError::unknown_expectation},
};

/// Expects the error at the last byte of `text`, not before it, and whatever follows it.
void expect_error_at_last_byte(const std::string& text, ParseError error) {
  expect_for_every_arrival(text.substr(0, text.size() - 1), incomplete_head());
  expect_for_every_arrival(text, invalid_head(error));
  for (const std::string more : {"x\r\n\r\n", "\n\r\n\r\n", "\r\n\r\n", ": y\r\n\r\n"}) {
    HeadParser parser;
    const std::string whole = text + more;
    EXPECT_EQ(feed(parser, whole, {whole.size()}), invalid_head(error)) << whole;
    parser.reset();
    EXPECT_EQ(feed(parser, whole, {text.size() - 1, whole.size()}), invalid_head(error)) << whole;
  }
}

TEST(ParserArrival, RejectsARequestLineAtItsFirstInvalidByte) {
  for (const InvalidHead& each : invalid_request_lines) {
    expect_error_at_last_byte(std::string(each.text), each.error);
  }
}

TEST(ParserArrival, RejectsACarriageReturnWithoutLineFeedAfterTheVersion) {
  for (const std::string line : {"GET / HTTP/1.1\r", "PUT /x HTTP/1.0\r", "GET / HTTP/2.0\r"}) {
    for (const char last : {'x', '\r', ' ', '0'}) {
      expect_error_at_last_byte(line + last, ParseError::bad_line_end);
    }
  }
}

TEST(ParserArrival, RejectsAHeaderLineAtItsFirstInvalidByte) {
  for (const std::string start :
       {"GET / HTTP/1.1\r\nHost: a\r\n", "PUT /b HTTP/1.1\r\nHost: a \r\n"}) {
    for (const InvalidHead& each : invalid_lines) {
      expect_error_at_last_byte(start + std::string(each.text), each.error);
    }
  }
}

TEST(ParserArrival, RejectsAHostThatIsInvalidOrMissing) {
  for (const auto value : {"a,b"sv, "a b"sv, ""sv, ":80"sv, "a:65536"sv, "a:100000"sv, "a:8x"sv,
                           "a:80:80"sv, "u@a"sv, "[::1"sv, "a/"sv, "a%00"sv, "a;b,c"sv}) {
    expect_error_at_last_byte("GET / HTTP/1.1\r\nHost: " + std::string(value) + "\r\n",
                              ParseError::bad_host);
  }
  expect_error_at_last_byte("GET / HTTP/1.0\r\nHost: a b\r\n", ParseError::bad_host);
  expect_error_at_last_byte("GET http://a/ HTTP/1.1\r\nHost: b,c\r\n", ParseError::bad_host);
  expect_error_at_last_byte("GET / HTTP/1.1\r\nX: y\r\n\r\n", ParseError::missing_host);
  expect_error_at_last_byte("GET / HTTP/1.1\r\n\r\n", ParseError::missing_host);
  expect_error_at_last_byte("GET http://a/ HTTP/1.1\r\nHosts: a\r\n\r\n", ParseError::missing_host);
  expect_error_at_last_byte("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
                            ParseError::unexpected_transfer_encoding);
  expect_error_at_last_byte("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", ParseError::repeated_host);
}

TEST(ParserArrival, RejectsEveryControlCharacterInAValue) {
  for (int each = 0; each < 256; ++each) {
    if ((each >= 0x20 && each != 0x7f) || each == '\t' || each == '\r') continue;
    const std::string text =
        "GET / HTTP/1.0\r\nX: 0123456789abcdef" + std::string(1, static_cast<char>(each));
    HeadParser parser;
    EXPECT_EQ(feed(parser, text, {text.size()}),
              invalid_head(each == '\n' ? ParseError::bad_line_end : ParseError::bad_header_value))
        << each;
  }
}

TEST(ParserArrival, RejectsEveryByteThatIsNotATokenInAName) {
  const std::string_view others = "!#$%&'*+-.^_`|~";
  for (int each = 0; each < 256; ++each) {
    const auto character = static_cast<char>(each);
    const bool letter = (each | 0x20) >= 'a' && (each | 0x20) <= 'z';
    const bool token = (each >= '0' && each <= '9') || (each < 128 && letter) ||
                       others.find(character) != std::string_view::npos;
    if (token || character == ':') continue;
    const bool line_end = character == '\r' || character == '\n';
    const bool space = character == ' ' || character == '\t';
    const ParseError error = line_end ? ParseError::bad_line_end
                             : space  ? ParseError::space_before_colon
                                      : ParseError::bad_header_name;
    const std::string text = "GET / HTTP/1.0\r\nX-0" + std::string(1, character) + "y: z\r\n\r\n";
    HeadParser parser;
    EXPECT_EQ(feed(parser, text, {text.size()}), invalid_head(error)) << each;
  }
}

// A client must not make the server check a long head again with each byte. The byte that changes
// here would be invalid if the parser read it a second time.
TEST(ParserArrival, ContinuesAPartWhereTheInputEnded) {
  const std::string lines = "GET / HTTP/1.1\r\nHost: a\r\n";
  struct Row {
    std::string begun;
    std::string rest;
  };
  for (const Row& row : {Row{std::string(40, 'M'), " / HTTP/1.1\r\nHost: a\r\n\r\n"},
                         Row{lines + std::string(40, 'N'), ": v\r\n\r\n"},
                         Row{lines + "X: " + std::string(40, 'v'), "\r\n\r\n"}}) {
    HeadParser parser;
    RequestHead head;
    ASSERT_EQ(parser.parse(row.begun, head).kind, ParseResult::Kind::incomplete);
    std::string changed = row.begun + row.rest;
    changed[row.begun.size() - 20] = '\x01';
    EXPECT_EQ(parser.parse(changed, head).kind, ParseResult::Kind::complete) << row.begun;
  }
}

TEST(ParserArrival, OnlyHostLinesReachTheCache) {
  HostLineCache cache;
  const auto content_of = [&cache](std::string_view text) {
    HeadParser parser({}, &cache);
    return feed(parser, text, {text.size()}).content;
  };
  const std::string start = "POST / HTTP/1.1\r\n";
  const std::string host = "Host: a.test\r\n";
  const std::string length = "Content-Length: 5\r\n";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(content_of(start + host + length + "\r\n"),
              "POST / 1.1 @a.test [Host:a.test] [Content-Length:5] length=5 body");
    EXPECT_EQ(content_of(start + length + host + "\r\n"),
              "POST / 1.1 @a.test [Content-Length:5] [Host:a.test] length=5 body");
    EXPECT_EQ(content_of(start + host + "Connection: close\r\n\r\n"),
              "POST / 1.1 @a.test [Host:a.test] [Connection:close] close");
    EXPECT_EQ(content_of(start + "Connection: close\r\n" + host + "\r\n"),
              "POST / 1.1 @a.test [Connection:close] [Host:a.test] close");
    EXPECT_EQ(content_of(start + "X: y\r\nHost: b.test\r\n\r\n"),
              "POST / 1.1 @b.test [X:y] [Host:b.test]");
  }
}

}  // namespace
}  // namespace weir::http::parser_arrival_test
