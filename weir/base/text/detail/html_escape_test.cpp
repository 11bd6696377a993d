// Tests of escaping and truncation for HTML.
#include "weir/base/text/detail/html_escape.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::html_escape_test {
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
  EXPECT_EQ(escape_html("a\xC2\x9B\xE2\x80\xAE"), "a" + sign + sign) << "CSI of C1, RLO";
}

TEST(HtmlText, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(truncate_utf8("abc", 3), "abc");
  EXPECT_EQ(truncate_utf8("abcd", 3), "ab…");
  EXPECT_EQ(truncate_utf8("é€😀!", 4), "é€😀!");
  EXPECT_EQ(truncate_utf8("é€😀!!", 4), "é€😀…");
  EXPECT_EQ(truncate_utf8("", 4), "");
}

TEST(HtmlText, TheFirstAndLastCharactersOfEachSizeAreKept) {
  for (const std::string text :
       {" ", "~", "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xE0\xBF\xBF", "\xE1\x80\x80",
        "\xEC\xBF\xBF", "\xED\x80\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBD",
        "\xF0\x90\x80\x80", "\xF0\xBF\xBF\xBD", "\xF1\x80\x80\x80", "\xF3\xBF\xBF\xBD",
        "\xF4\x80\x80\x80", "\xF4\x8F\xBF\xBD"}) {
    EXPECT_EQ(escape_html(text), text);
    EXPECT_EQ(escape_html("<" + text + "a"), "&lt;" + text + "a");
    EXPECT_EQ(truncate_utf8(text + "a", 2), text + "a") << "it is one character";
  }
}

TEST(HtmlText, EachByteOfAnInvalidCharacterIsReplaced) {
  const std::string sign = "\xEF\xBF\xBD";
  for (const std::string text : {"\x80",
                                 "\xBF",
                                 "\xC1",
                                 "\xC1\xBF",
                                 "\xC2",
                                 "\xC2\x7F",
                                 "\xC2\xC0",
                                 "\xDF",
                                 "\xE0\x9F\xBF",
                                 "\xE1\x80",
                                 "\xE1\x80\xC0",
                                 "\xE1\x80\x7F",
                                 "\xE1\x7F\x80",
                                 "\xEF\xBF",
                                 "\xF0\x8F\xBF\xBF",
                                 "\xF1\x80\x80",
                                 "\xF1\x80\x80\x7F",
                                 "\xF1\x80\xC0\x80",
                                 "\xF5\x80\x80\x80",
                                 "\xFF"}) {
    std::string signs;
    for (std::size_t i = 0; i < text.size(); ++i) signs += sign;
    EXPECT_EQ(escape_html(text), signs);
  }
  EXPECT_EQ(escape_html("\xEF\xBF\xBE"), sign) << "a noncharacter";
  EXPECT_EQ(escape_html("\x1F\r \n\t"), sign + sign + " \n\t");
}

TEST(HtmlText, EachInvalidByteCountsAsACharacter) {
  EXPECT_EQ(truncate_utf8("\x80\x80", 2), "\x80\x80");
  EXPECT_EQ(truncate_utf8("\x80\x80\x80", 2), "\x80…");
  EXPECT_EQ(truncate_utf8("a", 1), "a");
  EXPECT_EQ(truncate_utf8("ab", 1), "…");
}

}  // namespace
}  // namespace weir::html_escape_test
