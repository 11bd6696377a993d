// Tests of Headers.
#include "weir/http/message/headers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::http {
namespace {

using std::string_view_literals::operator""sv;

TEST(Headers, FindsTheFirstHeaderInAnyCase) {
  Headers headers;
  ASSERT_TRUE(headers.add("Content-Type", "text/plain"));
  ASSERT_TRUE(headers.add("X-Trace", "1"));
  ASSERT_TRUE(headers.add("x-trace", "2"));
  EXPECT_EQ(headers.get("content-TYPE"), "text/plain");
  EXPECT_EQ(headers.get("X-TRACE"), "1");
  EXPECT_FALSE(headers.get("X-Trac").has_value());
  EXPECT_FALSE(headers.contains("Content_Type"));
  EXPECT_EQ(headers.count(), 3u);
  EXPECT_EQ(headers.lines(), "Content-Type: text/plain\r\nX-Trace: 1\r\nx-trace: 2\r\n");
}

TEST(Headers, IteratesOverHeadersInOrder) {
  Headers headers;
  ASSERT_TRUE(headers.add("A", "1"));
  ASSERT_TRUE(headers.add("B", ""));
  ASSERT_TRUE(headers.add("C", "x: y"));
  std::string seen;
  for (const Header header : headers)
    seen.append(header.name).append("=").append(header.value) += '|';
  EXPECT_EQ(seen, "A=1|B=|C=x: y|");
}

TEST(Headers, RejectsHeadersThatCouldSplitAMessage) {
  Headers headers;
  for (auto value : {"a\r\nSet-Cookie: x"sv, "a\rb"sv, "a\nb"sv, "a\0b"sv, "\x01"sv, "\x7f"sv}) {
    EXPECT_EQ(headers.add("X", value).error(), Errc::bad_input);
    EXPECT_EQ(headers.set("X", value).error(), Errc::bad_input);
  }
  for (auto name : {""sv, "a b"sv, "a:"sv, "a\r\n"sv, "\xc3\xa9"sv, "a\0"sv, "(a)"sv}) {
    EXPECT_EQ(headers.add(name, "v").error(), Errc::bad_input);
  }
  EXPECT_TRUE(headers.empty());
  EXPECT_TRUE(headers.add("X", "caf\xe9\tok"));
}

TEST(Headers, TrimsWhiteSpaceAroundAValue) {
  Headers headers;
  ASSERT_TRUE(headers.add("A", " \tb c\t "));
  EXPECT_EQ(headers.lines(), "A: b c\r\n");
}

TEST(Headers, SetReplacesAllHeadersOfThatName) {
  Headers headers;
  ASSERT_TRUE(headers.add("a", "1"));
  ASSERT_TRUE(headers.add("b", "2"));
  ASSERT_TRUE(headers.add("A", "3"));
  ASSERT_TRUE(headers.set("a", "4"));
  EXPECT_EQ(headers.lines(), "b: 2\r\na: 4\r\n");
  EXPECT_EQ(headers.remove("A"), 1u);
  EXPECT_EQ(headers.remove("A"), 0u);
  EXPECT_EQ(headers.lines(), "b: 2\r\n");
}

TEST(Headers, CopiesAndMovesBeyondTheInlineCapacity) {
  for (std::size_t length : {std::size_t{1}, Headers::inline_capacity - 5,
                             Headers::inline_capacity - 4, std::size_t{5'000}}) {
    Headers headers;
    const std::string value(length, 'v');
    ASSERT_TRUE(headers.add("N", value));
    Headers copy = headers;
    EXPECT_EQ(copy.lines(), headers.lines());
    Headers moved = std::move(headers);
    EXPECT_EQ(moved.get("n"), value);
    EXPECT_TRUE(headers.empty());  // NOLINT: a moved-from list is empty
    ASSERT_TRUE(headers.add("Again", "1"));
    EXPECT_EQ(headers.lines(), "Again: 1\r\n");
    copy = moved;
    EXPECT_EQ(copy.get("N"), value);
    copy = std::move(headers);
    EXPECT_EQ(copy.lines(), "Again: 1\r\n");
    copy = static_cast<const Headers&>(copy);
    EXPECT_EQ(copy.lines(), "Again: 1\r\n");
  }
}

TEST(Headers, KeepsTheOrderOfManyHeaders) {
  Headers headers;
  for (int each = 0; each < 500; ++each) {
    ASSERT_TRUE(headers.add("N" + std::to_string(each), std::to_string(each)));
  }
  EXPECT_EQ(headers.count(), 500u);
  EXPECT_EQ(headers.get("n499"), "499");
  headers.clear();
  EXPECT_TRUE(headers.empty());
  EXPECT_EQ(headers.begin(), headers.end());
}

}  // namespace
}  // namespace weir::http
