// Tests of the framing headers.
#include "weir/http/detail/h1/framing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace weir::http::framing_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(Framing, ContentLengthIsDigitsThatFit63Bits) {
  std::uint64_t length = 7;
  EXPECT_EQ(parse_content_length("0", length), ParseError::none);
  EXPECT_EQ(length, 0u);
  EXPECT_EQ(parse_content_length("005", length), ParseError::none);
  EXPECT_EQ(length, 5u);
  EXPECT_EQ(parse_content_length("9223372036854775807", length), ParseError::none);
  EXPECT_EQ(length, 9223372036854775807u);
  for (auto text :
       {""sv, "9223372036854775808"sv, "18446744073709551616"sv, "99999999999999999999"sv, "+5"sv,
        "-5"sv, " 5"sv, "5 "sv, "5 5"sv, "0x5"sv, "5_0"sv, "5;q=1"sv, "5.0"sv, "1e3"sv, "\xb2"sv,
        "5\0"sv, "\"5\""sv, "\xef\xbc\x95"sv}) {
    EXPECT_EQ(parse_content_length(text, length), ParseError::bad_content_length) << text;
  }
  for (auto text : {"5,5", "5, 5", "5,6", "5,", ",5"}) {
    EXPECT_EQ(parse_content_length(text, length), ParseError::repeated_content_length) << text;
  }
  EXPECT_EQ(length, 9223372036854775807u);
}

TEST(Framing, AcceptsChunkedOnlyAlone) {
  for (auto text : {"chunked", "CHUNKED", "Chunked"}) {
    EXPECT_EQ(check_transfer_encoding(text), ParseError::none) << text;
  }
  for (auto text : {"identity", "xchunked", "gzip", "gzip, chunked", "gzip;q=1, chunked",
                    "chunkedx", "deflate,gzip", "chunke"}) {
    EXPECT_EQ(check_transfer_encoding(text), ParseError::unknown_transfer_coding) << text;
  }
  for (auto text : {"", ",", ", chunked", "chunked,", "chunked, chunked", "chunked, gzip",
                    "gzip, chunked, chunked", "\"chunked\"", "chunked;a=b", "chunked ;a",
                    "chun ked", "chunked chunked", ";", "gzip,,chunked", "gzip, ;", "gzip, \"x\"",
                    "\x0b"
                    "chunked",
                    "chunked\xa0"}) {
    EXPECT_EQ(check_transfer_encoding(text), ParseError::bad_transfer_encoding) << text;
  }
}

TEST(Framing, ConnectionIsAListOfTokens) {
  ConnectionOptions options;
  EXPECT_EQ(parse_connection("Keep-Alive , ,foo,UPGRADE", options), ParseError::none);
  EXPECT_TRUE(options.keep_alive);
  EXPECT_TRUE(options.upgrade);
  EXPECT_FALSE(options.close);
  EXPECT_EQ(parse_connection("CLOSE", options), ParseError::none);
  EXPECT_TRUE(options.close);
  EXPECT_TRUE(options.keep_alive);
  ConnectionOptions none;
  EXPECT_EQ(parse_connection("", none), ParseError::none);
  EXPECT_EQ(parse_connection("closed, xclose, close-x", none), ParseError::none);
  EXPECT_FALSE(none.close);
  for (auto text : {"close x", "\"close\"", "close;a", "close\xa0", "a, (b)"}) {
    EXPECT_EQ(parse_connection(text, none), ParseError::bad_connection) << text;
  }
}

TEST(Framing, ParsesExpectations) {
  EXPECT_EQ(parse_expect("100-Continue"), Expectation::continue_);
  EXPECT_EQ(parse_expect("100-continue, 100-continue"), Expectation::continue_);
  EXPECT_EQ(parse_expect(""), Expectation::none);
  for (auto text : {"100-continue, x", "x", "100-continue;a", "100-continue=1", "200-ok", "100"}) {
    EXPECT_EQ(parse_expect(text), Expectation::other) << text;
  }
}

TEST(Framing, ContentLengthTakesEveryLength) {
  std::uint64_t length = 7;
  for (const auto& [text, expected] :
       std::initializer_list<std::pair<std::string_view, std::uint64_t>>{
           {"1", 1},
           {"9", 9},
           {"10", 10},
           {"1234567890", 1234567890},
           {"922337203685477580", 922337203685477580},
           {"9223372036854775799", 9223372036854775799},
           {"9223372036854775800", 9223372036854775800U},
           {"9223372036854775806", 9223372036854775806U},
           {"0000000000000000000000000000000000000042", 42}}) {
    EXPECT_EQ(parse_content_length(text, length), ParseError::none) << text;
    EXPECT_EQ(length, expected);
  }
  for (const std::string_view text :
       {"9223372036854775810", "10000000000000000000", "92233720368547758070",
        "184467440737095516160", "18446744073709551617", "36893488147419103233"}) {
    EXPECT_EQ(parse_content_length(text, length), ParseError::bad_content_length) << text;
  }
  EXPECT_EQ(length, 42U);
}

TEST(Framing, ConnectionSetsExactlyItsOptions) {
  struct Case {
    std::string_view value;
    std::string_view options;
  };
  for (const Case& each : std::initializer_list<Case>{{"", ""},
                                                      {",", ""},
                                                      {"x", ""},
                                                      {"keep-alive", "k"},
                                                      {"Keep-Alive", "k"},
                                                      {"close", "c"},
                                                      {"upgrade", "u"},
                                                      {"close,keep-alive", "ck"},
                                                      {"keep-alive, close", "ck"},
                                                      {"keep-alive,upgrade", "ku"},
                                                      {" , upgrade\t,\tclose ,", "cu"},
                                                      {"x,close,y", "c"},
                                                      {"keep-alives,xkeep-alive,keep-aliv", ""},
                                                      {"upgraded, closer", ""}}) {
    ConnectionOptions options;
    EXPECT_EQ(parse_connection(each.value, options), ParseError::none) << each.value;
    std::string seen;
    if (options.close) seen += 'c';
    if (options.keep_alive) seen += 'k';
    if (options.upgrade) seen += 'u';
    EXPECT_EQ(seen, each.options) << each.value;
  }
  ConnectionOptions options;
  for (const std::string_view value : {"close, a b", "a/b", "close;", ",:", "x\x80"}) {
    EXPECT_EQ(parse_connection(value, options), ParseError::bad_connection) << value;
  }
}

TEST(Framing, ExpectationsAreAList) {
  for (const std::string_view value : {"", ",", " , ,", "\t"}) {
    EXPECT_EQ(parse_expect(value), Expectation::none) << value;
  }
  for (const std::string_view value :
       {"100-continue", ",100-CONTINUE", "100-continue,", " 100-continue , "}) {
    EXPECT_EQ(parse_expect(value), Expectation::continue_) << value;
  }
  for (const std::string_view value : {"x,100-continue", "100-continue,x", "100-continu",
                                       "100-continued", "100 continue", "\"100-continue\""}) {
    EXPECT_EQ(parse_expect(value), Expectation::other) << value;
  }
}

TEST(Framing, TransferCodingsAreAList) {
  for (const std::string_view value :
       {"gzip,chunked", "gzip , chunked", "gzip;q=\"a\",Chunked", "gzip ; q=1 , deflate", "a,b,c",
        "identity", "chunked-x", "x-chunked,chunked"}) {
    EXPECT_EQ(check_transfer_encoding(value), ParseError::unknown_transfer_coding) << value;
  }
  for (const std::string_view value :
       {"chunked,gzip", "chunked,chunked", "gzip,chunked,deflate", "chunked,", ",chunked", " ",
        ",gzip", "gzip,,x", "gz ip", "gzip,chunked;q=1", "chunked;", "(gzip)", "gzip, chunked, "}) {
    EXPECT_EQ(check_transfer_encoding(value), ParseError::bad_transfer_encoding) << value;
  }
}

}  // namespace
}  // namespace weir::http::framing_test
