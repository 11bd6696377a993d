#include "weir/config/source/detail/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::config {
namespace {

TEST(ConfigError, SaysWhereAndWhat) {
  EXPECT_EQ((Error{"a.toml:1:2", "server.port", "expected an integer"}.message()),
            "a.toml:1:2: server.port: expected an integer");
  EXPECT_EQ((Error{"a.toml", "", "cannot be read"}.message()), "a.toml: cannot be read");
  EXPECT_EQ((Error{"argument --server.port", "server.port", "given twice"}.message()),
            "argument --server.port: given twice");
}

TEST(ConfigError, KeepsABoundedNumber) {
  Errors errors;
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(errors.message(), "");
  for (int i = 0; i < 103; ++i) errors.add({"f", "k" + std::to_string(i), "x"});
  EXPECT_EQ(errors.all.size(), Errors::errors_max);
  EXPECT_EQ(errors.more, 3u);
  EXPECT_TRUE(errors.message().starts_with("f: k0: x\nf: k1: x\n"));
  EXPECT_TRUE(errors.message().ends_with("f: k99: x\nand 3 more"));
}

TEST(ConfigError, ShowsNothingThatCannotBeSeen) {
  EXPECT_EQ(shown("plain"), "\"plain\"");
  EXPECT_EQ(shown("a\"b\\\n\x1b[31m\x7f"), R"("a\"b\\\n\u001b[31m\u007f")");
  EXPECT_EQ(shown("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(shown(std::string(1000, 'a')), "\"" + std::string(60, 'a') + "\"...");
}

TEST(ConfigError, ShowsNamesWithoutQuotesIfTheyArePlain) {
  EXPECT_EQ(shown_name("a_B-3.c"), "a_B-3.c");
  EXPECT_EQ(shown_name(""), "\"\"");
  EXPECT_EQ(shown_name("a b"), "\"a b\"");
  EXPECT_EQ(shown_name("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(shown_name(std::string(61, 'a')), "\"" + std::string(60, 'a') + "\"...");
}

TEST(ConfigError, FindsWhatWasMeant) {
  const std::vector<std::string_view> known{"port", "listen", "idle_timeout", "name", "pin"};
  EXPECT_EQ(nearest("prot", known), "port");
  EXPECT_EQ(nearest("ports", known), "port");
  EXPECT_EQ(nearest("por", known), "port");
  EXPECT_EQ(nearest("Listen", known), "listen");
  EXPECT_EQ(nearest("idle-timeout", known), "idle_timeout");
  EXPECT_EQ(nearest("idletimeout", known), "idle_timeout");
  EXPECT_EQ(nearest("idle_time", known), "idle_timeout");
  EXPECT_EQ(nearest("zzzz", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest(std::string(100'000, 'p'), known), "");
  EXPECT_EQ(nearest("port", {}), "");
}

TEST(ConfigError, NamesWhatIsKnown) {
  EXPECT_EQ(unknown("prot", {"port", "name"}, "--"), "unknown; did you mean --port?");
  EXPECT_EQ(unknown("zzzz", {"port", "name"}), "unknown; there are port, name");
  EXPECT_EQ(unknown("zzzz", std::vector<std::string_view>(9, "port")), "unknown");
}

}  // namespace
}  // namespace weir::config
