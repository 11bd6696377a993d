// Tests of Headers.
#include "weir/http/message/headers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weir/http/test/heap_fixture.hpp"

namespace weir::http::headers_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(Headers, FindsNoNameWithAColon) {
  Headers headers;
  ASSERT_TRUE(headers.add("A", "b: c"));
  EXPECT_EQ(headers.get("a"), "b: c");
  EXPECT_FALSE(headers.get("A: b").has_value());
}

TEST(Headers, FindsTheFirstHeaderInAnyCase) {
  Headers headers;
  ASSERT_TRUE(headers.add("Content-Type", "text/plain"));
  ASSERT_TRUE(headers.add("X-Trace", "1"));
  ASSERT_TRUE(headers.add("x-trace", "2"));
  EXPECT_EQ(headers.get("content-TYPE"), "text/plain");
  EXPECT_EQ(headers.get("X-TRACE"), "1");
  EXPECT_FALSE(headers.get("X-Trac").has_value());
  EXPECT_FALSE(headers.get("").has_value());
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
  for (const HeaderField header : headers)
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

TEST(Headers, ShortListsNeedNoHeapMemory) {
  if (!TestHeap::replaced) GTEST_SKIP() << "only a replaced operator new counts allocations";
  const std::string name(10, 'n');
  for (const std::size_t size :
       {Headers::inline_capacity - 1, Headers::inline_capacity, Headers::inline_capacity + 1}) {
    const std::string value(size - 2 * (name.size() + 4), 'v');
    const std::uint64_t before = TestHeap::news;
    Headers headers;
    ASSERT_TRUE(headers.add(name, value));
    ASSERT_TRUE(headers.add(name, ""));
    const Headers copy = headers;
    const Headers moved = std::move(headers);
    const std::uint64_t allocations = TestHeap::news - before;
    EXPECT_EQ(moved.lines().size(), size);
    EXPECT_EQ(copy.lines(), moved.lines());
    EXPECT_EQ(allocations == 0, size <= Headers::inline_capacity) << size;
  }
}

TEST(Headers, AGrowingListAllocatesSeldom) {
  if (!TestHeap::replaced) GTEST_SKIP() << "only a replaced operator new counts allocations";
  const std::string value(9, 'v');  // each line has 14 bytes
  const std::uint64_t before = TestHeap::news;
  Headers headers;
  for (int each = 0; each < 256; ++each) ASSERT_TRUE(headers.add("N", value));
  const std::uint64_t allocations = TestHeap::news - before;
  EXPECT_EQ(headers.lines().size(), 3584U);
  EXPECT_LE(allocations, 6U) << "each one doubles the memory at least";
}

TEST(Headers, AnInvalidHeaderLeavesTheListUnchanged) {
  Headers headers;
  ASSERT_TRUE(headers.add("A", "1"));
  ASSERT_TRUE(headers.add("B", "2"));
  EXPECT_EQ(headers.set("A", "x\r\ny").error(), Errc::bad_input);
  EXPECT_EQ(headers.set("A b", "x").error(), Errc::bad_input);
  EXPECT_EQ(headers.add("A", "x\ny").error(), Errc::bad_input);
  EXPECT_EQ(headers.lines(), "A: 1\r\nB: 2\r\n");
}

TEST(Headers, RemovesHeadersAtEveryPosition) {
  const std::string names = "abcde";
  for (const char removed : names) {
    Headers headers;
    std::string expected;
    for (const char name : names) {
      const std::string value(static_cast<std::size_t>(name - 'a') * 20, name);
      ASSERT_TRUE(headers.add({&name, 1}, value));
      if (name != removed) expected.append(1, name).append(": ").append(value).append("\r\n");
    }
    EXPECT_EQ(headers.remove({&removed, 1}), 1U);
    EXPECT_EQ(headers.lines(), expected);
    EXPECT_EQ(headers.count(), 4U);
    EXPECT_FALSE(headers.contains({&removed, 1}));
  }
  Headers headers;
  for (int each = 0; each < 3; ++each) ASSERT_TRUE(headers.add("X", std::to_string(each)));
  EXPECT_EQ(headers.remove("x"), 3U);
  EXPECT_TRUE(headers.empty());
  EXPECT_EQ(headers.count(), 0U);
  EXPECT_EQ(headers.remove("x"), 0U);
}

TEST(Headers, IteratorsAdvanceByOne) {
  Headers headers;
  EXPECT_EQ(headers.begin(), headers.end());
  ASSERT_TRUE(headers.add("A", "1"));
  ASSERT_TRUE(headers.add("B", "2"));
  auto each = headers.begin();
  EXPECT_NE(each, headers.end());
  const auto before = each++;
  EXPECT_EQ((*before).name, "A");
  EXPECT_EQ((*each).name, "B");
  EXPECT_NE(before, each);
  EXPECT_EQ(++each, headers.end());
}

TEST(Headers, AClearedListCanBeFilledAgain) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}}) {
    Headers headers;
    ASSERT_TRUE(headers.add("A", std::string(size, 'a')));
    headers.clear();
    EXPECT_TRUE(headers.empty());
    EXPECT_EQ(headers.lines(), "");
    EXPECT_FALSE(headers.get("A").has_value());
    ASSERT_TRUE(headers.add("B", "b"));
    EXPECT_EQ(headers.lines(), "B: b\r\n");
  }
}

TEST(Headers, AssignmentReplacesAListOfAnySize) {
  for (const std::size_t from : {0U, 1U, 200U, 5000U}) {
    for (const std::size_t to : {0U, 1U, 200U, 5000U}) {
      Headers source;
      Headers copied;
      Headers moved;
      ASSERT_TRUE(source.add("From", std::string(from, 'f')));
      ASSERT_TRUE(copied.add("To", std::string(to, 't')));
      ASSERT_TRUE(moved.add("To", std::string(to, 't')));
      const std::string lines(source.lines());
      copied = source;
      EXPECT_EQ(copied.lines(), lines);
      EXPECT_EQ(source.lines(), lines);
      moved = std::move(source);
      EXPECT_EQ(moved.lines(), lines);
      ASSERT_TRUE(copied.add("More", std::string(200, 'm')));
      ASSERT_TRUE(moved.add("More", std::string(200, 'm')));
      EXPECT_EQ(copied.lines(), lines + "More: " + std::string(200, 'm') + "\r\n");
      EXPECT_EQ(moved.lines(), copied.lines());
    }
  }
}

TEST(Headers, ValidHeadersFollowTheGrammar) {
  EXPECT_TRUE(is_valid_header("a", ""));
  EXPECT_TRUE(is_valid_header("!#$%&'*+-.^_`|~09Az", " \t~\x80\xff"));
  EXPECT_FALSE(is_valid_header("", "v"));
  EXPECT_FALSE(is_valid_header("a:", "v"));
  EXPECT_FALSE(is_valid_header("a", "\x1f"));
  EXPECT_FALSE(is_valid_header("a", "\x7f"));
}

TEST(Headers, AssignmentToItselfKeepsTheList) {
  for (const std::size_t size : {1U, 1000U}) {
    Headers headers;
    ASSERT_TRUE(headers.add("A", std::string(size, 'a')));
    Headers& same = headers;
    headers = same;
    EXPECT_EQ(headers.get("A"), std::string(size, 'a'));
    headers = std::move(same);
    EXPECT_EQ(headers.get("A"), std::string(size, 'a'));
  }
}

TEST(Headers, FieldsThatBelongToAHeadAreNoTrailers) {
  for (const std::string_view name : {"Content-Length",
                                      "Transfer-Encoding",
                                      "TE",
                                      "Host",
                                      "Authorization",
                                      "www-authenticate",
                                      "Proxy-Authenticate",
                                      "Proxy-Authorization",
                                      "Cookie",
                                      "Set-Cookie",
                                      "Cache-Control",
                                      "Content-Encoding",
                                      "Content-Range",
                                      "Content-Type",
                                      "Max-Forwards",
                                      "If-Match",
                                      "If-Range",
                                      "Range",
                                      "Age",
                                      "Date",
                                      "Expires",
                                      "Location",
                                      "Retry-After",
                                      "Vary",
                                      "Pragma",
                                      "Origin",
                                      "Early-Data",
                                      "Sec-Fetch-Site",
                                      "sec-any",
                                      "X-Api-Key",
                                      "traceparent",
                                      "tracestate",
                                      "Accept-Encoding",
                                      "Access-Control-Allow-Origin",
                                      "Content-Security-Policy",
                                      "Content-Disposition",
                                      "Cross-Origin-Opener-Policy",
                                      "strict-transport-security",
                                      "X-Content-Type-Options"}) {
    EXPECT_FALSE(may_be_trailer(name)) << name;
  }
  for (const std::string_view name :
       {"ETag", "Grpc-Status", "grpc-status-details-bin", "X-Sum", "Server-Timing", "Proxy-Status",
        "Content-Digest", "Content-MD5", "Repr-Digest", "Authentication-Info", "Signature",
        "Acceptance", "Second", "Contents"}) {
    EXPECT_TRUE(may_be_trailer(name)) << name;
  }
}

TEST(Headers, FieldsOfACodingAreKnown) {
  for (const std::string_view name : {"Content-Encoding", "content-length", "Content-MD5",
                                      "Content-Digest", "Repr-Digest", "DIGEST"}) {
    EXPECT_TRUE(is_coding_field(name)) << name;
  }
  for (const std::string_view name : {"Content-Type", "ETag", "Transfer-Encoding", "Want-Digest"}) {
    EXPECT_FALSE(is_coding_field(name)) << name;
  }
}

}  // namespace
}  // namespace weir::http::headers_test
