// Tests of RequestHead: look-up, copies and views.
#include "weir/http/message/detail/request_head.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/http/detail/h1/parser.hpp"

namespace weir::http::request_head_test {
namespace {

RequestHead head_of(std::string_view text) {
  HeadParser parser;
  RequestHead head;
  EXPECT_EQ(parser.parse(text, head).kind, ParseResult::Kind::complete) << text;
  return head;
}

TEST(RequestHead, FindsTheFirstHeaderInAnyLetterCase) {
  const RequestHead head = head_of(
      "GET / HTTP/1.1\r\nHost: a\r\nAbc: 1\r\nabd: 2\r\nABC: 3\r\nAb: 4\r\nabcd: 5\r\nZ: "
      "6\r\n\r\n");
  EXPECT_EQ(head.header_count(), 7U);
  EXPECT_EQ(head.header("abc"), "1");
  EXPECT_EQ(head.header("ABD"), "2");
  EXPECT_EQ(head.header("aB"), "4");
  EXPECT_EQ(head.header("ABCD"), "5");
  EXPECT_EQ(head.header("z"), "6");
  EXPECT_EQ(head.header("host"), "a");
  for (const std::string_view name : {"", "a", "abe", "abcde", "hos", "Z:"}) {
    EXPECT_FALSE(head.header(name).has_value()) << name;
  }
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\n\r\n").header("abc").has_value());
}

TEST(RequestHead, KnowsARepeatedHeader) {
  const RequestHead head =
      head_of("GET / HTTP/1.1\r\nHost: a\r\nAbc: 1\r\nabcd: 2\r\nABC: \r\nAb: 4\r\n\r\n");
  EXPECT_TRUE(head.repeats("abc"));
  for (const std::string_view name : {"abcd", "ab", "host", "a", ""}) {
    EXPECT_FALSE(head.repeats(name)) << name;
  }
}

TEST(RequestHead, ACopyHasAllHeaders) {
  for (const std::size_t count : {0U, 1U, 2U, 99U, 100U}) {
    std::string text = "GET /p?q HTTP/1.0\r\n";
    for (std::size_t each = 0; each < count; ++each) {
      text += "N" + std::to_string(each) + ": " + std::to_string(each) + "\r\n";
    }
    text += "\r\n";
    const RequestHead head = head_of(text);
    RequestHead assigned = head_of("PUT /other HTTP/1.0\r\nContent-Length: 5\r\n\r\n");
    assigned = head;
    const RequestHead& same = assigned;
    assigned = same;
    const RequestHead copied(assigned);
    for (const RequestHead* each : {&same, &copied}) {
      EXPECT_EQ(each->method(), Method::get);
      EXPECT_EQ(each->target(), "/p?q");
      EXPECT_EQ(each->bytes(), text);
      EXPECT_FALSE(each->has_content_length());
      ASSERT_EQ(each->header_count(), count);
      for (std::size_t index = 0; index < count; ++index) {
        EXPECT_EQ(each->header_at(index).name, "N" + std::to_string(index));
        EXPECT_EQ(each->header_at(index).value, std::to_string(index));
      }
    }
  }
}

TEST(RequestHead, ViewsFollowTheBytes) {
  const std::string text = "GET /p?q HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
  RequestHead head = head_of(text);
  const RequestHead before = head;
  const std::string moved = text;
  head.rebase(moved.data());
  EXPECT_EQ(head.bytes().data(), moved.data());
  EXPECT_EQ(head.path().data(), moved.data() + 4);
  EXPECT_EQ(head.query().data(), moved.data() + 7);
  EXPECT_EQ(head.authority().data(), moved.data() + 25);
  EXPECT_EQ(head.header_at(1).name.data(), moved.data() + 28);
  EXPECT_EQ(head.header_at(1).value.data(), moved.data() + 31);
  EXPECT_EQ(before.path().data(), text.data() + 4);
}

TEST(RequestHead, ABodyHasALengthOrIsChunked) {
  const auto has_body = [](const std::string& line) {
    return head_of("PUT / HTTP/1.1\r\nHost: a\r\n" + line + "\r\n").has_body();
  };
  EXPECT_FALSE(has_body(""));
  EXPECT_FALSE(has_body("Content-Length: 0\r\n"));
  EXPECT_TRUE(has_body("Content-Length: 1\r\n"));
  EXPECT_TRUE(has_body("Content-Length: 9223372036854775807\r\n"));
  EXPECT_TRUE(has_body("Transfer-Encoding: chunked\r\n"));
}

TEST(RequestHead, HeadersCanBeRemovedAndReplaced) {
  std::string text = "PUT / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\n";
  RequestHead head = head_of(text);
  head.remove_headers([](std::string_view name) { return name == "A" || name == "a"; });
  ASSERT_EQ(head.header_count(), 2U);
  EXPECT_EQ(head.header("b"), "2");
  EXPECT_EQ(head.header("a"), std::nullopt);
  const std::string longer = std::string(head.bytes()) + "replaced";
  head.rebase(longer.data());
  head.set_value(1, std::string_view(longer).substr(head.bytes().size()));
  EXPECT_EQ(head.header("b"), "replaced");
  EXPECT_EQ(head.header("host"), "a");
}

TEST(RequestHead, LengthInAStreamIsKnownIfItIsAnnounced) {
  const auto length = [](const std::string& line) {
    const std::string text = "PUT / HTTP/1.1\r\nHost: a\r\n" + line + "\r\n";
    return head_of(text).length_in_stream();
  };
  EXPECT_EQ(length(""), BodyLength::unknown());
  EXPECT_EQ(length("Content-Length: 0\r\n"), BodyLength::unknown()) << "trailers may follow";
  EXPECT_EQ(length("Content-Length: 7\r\n"), BodyLength::of(7));
}

}  // namespace
}  // namespace weir::http::request_head_test
