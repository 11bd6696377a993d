// Tests of valid and invalid JSON: the corner cases of RFC 8259, for values that are read and
// skipped.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/test/json_fixture.hpp"

namespace weir::json::grammar_test {
namespace {

using namespace std::string_view_literals;

const std::vector<std::string_view> good{
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "0.0",
    "-0.0",
    "1e0",
    "1E+2",
    "1e-2",
    "0e0",
    "0e+1",
    "123456789012345678901234567890",
    "1.7976931348623157e308",
    "4.9e-324",
    "1e-999",
    "0.1e1",
    "-123.456e-7",
    "\"\"",
    "\" \"",
    R"("\"\\\/\b\f\n\r\t\u0000\u001f\uFFFF")",
    R"("\ud83d\ude00")",
    R"("\\u0041")",
    R"("\u0022\u005c")",
    "\"\x7f\"",
    "\"\u0080\u07ff\u0800\uffff\U00010000\U0010FFFF\"",
    "\"// no comment /* at all */\"",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[[]]",
    "[{}]",
    R"({"":0})",
    R"({"a":{"a":{}}})",
    R"({"\u0000":1})",
    R"({"a":1,"A":2})",
    "[1,2]",
    "[null,true,false,0,\"\",[],{}]",
    " \t\r\n[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n] \t\r\n",
    " \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n2 \t\r\n} \t\r\n",
};

const std::vector<std::string_view> bad{
    // Texts that are not one value.
    "",
    " ",
    "\n",
    "1 2",
    "[][]",
    "{}{}",
    "nullnull",
    "null null",
    "1,",
    ",1",
    "[],",
    "{},{}",
    // Words.
    "nul",
    "nulll",
    "NULL",
    "Null",
    "True",
    "tru",
    "truee",
    "fals",
    "undefined",
    "NaN",
    "Infinity",
    "-Infinity",
    "nan",
    "yes",
    // Numbers.
    "+1",
    "-",
    "--1",
    "+-1",
    "01",
    "-01",
    "00",
    "1.",
    ".1",
    "-.1",
    "1.e1",
    "1e",
    "1e+",
    "1e-",
    "1ee1",
    "1e1.0",
    "1.2.3",
    "0x1",
    "1_000",
    "1,000",
    "1a",
    "1e5x",
    "-a",
    "- 1",
    "0e",
    "1 .5",
    "1e 5",
    "1e400",
    "-1e400",
    "\xEF\xBC\x91",
    // Strings.
    "\"",
    "\"a",
    "'a'",
    "a",
    "\"a\"b",
    "\"\\",
    "\"\\\"",
    R"("\a")",
    R"("\x00")",
    R"("\0")",
    R"("\u")",
    R"("\u0")",
    R"("\u00")",
    R"("\u000")",
    R"("\u000g")",
    R"("\U0000")",
    R"("\u-001")",
    R"("\ud800")",
    R"("\udc00")",
    R"("\ud800\u0000")",
    R"("\ud800\ud800")",
    R"("\udc00\ud800")",
    R"("\ud800x")",
    R"("\ud800\\udc00")",
    "\"\t\"",
    "\"\n\"",
    "\"\r\n\"",
    "\"\x1f\"",
    "\"\0\""sv,
    "\"\x80\"",
    "\"\xC0\xAF\"",
    "\"\xE0\x80\xAF\"",
    "\"\xED\xA0\x80\"",
    "\"\xF4\x90\x80\x80\"",
    "\"\xF8\x88\x80\x80\x80\"",
    "\"\xFF\"",
    "\"\xC3\"",
    "\"\xE2\x82\"",
    "\"\xF0\x9F\x98\"",
    "\"\xE4\"",
    // Arrays.
    "[",
    "]",
    "[1",
    "[1,",
    "[,",
    "[,1]",
    "[1,]",
    "[1,,2]",
    "[1 2]",
    "[1;2]",
    "[1:2]",
    "[\"a\":1]",
    "[1}",
    "[1]]",
    "[[1]",
    "[...]",
    "(1)",
    "[1,\n,2]",
    "[\v1]",
    "[\f1]",
    // Objects.
    "{",
    "}",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{,}",
    "{\"a\":1,}",
    "{,\"a\":1}",
    "{\"a\":1,,\"b\":2}",
    "{\"a\" 1}",
    "{\"a\"=1}",
    "{\"a\":}",
    "{\"a\"}",
    "{a:1}",
    "{'a':1}",
    "{1:1}",
    "{null:1}",
    "{[]:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1;\"b\":2}",
    "{\"a\"::1}",
    "{\"a\":1]",
    "{\"a\":1}}",
    "{\"a\":\"b}",
    "{\"\\ud800\":1}",
    "{\"a\xFF\":1}",
    "{\"a\n\":1}",
    // Text around the value.
    "\xEF\xBB\xBF{}",
    "\xEF\xBB\xBF",
    "\xA0[]",
    "\xC2\xA0[]",
    "\xE2\x80\xA8[]",
    "//\n[]",
    "/**/[]",
    "[]//",
    "#\n[]",
    "[]\0"sv,
    "\0"sv,
    "\x1e[]",
    "[]\x1e",
    "<a>",
    "\\[\\]",
    "[\\n]",
    // UTF-16 in both byte orders.
    "\xFF\xFE[\0]\0"sv,
    "\0[\0]"sv,
};

TEST(Grammar, ValidTextsAreReadAndSkipped) {
  for (const std::string_view text : good) {
    const auto value = read_any(text);
    ASSERT_TRUE(value) << text << ": " << value.error().message();
    EXPECT_TRUE(can_skip(text)) << text;
    EXPECT_EQ(nlohmann::json::parse(write(*value)), nlohmann::json::parse(text)) << text;
  }
}

TEST(Grammar, InvalidTextsAreNotRead) {
  for (const std::string_view text : bad) {
    EXPECT_FALSE(read_any(text)) << text;
    EXPECT_FALSE(read_any("{\"k\":" + std::string(text) + "}")) << text;
  }
}

TEST(Grammar, InvalidTextsAreNotSkipped) {
  for (const std::string_view text : bad) {
    // These are numbers, but too large for each type.
    if (text == "1e400" || text == "-1e400") continue;
    EXPECT_FALSE(can_skip(text)) << text;
  }
}

TEST(Grammar, DuplicateNamesAreErrors) {
  EXPECT_EQ(read_any(R"({"a":1,"a":1})").error().what, "given twice");
  EXPECT_EQ(read_any(R"({"a":1,"\u0061":1})").error().what, "given twice");
}

TEST(Grammar, DepthIsLimited) {
  for (const char open : {'[', '{'}) {
    const std::string_view in = open == '[' ? "[" : "{\"a\":";
    const std::string_view out = open == '[' ? "]" : "}";
    std::string text = "0";
    for (int depth = 0; depth < 1000; ++depth) {
      text.insert(0, in);
      text += out;
    }
    EXPECT_TRUE(read_any(text));
    text.insert(0, in);
    text += out;
    EXPECT_EQ(read_any(text).error().code, Errc::limit_reached);
    EXPECT_FALSE(can_skip(text));
  }
}

}  // namespace
}  // namespace weir::json::grammar_test
