// Tests of the answer to plain HTTP at a port of HTTPS.
#include "weir/http/server/detail/plain_http_answer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::http::plain_http_answer_test {
namespace {

std::string_view answer_to(std::string_view first) {
  return plain_http_answer(to_bytes(first));
}

TEST(PlainHttpAnswer, IsGivenToEachMethod) {
  for (const auto* method : {"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE",
                             "QUERY", "PROPFIND", "M-SEARCH", "PRI"}) {
    const std::string request = std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (const std::size_t size : {request.size(), std::size_t{5}}) {
      const std::string_view answer = answer_to(request.substr(0, size));
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << request;
      EXPECT_TRUE(answer.ends_with("https:// in place of http://\n"));
      EXPECT_TRUE(answer.contains("\r\nConnection: close\r\n"));
    }
  }
}

TEST(PlainHttpAnswer, HasNoBodyForHead) {
  const std::string_view answer = answer_to("HEAD / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(PlainHttpAnswer, IsNotGivenToOtherBytes) {
  using namespace std::string_view_literals;
  for (const std::string_view first :
       {""sv, "\x16\x03\x01\x02\x00"sv, "\x80\x2e\x01\x03\x01"sv, "\r\n\r\nGET"sv, "get / "sv,
        " GET /"sv, "GET\t/"sv, "\xf1\xf2\xf3\xf4\xf5"sv}) {
    EXPECT_EQ(answer_to(first), "") << testing::PrintToString(first);
  }
}

}  // namespace
}  // namespace weir::http::plain_http_answer_test
