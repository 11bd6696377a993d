// Tests the errors of a configuration and their messages.
#include "weir/config/source/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::config::error_test {
namespace {

TEST(ConfigError, MessageHasSourceKeyAndText) {
  EXPECT_EQ((Error{"a.toml:1:2", "server.port", "expected an integer"}.message()),
            "a.toml:1:2: server.port: expected an integer");
  EXPECT_EQ((Error{"a.toml", "", "cannot be read"}.message()), "a.toml: cannot be read");
  EXPECT_EQ((Error{"argument --server.port", "server.port", "given twice"}.message()),
            "argument --server.port: given twice");
}

TEST(ConfigError, MessageIsPrintable) {
  EXPECT_EQ((Error{"a\x1b[31m.toml", "k\xc2\x9b", "is\n\xff"}.message()),
            R"(a\x1b[31m.toml: k\xc2\x9b: is\x0a\xff)");
}

TEST(ConfigError, StoresABoundedNumber) {
  Errors errors;
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(errors.message(), "");
  for (int i = 0; i < 103; ++i) errors.add({"f", "k" + std::to_string(i), "x"});
  EXPECT_EQ(errors.all.size(), Errors::errors_max);
  EXPECT_EQ(errors.omitted, 3u);
  EXPECT_TRUE(errors.message().starts_with("f: k0: x\nf: k1: x\n"));
  EXPECT_TRUE(errors.message().ends_with("f: k99: x\nand 3 more"));
}

TEST(ConfigError, QuotesEscapeControlCharacters) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\"b\\\n\x1b[31m\x7f"), R"("a\"b\\\n\u001b[31m\u007f")");
  EXPECT_EQ(quote("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(quote("\xC2\x80 \xC2\x9F \xC2\xA0"), "\"\\u0080 \\u009f \xC2\xA0\"");
  EXPECT_EQ(quote(std::string(1000, 'a')), "\"" + std::string(60, 'a') + "\"...");
}

TEST(ConfigError, PlainNamesHaveNoQuotes) {
  EXPECT_EQ(quote_unless_plain("a_B-3.c"), "a_B-3.c");
  EXPECT_EQ(quote_unless_plain(""), "\"\"");
  EXPECT_EQ(quote_unless_plain("a b"), "\"a b\"");
  EXPECT_EQ(quote_unless_plain("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(quote_unless_plain(std::string(61, 'a')), "\"" + std::string(60, 'a') + "\"...");
}

TEST(ConfigError, FindsTheMostSimilarName) {
  const std::vector<std::string_view> known{"port", "listen", "idle_timeout", "name", "pin"};
  EXPECT_EQ(closest_match("prot", known), "port");
  EXPECT_EQ(closest_match("ports", known), "port");
  EXPECT_EQ(closest_match("por", known), "port");
  EXPECT_EQ(closest_match("Listen", known), "listen");
  EXPECT_EQ(closest_match("idle-timeout", known), "idle_timeout");
  EXPECT_EQ(closest_match("idletimeout", known), "idle_timeout");
  EXPECT_EQ(closest_match("idle_time", known), "idle_timeout");
  EXPECT_EQ(closest_match("zzzz", known), "");
  EXPECT_EQ(closest_match("", known), "");
  EXPECT_EQ(closest_match("x", known), "");
  EXPECT_EQ(closest_match(std::string(100'000, 'p'), known), "");
  EXPECT_EQ(closest_match("port", {}), "");
}

TEST(ConfigError, SimilarNameHasAtMostAThirdOfItsLettersWrong) {
  const auto similar = [](std::string_view wrong, std::string_view known) {
    return closest_match(wrong, {known}) == known;
  };
  EXPECT_TRUE(similar("abcdef", "abcdXY"));
  EXPECT_FALSE(similar("abcdef", "abcXYZ"));
  EXPECT_TRUE(similar("abcdef", "abcdefgh"));
  EXPECT_FALSE(similar("abcdef", "abcdefghi"));
  EXPECT_TRUE(similar("abcdef", "XYabcdef"));
  EXPECT_TRUE(similar("abcdef", "abcd"));
  EXPECT_TRUE(similar("abcdef", "cdef"));
  EXPECT_FALSE(similar("abcdef", "abc"));
  EXPECT_TRUE(similar("abcdef", "badcef"));
  EXPECT_TRUE(similar("abcdef", "abdcfe"));
  EXPECT_FALSE(similar("abcdef", "badcfe"));
  EXPECT_FALSE(similar("abcdef", "cbafed")) << "these letters are not neighbours";
  EXPECT_TRUE(similar("abcdef", "bacdeX"));
  EXPECT_FALSE(similar("abcdef", "bacdXY"));
  EXPECT_FALSE(similar("abcde", "abcXY")) << "only one letter of five may be wrong";
  EXPECT_TRUE(similar("abcde", "abcdX"));
  EXPECT_FALSE(similar("port", "pXYt"));
  EXPECT_TRUE(similar("ab", "aX"));
  EXPECT_FALSE(similar("x", "y"));
  EXPECT_FALSE(similar("abc", "x"));
}

TEST(ConfigError, SimilarNameIgnoresCaseAndHyphens) {
  EXPECT_EQ(closest_match("AAAA", {"aaaa"}), "aaaa");
  EXPECT_EQ(closest_match("ZZZZ", {"zzzz"}), "zzzz");
  EXPECT_EQ(closest_match("listen", {"LISTEN"}), "LISTEN");
  EXPECT_EQ(closest_match("a-b-c-d", {"a_b_c_d"}), "a_b_c_d");
  EXPECT_EQ(closest_match("@@@@", {"````"}), "");
  EXPECT_EQ(closest_match("[[[[", {"{{{{"}), "");
}

TEST(ConfigError, FirstOfTheMostSimilarNamesIsFound) {
  EXPECT_EQ(closest_match("abcdef", {"abcdXY", "abcdeX", "abcdeY", "abcXYf"}), "abcdeX");
}

TEST(ConfigError, QuotesUpToSixtyBytesCompletely) {
  const std::string sixty(60, 'a');
  EXPECT_EQ(quote(sixty), "\"" + sixty + "\"");
  EXPECT_EQ(quote(sixty + "b"), "\"" + sixty + "\"...");
  EXPECT_EQ(quote_unless_plain(sixty), sixty);
  EXPECT_EQ(quote("\x7f\x7f"), "\"\\u007f\\u007f\"");
}

TEST(ConfigError, PlainNamesHaveLettersDigitsAndThreeSigns) {
  const std::string plain = "azAZ09_.-";
  EXPECT_EQ(quote_unless_plain(plain), plain);
  for (const char each : std::string("`{@[/:,+^~")) {
    const std::string name(1, each);
    EXPECT_EQ(quote_unless_plain(name), "\"" + name + "\"");
  }
}

TEST(ConfigError, UnknownNameMessageListsUpToEightNames) {
  const std::vector<std::string_view> eight(8, "port");
  EXPECT_EQ(unknown_name_message("zzzz", eight, "-"),
            "unknown; known names are -port, -port, -port, -port, -port, -port, -port, -port");
  EXPECT_EQ(unknown_name_message("zzzz", {}), "unknown");
}

TEST(ConfigError, UnknownNameMessageListsKnownNames) {
  EXPECT_EQ(unknown_name_message("prot", {"port", "name"}, "--"), "unknown; did you mean --port?");
  EXPECT_EQ(unknown_name_message("zzzz", {"port", "name"}), "unknown; known names are port, name");
  EXPECT_EQ(unknown_name_message("abcdport", {"portxy"}), "unknown; known names are portxy");
  EXPECT_EQ(unknown_name_message("zzzz", std::vector<std::string_view>(9, "port")), "unknown");
}

}  // namespace
}  // namespace weir::config::error_test
