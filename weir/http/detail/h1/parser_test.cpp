// Tests of the parser of request heads.
#include "weir/http/detail/h1/parser.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace weir::http::parser_test {
namespace {

using std::string_view_literals::operator""sv;
using Kind = ParseResult::Kind;

/// The result of parse() for all bytes in one call, in an allocation of exactly their size.
struct Parsed {
  explicit Parsed(std::string_view text, const HeadLimits& limits = {})
      : bytes(new char[text.size()]), parser(limits) {
    std::memcpy(bytes.get(), text.data(), text.size());
    result = parser.parse({bytes.get(), text.size()}, head);
  }

  std::unique_ptr<char[]> bytes;
  HeadParser parser;
  RequestHead head;
  ParseResult result;
};

ParseError error_of(std::string_view text, const HeadLimits& limits = {}) {
  return Parsed(text, limits).result.error;
}

TEST(Parser, ParsesAHead) {
  const std::string_view text =
      "GET /a%20b/c?x=1 HTTP/1.1\r\nHost: a.test:80\r\nAccept:\t*/* \r\nX-Empty:\r\n\r\nrest";
  Parsed parsed(text);
  ASSERT_EQ(parsed.result.kind, Kind::complete);
  EXPECT_EQ(parsed.result.consumed, text.size() - 4);
  const RequestHead& head = parsed.head;
  EXPECT_EQ(head.method(), Method::get);
  EXPECT_EQ(head.method_text(), "GET");
  EXPECT_EQ(head.target(), "/a%20b/c?x=1");
  EXPECT_EQ(head.path(), "/a%20b/c");
  EXPECT_TRUE(head.path_has_escapes());
  EXPECT_EQ(head.query(), "x=1");
  EXPECT_TRUE(head.has_query());
  EXPECT_EQ(head.authority(), "a.test:80");
  EXPECT_EQ(head.version_minor(), 1);
  ASSERT_EQ(head.header_count(), 3u);
  EXPECT_EQ(head.header_at(1).name, "Accept");
  EXPECT_EQ(head.header_at(1).value, "*/*");
  EXPECT_EQ(head.header("ACCEPT"), "*/*");
  EXPECT_EQ(head.header("x-empty"), "");
  EXPECT_FALSE(head.header("accep").has_value());
  EXPECT_TRUE(head.keep_alive());
  EXPECT_FALSE(head.has_body());
  EXPECT_FALSE(head.requests_upgrade());
  EXPECT_EQ(head.bytes(), text.substr(0, text.size() - 4));
}

TEST(Parser, DecodesFramingHeaders) {
  const Parsed sized(
      "POST / HTTP/1.1\r\nhOST: a\r\ncontent-LENGTH: 17\r\nExpect: 100-Continue\r\n\r\n");
  ASSERT_EQ(sized.result.kind, Kind::complete);
  EXPECT_EQ(sized.head.method(), Method::post);
  EXPECT_TRUE(sized.head.has_content_length());
  EXPECT_EQ(sized.head.content_length(), 17u);
  EXPECT_TRUE(sized.head.has_body());
  EXPECT_TRUE(sized.head.expects_continue());
  const Parsed chunked("BREW /pot HTTP/1.1\r\nHost: a\r\nTRANSFER-encoding: Chunked\r\n\r\n");
  ASSERT_EQ(chunked.result.kind, Kind::complete);
  EXPECT_EQ(chunked.head.method(), Method::other);
  EXPECT_EQ(chunked.head.method_text(), "BREW");
  EXPECT_TRUE(chunked.head.chunked());
  EXPECT_TRUE(chunked.head.has_body());
}

TEST(Parser, ConnectionAndVersionDecideKeepAlive) {
  const auto keeps = [](std::string_view text) { return Parsed(text).head.keep_alive(); };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.9\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(
      keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"));
}

TEST(Parser, IgnoresFeaturesThatHttp10Lacks) {
  const Parsed parsed(
      "GET / HTTP/1.0\r\nExpect: nonsense\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
  ASSERT_EQ(parsed.result.kind, Kind::complete);
  EXPECT_FALSE(parsed.head.expects_continue());
  EXPECT_FALSE(parsed.head.requests_upgrade());
  EXPECT_EQ(parsed.head.authority(), "");
}

TEST(Parser, UpgradeNeedsBothHeaders) {
  EXPECT_TRUE(
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: a, Upgrade\r\n\r\n")
          .head.requests_upgrade());
  EXPECT_FALSE(
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").head.requests_upgrade());
  EXPECT_FALSE(
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n").head.requests_upgrade());
  EXPECT_FALSE(
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive\r\n\r\n")
          .head.requests_upgrade());
}

TEST(Parser, OtherHeadersDoNotChangeTheFraming) {
  // Each name has the length of a header that the parser acts on.
  const Parsed parsed(
      "GET / HTTP/1.1\r\nHost: a\r\nDate: b, c\r\nAccept: 100\r\nRefresh: 5\r\nUser-Agent: "
      "close\r\n"
      "Accept-Charset: 7\r\nIf-Modified-Since: chunked\r\nContent-Length: 3\r\n\r\n");
  ASSERT_EQ(parsed.result.kind, Kind::complete);
  EXPECT_EQ(parsed.head.content_length(), 3u);
  EXPECT_FALSE(parsed.head.chunked());
  EXPECT_FALSE(parsed.head.expects_continue());
  EXPECT_TRUE(parsed.head.keep_alive());
  EXPECT_FALSE(
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nAccept-Charset: 7\r\n\r\n").head.has_content_length());
}

TEST(Parser, PortsOfHostFit16Bits) {
  const auto host = [](std::string_view value) {
    return error_of("GET / HTTP/1.1\r\nHost: " + std::string(value) + "\r\n\r\n");
  };
  EXPECT_EQ(host("a:65535"), ParseError::none);
  EXPECT_EQ(host("a:65536"), ParseError::bad_host);
  EXPECT_EQ(host("a:99999"), ParseError::bad_host);
  EXPECT_EQ(host("a:"), ParseError::none);
  EXPECT_EQ(host(":80"), ParseError::bad_host);
}

TEST(Parser, OnlyASpaceEndsTheTarget) {
  for (const std::string_view separator : {"?", "%", "#", "\t", ";", "%20"}) {
    const std::string line = "GET /a" + std::string(separator) + "HTTP/1.1\r\nHost: a\r\n\r\n";
    EXPECT_NE(error_of(line), ParseError::none) << separator;
  }
}

TEST(Parser, NamesOfHeadersDifferInEachByte) {
  const auto head_of = [](std::string_view name, std::string_view value) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(name) + ": " + std::string(value) +
           "\r\n\r\n";
  };
  const auto with_other_byte = [](std::string_view name, std::size_t index) {
    std::string other(name);
    other[index] = other[index] == 'x' ? 'y' : 'x';
    return other;
  };
  const auto each_other = [&](std::string_view name, std::string_view value, auto effect) {
    EXPECT_TRUE(effect(Parsed(head_of(name, value)).head)) << name;
    for (std::size_t index = 0; index < name.size(); ++index) {
      const std::string other = with_other_byte(name, index);
      const Parsed parsed(head_of(other, value));
      EXPECT_EQ(parsed.result.kind, Kind::complete) << other;
      EXPECT_FALSE(effect(parsed.head)) << other;
    }
  };
  each_other("expect", "100-continue",
             [](const RequestHead& head) { return head.expects_continue(); });
  each_other("connection", "close", [](const RequestHead& head) { return !head.keep_alive(); });
  each_other("content-length", "7",
             [](const RequestHead& head) { return head.has_content_length(); });
  each_other("transfer-encoding", "chunked",
             [](const RequestHead& head) { return head.chunked(); });
  each_other("upgrade", "a\r\nConnection: upgrade",
             [](const RequestHead& head) { return head.requests_upgrade(); });
  for (std::size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(error_of("GET / HTTP/1.1\r\n" + with_other_byte("host", index) + ": a\r\n\r\n"),
              ParseError::missing_host);
  }
}

TEST(Parser, VersionIsTheSameWhereverTheHeadIsCut) {
  for (const std::string_view text :
       {"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"sv, "GET /x HTTP/1.0\r\nHost: a\r\n\r\n"sv}) {
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      HeadParser parser;
      RequestHead head;
      ASSERT_EQ(parser.parse(text.substr(0, cut), head).kind, Kind::incomplete) << cut;
      ASSERT_EQ(parser.parse(text, head).kind, Kind::complete) << cut;
      EXPECT_EQ(head.version_minor(), text.contains("1.1") ? 1 : 0) << cut;
    }
  }
}

TEST(Parser, LimitsOfOneHeadDoNotReachTheNext) {
  HeadParser parser({.headers_bytes_max = 10, .empty_lines_max = 20});
  RequestHead head;
  const std::string_view first = "GET / HTTP/1.0\r\n\r\n";
  std::string second;
  for (int each = 0; each < 20; ++each) second += "\r\n";
  second += first;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(parser.parse(first.substr(0, first.size() - 1), head).kind, Kind::incomplete);
    ASSERT_EQ(parser.parse(first, head).kind, Kind::complete);
    // The allowance of empty lines begins anew for each head, too.
    ASSERT_EQ(parser.parse(second, head).kind, Kind::complete) << round;
    ASSERT_EQ(parser.parse(second, head).kind, Kind::complete) << round;
  }
}

TEST(Parser, PrefersTheAuthorityOfAnAbsoluteTarget) {
  const Parsed parsed("GET http://b.test:1?q HTTP/1.1\r\nHost: a.test\r\n\r\n");
  ASSERT_EQ(parsed.result.kind, Kind::complete);
  EXPECT_EQ(parsed.head.authority(), "b.test:1");
  EXPECT_EQ(parsed.head.path(), "/");
  EXPECT_EQ(parsed.head.query(), "q");
  EXPECT_EQ(error_of("GET http://b.test/ HTTP/1.1\r\n\r\n"), ParseError::missing_host);
  EXPECT_EQ(error_of("GET http://b.test/ HTTP/1.1\r\nHost: a b\r\n\r\n"), ParseError::bad_host);
  const Parsed options("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(options.head.path(), "*");
  EXPECT_EQ(options.head.target_form(), TargetForm::asterisk);
  const Parsed connect("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_EQ(connect.head.authority(), "a.test:443");
  EXPECT_EQ(connect.head.path(), "");
}

TEST(Parser, ReusesOneParserAndHeadForPipelinedRequests) {
  const std::string text =
      "\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      "GET /2 HTTP/1.1\r\nHost: b\r\n\r\nGET /3 HT";
  HeadParser parser;
  RequestHead head;
  std::string_view rest = text;
  ParseResult result = parser.parse(rest, head);
  ASSERT_EQ(result.kind, Kind::complete);
  EXPECT_EQ(head.path(), "/1");
  EXPECT_FALSE(head.keep_alive());
  rest.remove_prefix(result.consumed);
  result = parser.parse(rest, head);
  ASSERT_EQ(result.kind, Kind::complete);
  EXPECT_EQ(head.path(), "/2");
  EXPECT_EQ(head.authority(), "b");
  EXPECT_TRUE(head.keep_alive());
  EXPECT_FALSE(head.has_content_length());
  EXPECT_EQ(head.header_count(), 1u);
  rest.remove_prefix(result.consumed);
  EXPECT_FALSE(parser.started());
  EXPECT_EQ(parser.parse(rest, head).kind, Kind::incomplete);
  EXPECT_TRUE(parser.started());
}

TEST(Parser, SkipsEmptyLinesBeforeARequest) {
  HeadParser parser;
  RequestHead head;
  EXPECT_EQ(parser.parse("", head).kind, Kind::incomplete);
  EXPECT_EQ(parser.parse("\r\n\r", head).kind, Kind::incomplete);
  EXPECT_FALSE(parser.started());
  EXPECT_EQ(parser.parse("\r\n\r\nG", head).kind, Kind::incomplete);
  EXPECT_TRUE(parser.started());
  EXPECT_EQ(error_of("\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n"), ParseError::none);
  EXPECT_EQ(error_of("\r\n\r\n\r\n\r\n\r\n"), ParseError::too_many_empty_lines);
  EXPECT_EQ(error_of("\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("\r\n\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("\r\rGET"), ParseError::bad_line_end);
}

TEST(Parser, AllowsTheBytesOfAHeadToMove) {
  const std::string text = "GET /path?q HTTP/1.1\r\nHost: a.test\r\nX-Long-Name: value\r\n\r\n";
  HeadParser parser;
  RequestHead head;
  ParseResult result;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string elsewhere = text.substr(0, size);
    result = parser.parse(elsewhere, head);
    ASSERT_EQ(result.kind, size < text.size() ? Kind::incomplete : Kind::complete);
  }
  head.rebase(text.data());
  const RequestHead copy = head;
  EXPECT_EQ(copy.path(), "/path");
  EXPECT_EQ(copy.header("x-long-name"), "value");
  EXPECT_EQ(copy.bytes(), text);
}

/// Returns the number of bytes after which the parser failed when fed byte by byte; 0 if it did
/// not.
std::size_t failed_after(const std::string& text, const HeadLimits& limits, ParseError expected) {
  HeadParser parser(limits);
  RequestHead head;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const ParseResult result = parser.parse({text.data(), size}, head);
    if (result.kind == Kind::complete) return 0;
    if (result.kind == Kind::error) {
      EXPECT_EQ(result.error, expected) << name_of(result.error);
      return size;
    }
  }
  return 0;
}

TEST(Parser, RejectsAnEndlessLineAtItsLimit) {
  const HeadLimits limits{.request_line_max = 100, .headers_bytes_max = 200};
  const std::string many(300, 'a');
  const ParseError line = ParseError::request_line_too_long;
  EXPECT_EQ(failed_after(many, limits, ParseError::method_too_long), 102u);
  EXPECT_EQ(failed_after("\r\nGET /" + many, limits, line), 104u);
  EXPECT_EQ(error_of("GET /" + many, limits), line);
  const std::string start = "GET / HTTP/1.1\r\n";
  const ParseError headers = ParseError::headers_too_long;
  EXPECT_EQ(failed_after(start + many, limits, headers), start.size() + 200);
  EXPECT_EQ(failed_after(start + "X:" + many, limits, headers), start.size() + 200);
  EXPECT_EQ(error_of(start + "X:" + many, limits), headers);
}

TEST(Parser, AcceptsInputOfExactlyTheLimit) {
  for (std::size_t over : {std::size_t{0}, std::size_t{1}}) {
    const std::string path(8192 - 14 + over, 'p');
    EXPECT_EQ(error_of("GET /" + path + " HTTP/1.1\r\nHost: a\r\n\r\n"),
              over == 0 ? ParseError::none : ParseError::request_line_too_long);
    const std::string value(65536 - 9 - 4 - 2 + over, 'v');
    EXPECT_EQ(error_of("GET / HTTP/1.1\r\nHost: a\r\nX:" + value + "\r\n\r\n"),
              over == 0 ? ParseError::none : ParseError::headers_too_long);
  }
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int each = 1; each < 100; ++each) head += "X: y\r\n";
  EXPECT_EQ(Parsed(head + "\r\n").head.header_count(), 100u);
  EXPECT_EQ(error_of(head + "X: y\r\n\r\n"), ParseError::too_many_headers);
  EXPECT_EQ(error_of("GET / HTTP/1.1\r\nA:\r\nB:\r\n", {.headers_max = 1}),
            ParseError::too_many_headers);
}

TEST(Parser, ReportsTheExactError) {
  const auto header = [](std::string_view line) {
    return error_of("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n");
  };
  EXPECT_EQ(header("X : y"), ParseError::space_before_colon);
  EXPECT_EQ(header(" X: y"), ParseError::folded_line);
  EXPECT_EQ(header("\tX: y"), ParseError::folded_line);
  EXPECT_EQ(header(": y"), ParseError::bad_header_name);
  EXPECT_EQ(header("X"), ParseError::bad_line_end);
  EXPECT_EQ(header("X(y): z"), ParseError::bad_header_name);
  EXPECT_EQ(header("X: \x01"), ParseError::bad_header_value);
  EXPECT_EQ(header("X: \x7f"), ParseError::bad_header_value);
  EXPECT_EQ(header("X: \0"sv), ParseError::bad_header_value);
  EXPECT_EQ(header("X: a\rb"), ParseError::bad_line_end);
  EXPECT_EQ(header("X: a\nb"), ParseError::bad_line_end);
  EXPECT_EQ(header("X: \xff\x80\tok"), ParseError::none);
  EXPECT_EQ(header("x_y~|`^.!#$%&'*+-9: z"), ParseError::none);
  EXPECT_EQ(header("Host: a"), ParseError::repeated_host);
  EXPECT_EQ(header("Content-Length: 1\r\nContent-Length: 1"), ParseError::repeated_content_length);
  EXPECT_EQ(header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            ParseError::repeated_transfer_encoding);
  EXPECT_EQ(header("Transfer-Encoding: chunked\r\nContent-Length: 1"), ParseError::both_lengths);
  EXPECT_EQ(header("Content-Length: 0\r\nTransfer-Encoding: chunked"), ParseError::both_lengths);
  EXPECT_EQ(header("Transfer-Encoding: gzip"), ParseError::unknown_transfer_coding);
  EXPECT_EQ(header("Expect: x"), ParseError::unknown_expectation);
  EXPECT_EQ(header("Expect: x\r\nContent-Length: x"), ParseError::bad_content_length);
  EXPECT_EQ(header("Connection: (x)"), ParseError::bad_connection);
}

TEST(Parser, ReportsTheExactErrorOfTheRequestLine) {
  const auto line = [](std::string_view text) {
    return error_of(std::string(text) + "\r\nHost: a\r\n\r\n");
  };
  EXPECT_EQ(line(" GET / HTTP/1.1"), ParseError::bad_method);
  EXPECT_EQ(line("GET\t/ HTTP/1.1"), ParseError::bad_method);
  EXPECT_EQ(line("GET"), ParseError::bad_line_end);
  EXPECT_EQ(line("GET  / HTTP/1.1"), ParseError::bad_target);
  EXPECT_EQ(line("GET /"), ParseError::bad_line_end);
  EXPECT_EQ(line("GET /[a]?ids[]=1&f={x}|y HTTP/1.1"), ParseError::none);
  EXPECT_EQ(line("GET /a\\b HTTP/1.1"), ParseError::bad_target);
  EXPECT_EQ(line("GET [ HTTP/1.1"), ParseError::bad_target_form);
  EXPECT_EQ(line("GET http://[::1]/ HTTP/1.1"), ParseError::none);
  EXPECT_EQ(line("GET http://a/[ HTTP/1.1"), ParseError::none);
  EXPECT_EQ(line("GET http://a]/ HTTP/1.1"), ParseError::bad_target_authority);
  EXPECT_EQ(line("CONNECT / HTTP/1.1"), ParseError::bad_target_form);
  EXPECT_EQ(line("CONNECT [::1]:1 HTTP/1.1"), ParseError::none);
  EXPECT_EQ(line("GET / HTTP/2.0"), ParseError::unsupported_version);
  EXPECT_EQ(line("GET / HTTP/0.9"), ParseError::unsupported_version);
  EXPECT_EQ(line("GET / HTTP/1.10"), ParseError::bad_version);
  EXPECT_EQ(line("GET / HTTP/1.1 "), ParseError::bad_version);
  EXPECT_EQ(line("GET / http/1.1"), ParseError::bad_version);
  EXPECT_EQ(line("GET / HTTP/1"), ParseError::bad_line_end);
  EXPECT_EQ(line("GET / "), ParseError::bad_line_end);
  EXPECT_EQ(line("GET /%00 HTTP/1.1"), ParseError::nul_escape);
  EXPECT_EQ(line("GET /?%00&q=100% HTTP/1.1"), ParseError::none);
  EXPECT_EQ(line("GET /a/%2e%2E/b HTTP/1.1"), ParseError::dot_segment);
  EXPECT_EQ(line("PRI * HTTP/1.1"), ParseError::bad_target_form);
  EXPECT_EQ(error_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ParseError::http2_preface);
}

TEST(Parser, HostLineCacheDoesNotChangeTheResult) {
  HostLineCache known;
  HeadLimits limits;
  limits.headers_max = 3;
  const auto parse = [&](std::string_view text, RequestHead& head) {
    HeadParser parser(limits, &known);
    return parser.parse(text, head);
  };
  RequestHead head;
  const std::string_view text = "GET / HTTP/1.1\r\nX: 1\r\nhOst:  a.test:80\r\nY: 2\r\n\r\n";
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(parse(text, head).kind, Kind::complete);
    EXPECT_EQ(head.authority(), "a.test:80");
    ASSERT_EQ(head.header_count(), 3u);
    EXPECT_EQ(head.header_at(1).name, "hOst");
    EXPECT_EQ(head.header_at(1).value, "a.test:80");
  }
  const std::string_view usual = "GET / HTTP/1.1\r\nHost: a.test\r\n";
  const std::string line(usual);
  const std::string whole = line + "\r\n";
  ASSERT_EQ(parse(whole, head).kind, Kind::complete);
  ASSERT_TRUE(known.matches("Host: a.test\r\n"));
  ASSERT_EQ(parse(whole, head).kind, Kind::complete);
  EXPECT_EQ(head.authority(), "a.test");
  EXPECT_EQ(parse(line + "Host: a.test\r\n\r\n", head).error, ParseError::repeated_host);
  EXPECT_EQ(parse(line + "Y: 1\r\nZ: 1\r\nA: 1\r\n\r\n", head).error, ParseError::too_many_headers);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: a.test\rX", head).error, ParseError::bad_line_end);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: a.tes", head).kind, Kind::incomplete);
  ASSERT_EQ(parse("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", head).kind,
            Kind::complete);
  EXPECT_EQ(head.authority(), "b.test");
}

}  // namespace
}  // namespace weir::http::parser_test
