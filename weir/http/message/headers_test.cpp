#include "weir/http/message/headers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::http {
namespace {

using std::string_view_literals::operator""sv;

TEST(Fields, NamesAreFoundInAnyCaseAndTheFirstWins) {
  Fields fields;
  ASSERT_TRUE(fields.add("Content-Type", "text/plain"));
  ASSERT_TRUE(fields.add("X-Trace", "1"));
  ASSERT_TRUE(fields.add("x-trace", "2"));
  EXPECT_EQ(fields.get("content-TYPE"), "text/plain");
  EXPECT_EQ(fields.get("X-TRACE"), "1");
  EXPECT_FALSE(fields.get("X-Trac").has_value());
  EXPECT_FALSE(fields.contains("Content_Type"));
  EXPECT_EQ(fields.count(), 3u);
  EXPECT_EQ(fields.lines(), "Content-Type: text/plain\r\nX-Trace: 1\r\nx-trace: 2\r\n");
}

TEST(Fields, IterationGivesEveryFieldInOrder) {
  Fields fields;
  ASSERT_TRUE(fields.add("A", "1"));
  ASSERT_TRUE(fields.add("B", ""));
  ASSERT_TRUE(fields.add("C", "x: y"));
  std::string seen;
  for (const Field field : fields) seen.append(field.name).append("=").append(field.value) += '|';
  EXPECT_EQ(seen, "A=1|B=|C=x: y|");
}

TEST(Fields, WhatCouldSplitAMessageIsRefusedAndAddsNothing) {
  Fields fields;
  for (auto value : {"a\r\nSet-Cookie: x"sv, "a\rb"sv, "a\nb"sv, "a\0b"sv, "\x01"sv, "\x7f"sv}) {
    EXPECT_EQ(fields.add("X", value).error(), Errc::bad_input);
    EXPECT_EQ(fields.set("X", value).error(), Errc::bad_input);
  }
  for (auto name : {""sv, "a b"sv, "a:"sv, "a\r\n"sv, "\xc3\xa9"sv, "a\0"sv, "(a)"sv}) {
    EXPECT_EQ(fields.add(name, "v").error(), Errc::bad_input);
  }
  EXPECT_TRUE(fields.empty());
  EXPECT_TRUE(fields.add("X", "caf\xe9\tok"));
}

TEST(Fields, WhiteSpaceAroundAValueIsLeftOut) {
  Fields fields;
  ASSERT_TRUE(fields.add("A", " \tb c\t "));
  EXPECT_EQ(fields.lines(), "A: b c\r\n");
}

TEST(Fields, SetReplacesEveryFieldOfThatName) {
  Fields fields;
  ASSERT_TRUE(fields.add("a", "1"));
  ASSERT_TRUE(fields.add("b", "2"));
  ASSERT_TRUE(fields.add("A", "3"));
  ASSERT_TRUE(fields.set("a", "4"));
  EXPECT_EQ(fields.lines(), "b: 2\r\na: 4\r\n");
  EXPECT_EQ(fields.remove("A"), 1u);
  EXPECT_EQ(fields.remove("A"), 0u);
  EXPECT_EQ(fields.lines(), "b: 2\r\n");
}

TEST(Fields, GrowsBeyondItsInlineRoomAndCopiesAndMoves) {
  for (std::size_t length : {std::size_t{1}, Fields::inline_capacity - 5,
                             Fields::inline_capacity - 4, std::size_t{5'000}}) {
    Fields fields;
    const std::string value(length, 'v');
    ASSERT_TRUE(fields.add("N", value));
    Fields copy = fields;
    EXPECT_EQ(copy.lines(), fields.lines());
    Fields moved = std::move(fields);
    EXPECT_EQ(moved.get("n"), value);
    EXPECT_TRUE(fields.empty());  // NOLINT: moved from means empty here
    ASSERT_TRUE(fields.add("Again", "1"));
    EXPECT_EQ(fields.lines(), "Again: 1\r\n");
    copy = moved;
    EXPECT_EQ(copy.get("N"), value);
    copy = std::move(fields);
    EXPECT_EQ(copy.lines(), "Again: 1\r\n");
    copy = static_cast<const Fields&>(copy);
    EXPECT_EQ(copy.lines(), "Again: 1\r\n");
  }
}

TEST(Fields, ManyFieldsKeepTheirOrder) {
  Fields fields;
  for (int each = 0; each < 500; ++each) {
    ASSERT_TRUE(fields.add("N" + std::to_string(each), std::to_string(each)));
  }
  EXPECT_EQ(fields.count(), 500u);
  EXPECT_EQ(fields.get("n499"), "499");
  fields.clear();
  EXPECT_TRUE(fields.empty());
  EXPECT_EQ(fields.begin(), fields.end());
}

}  // namespace
}  // namespace weir::http
