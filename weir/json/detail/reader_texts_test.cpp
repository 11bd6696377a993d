// Tests of reading strings: escapes, surrogates, UTF-8 and limits.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json::reader_texts_test {
namespace {

std::string error_of(std::string_view text) {
  const auto result = read<std::string>(text);
  return result ? "it was read" : result.error().what + " " + std::to_string(result.error().offset);
}

TEST(Texts, EveryEscapeIsDecoded) {
  EXPECT_EQ(read<std::string>(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read<std::string>(R"("\u0041\u00e4\u20AC\uFFFF\uD834\uDD1E\udbff\udfff")"),
            "A\u00e4\u20ac\uffff\U0001D11E\U0010FFFF");
  EXPECT_EQ(read<std::string>(R"("a\u0000b")"), std::string("a\0b", 3));
  EXPECT_EQ(read<std::string>("\"\x7f\""), "\x7f");
}

TEST(Texts, WrongEscapesAreErrors) {
  EXPECT_EQ(error_of(R"("\a")"), "an unknown escape 1");
  EXPECT_EQ(error_of(R"("\'")"), "an unknown escape 1");
  EXPECT_EQ(error_of(R"("\U0041")"), "an unknown escape 1");
  EXPECT_EQ(error_of(R"("\x41")"), "an unknown escape 1");
  EXPECT_EQ(error_of("\"\\\0\""), "an incomplete escape 1");
  EXPECT_EQ(error_of(R"("\u00g0")"), "\\u without four hexadecimal digits 1");
  EXPECT_EQ(error_of(R"("\u 041")"), "\\u without four hexadecimal digits 1");
  EXPECT_EQ(error_of(R"("\u+041")"), "\\u without four hexadecimal digits 1");
  EXPECT_EQ(error_of(R"("\u12")"), "an incomplete escape 1");
  EXPECT_EQ(error_of(R"("\u123")"), "\\u without four hexadecimal digits 1");
}

TEST(Texts, SurrogatesComeInPairs) {
  for (const std::string_view text :
       {R"("\uD834")", R"("\uD834x\uDD1E")", R"("\uDD1E")", R"("\uDD1E\uD834")",
        R"("\uD834\uD834")", R"("\uD834\u0041")", R"("\uD834\n")"}) {
    EXPECT_EQ(error_of(text), "an unpaired surrogate 1") << text;
  }
  EXPECT_EQ(error_of(R"("\uD834\u12")"), "an incomplete escape 7");
}

TEST(Texts, ControlCharactersAreEscaped) {
  for (char each = 0; each < ' '; ++each) {
    EXPECT_EQ(error_of(std::string("\"a") + each + "\""), "a control character in a string 2");
    EXPECT_EQ(error_of("\"" + std::string(40, 'a') + each + std::string(20, 'b') + "\""),
              "a control character in a string 41");
  }
}

TEST(Texts, AreUtf8) {
  for (const std::string_view good : {"ä€𝄞", "aä", "日本語 text 日本語", "\u0080\u07ff\u0800"}) {
    EXPECT_EQ(read<std::string>("\"" + std::string(good) + "\""), good);
  }
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xFE", "\xF0\x9D\x84"}) {
    EXPECT_EQ(error_of("\"" + std::string(bad) + "\""), "a string that is not UTF-8 1");
    EXPECT_EQ(error_of("\"ä" + std::string(bad) + "\""), "a string that is not UTF-8 3");
  }
}

TEST(Texts, EveryLengthIsReadAtEveryPosition) {
  // The end of the string is found at every position of the blocks that the reader looks at.
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t size = 0; size < 70; ++size) {
      const std::string content(size, 'x');
      const std::string text = std::string(before, ' ') + "\"" + content + "\"";
      ASSERT_EQ(read<std::string>(text), content);
      ASSERT_EQ(error_of(text.substr(0, text.size() - 1)),
                "an unterminated string " + std::to_string(before));
      for (std::size_t place = 0; place <= size; ++place) {
        std::string escaped = content;
        escaped.insert(place, "\\n");
        std::string expected = content;
        expected.insert(place, "\n");
        ASSERT_EQ(read<std::string>("\"" + escaped + "\""), expected);
        escaped.replace(place, 2, "ß");
        ASSERT_EQ(read<std::string>("\"" + escaped + "\""), escaped);
      }
    }
  }
}

TEST(Texts, OtherKindsAreErrors) {
  EXPECT_EQ(error_of("12"), "expected a string, found a number 0");
  EXPECT_EQ(error_of("'a'"), "expected a string, found ''' 0");
  EXPECT_EQ(error_of(""), "expected a string, found the end of the text 0");
}

struct Things {
  std::string name;
  std::vector<int> list;
  bool flag = false;
  std::optional<int> none;
  double size = 0;
};
struct Nothing {};

/// Returns the value that `text` is read as, or the error.
template <class T>
std::string outcome_of(std::string_view text) {
  const auto result = read<T>(text, {.unknown_fields = UnknownFields::skip});
  return result ? write(*result) : result.error().message();
}

/// Reads every beginning of `whole`, both as a view of `whole` and as a copy that nothing follows.
template <class T>
void expect_end_of_view(std::string_view whole) {
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::vector<char> copy(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(outcome_of<T>(whole.substr(0, size)),
              outcome_of<T>(std::string_view(copy.data(), copy.size())))
        << whole.substr(0, size);
  }
}

TEST(Texts, ATextEndsWhereItsViewEnds) {
  const std::string_view object =
      R"({"list":[12, 3],"name":"a\ud834\udd1eé\n","flag":true,"none":null,"size":-1.5e+2})";
  ASSERT_TRUE(read<Things>(object));
  expect_end_of_view<Things>(object);
  expect_end_of_view<Nothing>(object);
  EXPECT_EQ(outcome_of<Things>(object.substr(0, 3)), "an unterminated string (at byte 1)");
  expect_end_of_view<double>("-12.50e+37 ");
  EXPECT_EQ(outcome_of<double>(std::string_view("12.5").substr(0, 2)), "12.0");
  expect_end_of_view<int>("-1234567 ");
  EXPECT_EQ(outcome_of<int>(std::string_view("1234").substr(0, 3)), "123");
  expect_end_of_view<bool>("false ");
  expect_end_of_view<std::string>(R"( "a long text of more than 16 bytes é \u00e4 \"ends\"" )");
}

}  // namespace
}  // namespace weir::json::reader_texts_test
