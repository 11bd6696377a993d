// Tests of the reader of HTTP responses.
#include "weir/http_testing/detail/http_answers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::sim::http_answers_test {
namespace {

std::string statuses(std::string_view text, const std::vector<std::string_view>& methods = {}) {
  return statuses_of(parse_http_responses(text, methods));
}

TEST(HttpAnswers, AreFramedByLengthAndByChunks) {
  const auto answers = parse_http_responses(
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nab"
      "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(statuses_of(answers), "100 200 404 204");
  EXPECT_EQ(answers[1].body, "ab");
  EXPECT_EQ(answers[1].header("X"), "y");
  EXPECT_EQ(answers[2].body, "abc");
}

TEST(HttpAnswers, IncompleteOnesAreReported) {
  EXPECT_EQ(statuses("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), "200-");
  EXPECT_EQ(statuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"), "200-");
  EXPECT_EQ(statuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), "200-");
  EXPECT_EQ(statuses("HTTP/1.1 200 O"), "0-");
  EXPECT_EQ(statuses("HTTP/1.1 200 OK\r\n\r\nuntil the end"), "200");
}

TEST(HttpAnswers, StrayBytesAreReported) {
  EXPECT_EQ(statuses("HTTP/1.1 204 No Content\r\n\r\nabc\r\n\r\n"), "204 0-");
  EXPECT_EQ(statuses("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", {"HEAD"}), "200");
}

TEST(HttpAnswers, HaveTheFramingOfTheirStatusAndMethod) {
  struct {
    const char* text;
    std::vector<std::string_view> methods;
    const char* expected;
  } const cases[] = {
      {"", {}, ""},
      {"HTTP/1.1 100 C\r\n\r\n", {}, "100"},
      {"HTTP/1.1 199 X\r\n\r\nHTTP/1.1 204 N\r\n\r\n", {}, "199 204"},
      {"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 304 N\r\n\r\n", {}, "200 304"},
      {"HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 N\r\n\r\n", {}, "304 204"},
      {"HTTP/1.1 204 N\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 N\r\n\r\n", {}, "204 204"},
      {"HTTP/1.1 203 N\r\n\r\nx", {}, "203"},
      {"HTTP/1.1 205 N\r\n\r\nx", {}, "205"},
      {"HTTP/1.1 303 N\r\n\r\nx", {}, "303"},
      // A response to HEAD has no body; interim responses are not counted.
      {"HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 N\r\n\r\n", {"HEAD"}, "200 204"},
      {"HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n",
       {"GET", "HEAD"},
       "200 200"},
      {"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n", {"HEAD"}, "100 200"},
      {"HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n", {"GET", "HEAD"}, "200-"},
      {"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n", {"HEAD"}, "200"},
      // The server sends 408 without the method if the head is incomplete.
      {"HTTP/1.1 408 T\r\nContent-Length: 5\r\n\r\n", {"HEAD"}, "408"},
      {"HTTP/1.1 408 T\r\nContent-Length: 5\r\n\r\nslow\n", {"HEAD"}, "408"},
      {"HTTP/1.1 408 T\r\nContent-Length: 5\r\n\r\nslow", {"HEAD"}, "408-"},
      {"HTTP/1.1 204 N\r\n\r\nHTTP/1.1 408 T\r\nContent-Length: 5\r\n\r\nslow\n",
       {"GET", "HEAD"},
       "204 408"},
      // It rejects a connection with 503, which is then the first response.
      {"HTTP/1.1 503 T\r\nContent-Length: 5\r\n\r\n", {"HEAD"}, "503"},
      {"HTTP/1.1 503 T\r\nContent-Length: 5\r\n\r\nfull\n", {"HEAD"}, "503"},
      {"HTTP/1.1 503 T\r\nContent-Length: 5\r\n\r\nfull", {"HEAD"}, "503-"},
      {"HTTP/1.1 503 T\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
       {"HEAD", "GET"},
       "503 204"},
      {"HTTP/1.1 204 N\r\n\r\nHTTP/1.1 503 T\r\nContent-Length: 5\r\n\r\nfull\n",
       {"GET", "HEAD"},
       "204 503 0-"},
      {"HTTP/1.1 500 T\r\nContent-Length: 5\r\n\r\nfull\n", {"HEAD"}, "500 0-"},
      // Not a response.
      {"HTTP/1.0 200 X\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 099 X\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 2040 N\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 20x N\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 204\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 204 N\r\nno colon\r\n\r\n", {}, "0-"},
      {"\r\n\r\n", {}, "0-"},
      {"HTTP/1.1 204 N\r\n\r\nHTTP/1.1 2", {}, "204 0-"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(statuses(each.text, each.methods), each.expected) << each.text;
  }
}

TEST(HttpAnswers, BodiesAreExact) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  struct {
    std::string text;
    const char* body;
    bool complete;
    bool until_close = false;
  } const cases[] = {
      {head + "Content-Length: 3\r\n\r\nabc", "abc", true},
      {head + "Content-Length: 3\r\n\r\nab", "ab", false},
      {head + "Content-Length: 12\r\n\r\nabcdefghijkl", "abcdefghijkl", true},
      {head + "Content-Length: 0\r\n\r\n", "", true},
      {head + "X: y\r\n\r\nabc", "abc", false, true},
      {chunked + "3\r\nabc\r\n0\r\n\r\n", "abc", true},
      {chunked + "1\r\na\r\nB\r\n01234567890\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
       "a012345678900123456789abcdef", true},
      {chunked + "0\r\n\r\n", "", true},
      {chunked, "", false},
      {chunked + "3", "", false},
      {chunked + "3\r\nabc", "abc", false},
      {chunked + "3\r\nabc\r", "abc", false},
      {chunked + "3\r\nabc\r\n", "abc", false},
      {chunked + "3\r\nabc\r\n0\r\n\r", "abc", false},
      {chunked + "1;x=y\r\na\r\n0\r\nX-Sum: t\r\n\r\n", "a", true},
      {chunked + "3\r\nabcd\n0\r\n\r\n", "abc", false},
  };
  for (const auto& each : cases) {
    const auto answers = parse_http_responses(each.text);
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers[0].body, each.body) << each.text;
    EXPECT_EQ(answers[0].complete, each.complete) << each.text;
    EXPECT_EQ(answers[0].until_close, each.until_close) << each.text;
    EXPECT_EQ(answers[0].status, 200);
    if (each.complete) {
      EXPECT_EQ(answers.size(), 1U);
      EXPECT_EQ(statuses(each.text + "HTTP/1.1 404 N\r\nContent-Length: 1\r\n\r\nx"), "200 404");
    }
  }
}

TEST(HttpAnswers, WithAMalformedSizeAreInvalid) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n";
  for (const std::string& text :
       {head + "Content-Length: 1x\r\n\r\na", head + "Content-Length: x\r\n\r\n",
        head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
        chunked + "Content-Length: 12\r\n\r\n1\r\na\r\n0\r\n\r\n"}) {
    EXPECT_EQ(statuses(text + "HTTP/1.1 204 N\r\n\r\n"), "0-") << text;
  }
  for (const std::string& text : {chunked + "\r\nx\r\n\r\n", chunked + "\r\n\r\n\r\n",
                                  chunked + "\r\nffffffffffffffff\r\na\r\n"}) {
    EXPECT_EQ(statuses(text + "HTTP/1.1 204 N\r\n\r\n"), "200-") << text;
  }
  EXPECT_EQ(statuses(head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", {"HEAD"}), "0-");
}

TEST(HttpAnswers, HeadersHaveTheirNamesAndValues) {
  const auto answers =
      parse_http_responses("HTTP/1.1 204 N\r\nOne: 1\r\nTwo: a: b\r\nOne: 2\r\nEmpty: \r\n\r\n");
  ASSERT_EQ(answers.size(), 1U);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"One", "1"}, {"Two", "a: b"}, {"One", "2"}, {"Empty", ""}};
  EXPECT_EQ(answers[0].headers, expected);
  EXPECT_EQ(answers[0].header("One"), "1");
  EXPECT_EQ(answers[0].header("Two"), "a: b");
  EXPECT_EQ(answers[0].header("two"), "") << "in this letter case";
  EXPECT_EQ(answers[0].header("None"), "");
  const auto stray =
      parse_http_responses("HTTP/1.1 204 N\r\n\r\nabc\r\n\r\nHTTP/1.1 204 N\r\n\r\n");
  ASSERT_EQ(stray.size(), 2U) << "nothing follows stray bytes";
  EXPECT_EQ(stray[1].status, 0);
  EXPECT_EQ(stray[1].body, "abc\r\n\r\nHTTP/1.1 204 N\r\n\r\n");
  EXPECT_FALSE(stray[1].complete);
  const HttpResponse none;
  EXPECT_EQ(none.status, 0);
  EXPECT_FALSE(none.complete);
  EXPECT_FALSE(none.until_close);
}

}  // namespace
}  // namespace weir::sim::http_answers_test
