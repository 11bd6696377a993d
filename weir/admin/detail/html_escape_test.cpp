// Tests of escaping and truncation for HTML.
#include "weir/admin/detail/html_escape.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::drawing {
namespace {

TEST(HtmlText, MarkupCharactersAreEscaped) {
  EXPECT_EQ(escape_html("<script>alert(\"a\" & 'b')</script>"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;");
  EXPECT_EQ(escape_html("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(escape_html("é€😀"), "é€😀");
}

TEST(HtmlText, InvalidTextIsReplaced) {
  const std::string sign = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_html(std::string("a\0b", 3)), "a" + sign + "b");
  EXPECT_EQ(escape_html("\x1B[0m\x7F"), sign + "[0m" + sign);
  EXPECT_EQ(escape_html("\xC0\xBC"), sign + sign) << "an overlong <";
  EXPECT_EQ(escape_html("\xE2\x82"), sign + sign);
  EXPECT_EQ(escape_html("\xED\xA0\x80"), sign + sign + sign) << "a surrogate";
  EXPECT_EQ(escape_html("\xF4\x90\x80\x80"), sign + sign + sign + sign);
  EXPECT_EQ(escape_html("\xEF\xBF\xBF"), sign);
}

TEST(HtmlText, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(truncate_utf8("abc", 3), "abc");
  EXPECT_EQ(truncate_utf8("abcd", 3), "ab…");
  EXPECT_EQ(truncate_utf8("é€😀!", 4), "é€😀!");
  EXPECT_EQ(truncate_utf8("é€😀!!", 4), "é€😀…");
  EXPECT_EQ(truncate_utf8("", 4), "");
}

}  // namespace
}  // namespace weir::drawing
