#include "weir/app/html_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::drawing {
namespace {

TEST(HtmlText, WhatMeansSomethingInHtmlIsEscaped) {
  EXPECT_EQ(escaped("<script>alert(\"a\" & 'b')</script>"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;");
  EXPECT_EQ(escaped("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(escaped("é€😀"), "é€😀");
}

TEST(HtmlText, WhatIsNoTextIsReplaced) {
  const std::string sign = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a" + sign + "b");
  EXPECT_EQ(escaped("\x1B[0m\x7F"), sign + "[0m" + sign);
  EXPECT_EQ(escaped("\xC0\xBC"), sign + sign) << "an overlong <";
  EXPECT_EQ(escaped("\xE2\x82"), sign + sign);
  EXPECT_EQ(escaped("\xED\xA0\x80"), sign + sign + sign) << "a surrogate";
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), sign + sign + sign + sign);
  EXPECT_EQ(escaped("\xEF\xBF\xBF"), sign);
}

TEST(HtmlText, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab…");
  EXPECT_EQ(shortened("é€😀!", 4), "é€😀!");
  EXPECT_EQ(shortened("é€😀!!", 4), "é€😀…");
  EXPECT_EQ(shortened("", 4), "");
}

}  // namespace
}  // namespace weir::drawing
