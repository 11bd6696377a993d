// Tests the errors of a configuration and their messages.
#include "weir/config/source/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::config {
namespace {

TEST(ConfigError, MessageHasSourceKeyAndText) {
  EXPECT_EQ((Error{"a.toml:1:2", "server.port", "expected an integer"}.message()),
            "a.toml:1:2: server.port: expected an integer");
  EXPECT_EQ((Error{"a.toml", "", "cannot be read"}.message()), "a.toml: cannot be read");
  EXPECT_EQ((Error{"argument --server.port", "server.port", "given twice"}.message()),
            "argument --server.port: given twice");
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

TEST(ConfigError, QuotesEscapeInvisibleCharacters) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\"b\\\n\x1b[31m\x7f"), R"("a\"b\\\n\u001b[31m\u007f")");
  EXPECT_EQ(quote("\xff"), "\"\xEF\xBF\xBD\"");
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

TEST(ConfigError, UnknownNameMessageListsKnownNames) {
  EXPECT_EQ(unknown_name_message("prot", {"port", "name"}, "--"), "unknown; did you mean --port?");
  EXPECT_EQ(unknown_name_message("zzzz", {"port", "name"}), "unknown; known names are port, name");
  EXPECT_EQ(unknown_name_message("zzzz", std::vector<std::string_view>(9, "port")), "unknown");
}

}  // namespace
}  // namespace weir::config
