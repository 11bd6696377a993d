// Tests of the head parser's limits: a head at the limit is accepted, one byte or line above it is
// not, in every form and for every arrival.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/test/head_arrival.hpp"

namespace weir::http::parser_limits_test {
namespace {

constexpr std::size_t mebibyte = 1024 * 1024;
constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

/// Parses all bytes in one call.
ParseError error_of(std::string_view text, const HeadLimits& limits) {
  HeadParser parser(limits);
  RequestHead head;
  const ParseResult result = parser.parse(text, head);
  EXPECT_NE(result.kind, ParseResult::Kind::incomplete);
  return result.error;
}

/// Expects `error` for every arrival of `text`, or a complete head for ParseError::none.
void expect_error(std::string_view text, ParseError error, const HeadLimits& limits) {
  HeadOutcome expected = invalid_head(error);
  if (error == ParseError::none) {
    HeadParser parser(limits);
    RequestHead head;
    ASSERT_EQ(parser.parse(text, head).kind, ParseResult::Kind::complete) << text;
    expected = complete_head(text, describe(head));
  }
  expect_for_every_arrival(text, expected, limits);
}

TEST(ParserLimits, RequestLineHasAtMostItsLimit) {
  constexpr std::size_t limit = 50;
  const std::string version = " HTTP/1.0";
  for (const std::string start : {"GET /", "POST /", "PUT /", "GET /?q=", "GET /%41", "GET /a/.b/",
                                  "OPTIONS http://a/", "GET http://a?"}) {
    for (const std::string before : {"", "\r\n\r\n"}) {
      for (const std::size_t length : {limit - 1, limit, limit + 1, limit + 2, 2 * limit}) {
        const std::string fill(length - start.size() - version.size(), 'p');
        expect_error(before + start + fill + version + "\r\n\r\n",
                     length <= limit ? ParseError::none : ParseError::request_line_too_long,
                     {.request_line_max = limit});
      }
    }
  }
}

TEST(ParserLimits, RequestLineThatFitsExactlyNeedsNoHeader) {
  const std::string line = "GET / HTTP/1.0";
  for (const std::string method : {"GET", "PUT"}) {
    const std::string text = method + " / HTTP/1.0\r\n\r\n";
    const auto size = static_cast<std::uint32_t>(line.size());
    expect_error(text, ParseError::none, {.request_line_max = size});
    expect_error(text, ParseError::request_line_too_long, {.request_line_max = size - 1});
    expect_error(text, ParseError::request_line_too_long, {.request_line_max = 0});
  }
}

TEST(ParserLimits, MethodThatNeverEndsIsRejectedAtTheLimit) {
  const HeadLimits limits{.request_line_max = 20};
  for (const std::string& text :
       {std::string(40, 'G'), "GET /" + std::string(40, 'p'), "PUT /" + std::string(40, 'p'),
        "\r\nGET " + std::string(40, 'p')}) {
    const std::size_t line = text.starts_with('\r') ? 2 : 0;
    const ParseError error =
        text.starts_with("GG") ? ParseError::method_too_long : ParseError::request_line_too_long;
    // The line end of a line at the limit would follow its 20 bytes.
    expect_for_every_arrival(text.substr(0, line + 21), incomplete_head(), limits);
    expect_error(text.substr(0, line + 22), error, limits);
    expect_error(text, error, limits);
  }
}

TEST(ParserLimits, MethodIsTooLongIfTheLineIsAndNoRegisteredMethodIsAsLong) {
  const HeadLimits limits{.request_line_max = 40};
  for (const std::size_t size : {17U, 18U, 38U, 39U, 40U, 41U, 42U, 43U, 80U}) {
    const ParseError error =
        size > 17 ? ParseError::method_too_long : ParseError::request_line_too_long;
    const std::string method(size, 'M');
    const std::string target = "/" + std::string(40, 'p');
    expect_error(method + " " + target + " HTTP/1.0\r\n\r\n", error, limits);
    expect_error("\r\n" + method + " " + target, error, limits);
  }
  expect_error(std::string(29, 'M') + " / HTTP/1.0\r\n\r\n", ParseError::none, limits);
  // The version is the part that crosses the limit.
  expect_error(std::string(30, 'M') + " / HTTP/1.0\r\n\r\n", ParseError::method_too_long, limits);
  // A byte that no token has is the error that comes first.
  expect_error(std::string(30, 'M') + "(" + std::string(30, 'M'), ParseError::bad_method, limits);
}

TEST(ParserLimits, MethodAtTheDefaultLimitIsTooLong) {
  for (const std::size_t size : {8191U, 8192U, 8193U, 8194U, 8195U, 70'000U}) {
    const std::string method(size, 'M');
    EXPECT_EQ(error_of(method + " / HTTP/1.1\r\nHost: a\r\n\r\n", {}), ParseError::method_too_long)
        << size;
  }
}

TEST(ParserLimits, HeaderLinesHaveAtMostTheirBytes) {
  constexpr std::size_t limit = 60;
  for (const std::string request_line : {"GET / HTTP/1.1\r\n", "PUT /x HTTP/1.1\r\n",
                                         "\r\nGET / HTTP/1.1\r\n", "GET /?a=%41 HTTP/1.1\r\n"}) {
    for (const std::string lines :
         {"Host: a\r\nX: ", "Host: a\r\nX:", "X: y \r\nHost:  a\r\nY:\t"}) {
      for (const std::size_t length : {limit - 1, limit, limit + 1, limit + 2, 2 * limit}) {
        const std::string end = "\r\n\r\n";
        const std::string fill(length - lines.size() - end.size(), 'v');
        expect_error(request_line + lines + fill + end,
                     length <= limit ? ParseError::none : ParseError::headers_too_long,
                     {.headers_bytes_max = limit});
      }
    }
  }
}

TEST(ParserLimits, HostLineCountsAgainstTheBytes) {
  for (const std::string host : {"Host: a.test\r\n", "Host: a.test \r\n"}) {
    const std::string text = "GET / HTTP/1.1\r\n" + host + "\r\n";
    const auto bytes = static_cast<std::uint32_t>(host.size() + 2);
    expect_error(text, ParseError::none, {.headers_bytes_max = bytes});
    for (std::uint32_t fewer = 1; fewer <= bytes; ++fewer) {
      expect_error(text, ParseError::headers_too_long, {.headers_bytes_max = bytes - fewer});
    }
  }
}

TEST(ParserLimits, EmptyLineCountsAgainstTheBytes) {
  const std::string_view text = "GET / HTTP/1.0\r\n\r\n";
  expect_error(text, ParseError::none, {.headers_bytes_max = 2});
  expect_error(text, ParseError::headers_too_long, {.headers_bytes_max = 1});
  expect_error(text, ParseError::headers_too_long, {.headers_bytes_max = 0});
}

TEST(ParserLimits, LinesAreCounted) {
  const std::string usual = "X: y\r\n";
  const std::string unusual = "X_Y: z \r\n";
  const std::string host = "Host: a.test\r\n";
  for (const std::string& first : {usual, unusual, host}) {
    for (const std::string& second : {usual, unusual, host + ""}) {
      if (first == host && second == host) continue;
      const std::string version = first == host || second == host ? "1.1" : "1.0";
      for (const std::string method : {"GET", "PUT"}) {
        const std::string text = method + " / HTTP/" + version + "\r\n" + first + second + "\r\n";
        expect_error(text, ParseError::none, {.headers_max = 3});
        expect_error(text, ParseError::none, {.headers_max = 2});
        expect_error(text, ParseError::too_many_headers, {.headers_max = 1});
        expect_error(text, ParseError::too_many_headers, {.headers_max = 0});
      }
    }
  }
  expect_error("GET / HTTP/1.0\r\n\r\n", ParseError::none, {.headers_max = 0});
}

TEST(ParserLimits, TheLimitOfLinesCanBeRaisedAbove100) {
  for (const std::string line : {"X: y\r\n", "X: y \r\n"}) {
    for (const std::uint32_t limit : {99U, 100U, 101U, 200U, 201U}) {
      std::string head = "GET / HTTP/1.0\r\n";
      for (std::uint32_t each = 0; each < limit; ++each) head += line;
      expect_error(head + "\r\n", ParseError::none, {.headers_max = limit});
      expect_error(head + "\r\n", ParseError::none, {.headers_max = unlimited});
      expect_error(head + line + "\r\n", ParseError::too_many_headers, {.headers_max = limit});
    }
  }
  EXPECT_EQ(HeadLimits().headers_max, 100U);
}

TEST(ParserLimits, AHeadKeepsAllOfItsLines) {
  constexpr std::uint32_t lines = 1'000;
  std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (std::uint32_t each = 1; each < lines; ++each) {
    text += "X-" + std::to_string(each) + ": " + std::to_string(each * 7) + "\r\n";
  }
  text += "\r\n";
  RequestHead head;
  for (int round = 0; round < 2; ++round) {
    HeadParser parser({.headers_max = lines});
    ASSERT_EQ(parser.parse(text, head).kind, ParseResult::Kind::complete);
  }
  RequestHead copy(head);
  for (RequestHead* const each : {&head, &copy}) {
    ASSERT_EQ(each->header_count(), lines);
    EXPECT_EQ(each->header_at(0).value, "a");
    EXPECT_EQ(each->header("x-100"), "700");
    EXPECT_EQ(each->header("x-999"), "6993");
  }
  copy.remove_headers([](std::string_view name) { return name == "X-5"; });
  EXPECT_EQ(copy.header_count(), lines - 1);
  EXPECT_EQ(copy.header("x-6"), "42");
  EXPECT_EQ(head.header("x-5"), "35");
  HeadParser parser;
  ASSERT_EQ(parser.parse("GET / HTTP/1.0\r\nA: b\r\n\r\n", head).kind, ParseResult::Kind::complete);
  EXPECT_EQ(head.header_count(), 1U) << "the object can be filled again";
  copy = head;
  EXPECT_EQ(copy.header("a"), "b");
}

TEST(ParserLimits, EmptyLinesBeforeARequestAreCounted) {
  const std::string head = "GET / HTTP/1.0\r\n\r\n";
  std::string lines;
  for (std::uint32_t count = 0; count <= 6; ++count, lines += "\r\n") {
    for (std::uint32_t limit = 0; limit <= 6; ++limit) {
      expect_error(lines + head,
                   count <= limit ? ParseError::none : ParseError::too_many_empty_lines,
                   {.empty_lines_max = limit});
    }
    expect_error(lines + head, count <= 4 ? ParseError::none : ParseError::too_many_empty_lines,
                 {});
  }
}

TEST(ParserLimits, EmptyLinesCountAgainForTheNextHead) {
  const std::string text = "\r\n\r\nGET / HTTP/1.0\r\n\r\n";
  HeadParser parser({.empty_lines_max = 2});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(feed(parser, text, {text.size()}).kind, ParseResult::Kind::complete);
    EXPECT_EQ(feed(parser, text, {1, 4, 5, text.size()}).kind, ParseResult::Kind::complete);
    EXPECT_EQ(feed(parser, text, {4}).kind, ParseResult::Kind::incomplete);
    parser.reset();
  }
}

TEST(ParserLimits, DefaultsAreThoseOfTheContract) {
  const HeadLimits limits;
  EXPECT_EQ(limits.request_line_max, 8192U);
  EXPECT_EQ(limits.headers_bytes_max, 65536U);
  EXPECT_EQ(limits.headers_max, 100U);
  EXPECT_EQ(limits.empty_lines_max, 4U);
}

TEST(ParserLimits, ALimitAbove16MebibytesCountsAs16Mebibytes) {
  for (const std::size_t over : {0U, 1U}) {
    const std::string start = "GET /";
    const std::string version = " HTTP/1.0";
    const std::string path(16 * mebibyte - start.size() - version.size() + over, 'p');
    EXPECT_EQ(error_of(start + path + version + "\r\n\r\n", {.request_line_max = unlimited}),
              over == 0 ? ParseError::none : ParseError::request_line_too_long);
    const std::string value(16 * mebibyte - 6 + over, 'v');
    EXPECT_EQ(
        error_of("GET / HTTP/1.0\r\nX:" + value + "\r\n\r\n", {.headers_bytes_max = unlimited}),
        over == 0 ? ParseError::none : ParseError::headers_too_long);
  }
  std::string empty_lines = "\r\n";
  while (empty_lines.size() < 32 * mebibyte) empty_lines += empty_lines;
  const HeadLimits limits{.empty_lines_max = unlimited};
  EXPECT_EQ(error_of(empty_lines + "GET / HTTP/1.0\r\n\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of(empty_lines + "\r\n", limits), ParseError::too_many_empty_lines);
}

TEST(ParserLimits, ACachedHostLineIsCountedToo) {
  HostLineCache cache;
  const auto parse = [&cache](const std::string& text, const HeadLimits& limits) {
    HeadParser parser(limits, &cache);
    return feed(parser, text, {text.size()}).error;
  };
  const std::string host = "Host: a.test\r\n";
  ASSERT_EQ(parse("GET / HTTP/1.1\r\n" + host + "\r\n", {}), ParseError::none);
  ASSERT_TRUE(cache.matches(host));
  std::string lines;
  for (std::uint32_t count = 0; count <= RequestHead::inline_max; ++count, lines += "X: y\r\n") {
    const std::string text = "GET / HTTP/1.1\r\n" + lines + host + "\r\n";
    EXPECT_EQ(parse(text, {.headers_max = count}), ParseError::too_many_headers) << count;
    EXPECT_EQ(parse(text, {.headers_max = count + 1}), ParseError::none) << count;
  }
}

TEST(ParserLimits, ACachedHostLineCountsAgainstTheBytes) {
  HostLineCache cache;
  const auto parse = [&cache](const std::string& text, const HeadLimits& limits) {
    HeadParser parser(limits, &cache);
    return feed(parser, text, {text.size()}).error;
  };
  const std::string host = "Host: a.test\r\n";
  const std::string text = "GET / HTTP/1.1\r\n" + host + "\r\n";
  const auto bytes = static_cast<std::uint32_t>(host.size() + 2);
  ASSERT_EQ(parse(text, {}), ParseError::none);
  ASSERT_TRUE(cache.matches(host));
  EXPECT_EQ(parse(text, {.headers_bytes_max = bytes}), ParseError::none);
  for (std::uint32_t fewer = 1; fewer <= bytes; ++fewer) {
    EXPECT_EQ(parse(text, {.headers_bytes_max = bytes - fewer}), ParseError::headers_too_long)
        << fewer;
  }
}

}  // namespace
}  // namespace weir::http::parser_limits_test
