// Tests of the reader of HTTP responses.
#include "weir/sim/http/detail/http_answers.hpp"

#include <gtest/gtest.h>

namespace weir::sim {
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

}  // namespace
}  // namespace weir::sim
