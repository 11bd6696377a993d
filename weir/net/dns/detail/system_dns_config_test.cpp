#include "weir/net/dns/detail/system_dns_config.hpp"

#include <gtest/gtest.h>

#include "weir/net/dns/detail/host_name.hpp"

namespace weir::dns::system_dns_config_test {
namespace {

TEST(ResolvConf, IsParsedAsDocumented) {
  const auto conf = ResolvConf::parse(
      "; comment\n# comment\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # ours\n"
      "search example.org. Sub.Example.ORG\noptions ndots:3 timeout:7\toptions rotate "
      "attempts:4\n");
  ASSERT_EQ(conf.servers.size(), 2U);
  EXPECT_EQ(conf.servers[0].to_string(), "192.0.2.1:53");
  EXPECT_EQ(conf.servers[1].to_string(), "[2001:db8::1]:53");
  EXPECT_EQ(conf.search, (std::vector<std::string>{"example.org", "sub.example.org"}));
  EXPECT_EQ(conf.ndots, 3U);
  EXPECT_EQ(conf.timeout, 7s);
  EXPECT_EQ(conf.attempts, 4U);
}

TEST(ResolvConf, DefaultsToAServerOnThisMachine) {
  for (const std::string_view text : {"", "\n\n", "nameserver nowhere\noptions ndots\nports 7"}) {
    const auto conf = ResolvConf::parse(text);
    ASSERT_EQ(conf.servers.size(), 1U) << text;
    EXPECT_EQ(conf.servers[0].to_string(), "127.0.0.1:53");
    EXPECT_TRUE(conf.search.empty());
    EXPECT_EQ(conf.ndots, 1U);
    EXPECT_EQ(conf.timeout, 5s);
    EXPECT_EQ(conf.attempts, 2U);
  }
}

TEST(ResolvConf, LastOfSearchAndDomainCounts) {
  using Domains = std::vector<std::string>;
  EXPECT_EQ(ResolvConf::parse("search a b\ndomain c d").search, Domains{"c"});
  EXPECT_EQ(ResolvConf::parse("domain c\nsearch a b").search, (Domains{"a", "b"}));
  EXPECT_EQ(ResolvConf::parse("search a b\nsearch").search, Domains{});
}

TEST(ResolvConf, HasLimits) {
  std::string text = "options ndots:99999999999 timeout:99 attempts:0\n";
  for (int each = 0; each < 5; ++each) text += "nameserver 192.0.2.1\n";
  text += "search";
  for (int each = 0; each < 50; ++each) text += " a" + std::to_string(each) + ".org";
  const auto conf = ResolvConf::parse(text);
  EXPECT_EQ(conf.servers.size(), ResolvConf::servers_max);
  EXPECT_EQ(conf.search.size(), ResolvConf::search_max);
  EXPECT_EQ(conf.ndots, ResolvConf::ndots_max);
  EXPECT_EQ(conf.timeout, 30s);
  EXPECT_EQ(conf.attempts, 1U);
  EXPECT_EQ(ResolvConf::parse("options timeout:0").timeout, 1s);
  EXPECT_EQ(ResolvConf::parse("options ndots:2x ndots: ndots").ndots, 1U);
}

TEST(ResolvConf, AcceptsValuesUpToTheLimits) {
  std::string text = "options ndots:15 timeout:30 attempts:5\n";
  for (int each = 0; each < 4; ++each) text += "nameserver 192.0.2." + std::to_string(each) + "\n";
  const auto conf = ResolvConf::parse(text);
  ASSERT_EQ(conf.servers.size(), 3U);
  EXPECT_EQ(conf.servers[2].to_string(), "192.0.2.2:53");
  EXPECT_EQ(conf.ndots, 15U);
  EXPECT_EQ(conf.timeout, 30s);
  EXPECT_EQ(conf.attempts, 5U);
  const auto beyond = ResolvConf::parse("options ndots:16 timeout:31 attempts:6");
  EXPECT_EQ(beyond.ndots, 15U);
  EXPECT_EQ(beyond.timeout, 30s);
  EXPECT_EQ(beyond.attempts, 5U);
  EXPECT_EQ(ResolvConf::parse("options ndots:0").ndots, 0U);
  EXPECT_EQ(ResolvConf::parse("options xndots:3 ndots3 ndots=3 ndotsx:3").ndots, 1U);
}

TEST(ResolvConf, TakesNoServerFromASearchLine) {
  const auto conf = ResolvConf::parse("search 192.0.2.1 a..b c\nsortlist 192.0.2.2");
  EXPECT_EQ(conf.search, std::vector<std::string>{"c"});
  ASSERT_EQ(conf.servers.size(), 1U);
  EXPECT_EQ(conf.servers[0].to_string(), "127.0.0.1:53");
}

TEST(LineFields, AreSeparatedByBlanksAndRemoved) {
  std::string_view line = " \t one\r\vtwo\f ";
  EXPECT_EQ(take_field(line), "one");
  EXPECT_EQ(take_field(line), "two");
  EXPECT_EQ(line, " ");
  EXPECT_EQ(take_field(line), "");
  EXPECT_EQ(line, "");
  std::string_view text = "first\n\nlast";
  EXPECT_EQ(take_line(text), "first");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "last");
  EXPECT_TRUE(text.empty());
}

}  // namespace

namespace {

std::vector<Endpoint> addresses(std::initializer_list<std::string_view> texts) {
  std::vector<Endpoint> addresses;
  for (const std::string_view text : texts) addresses.push_back(parse_ip_address(text, 0).value());
  return addresses;
}

TEST(HostsFile, CollectsAllNamesOfALineAndAllLinesOfAName) {
  const auto file = HostsFile::parse(
      "# comment\n127.0.0.1\tlocalhost one\n\n  192.0.2.1 One two.example # three\r\n"
      "2001:db8::1 one\n192.0.2.1 one");
  ASSERT_NE(file.find("one"), nullptr);
  EXPECT_EQ(*file.find("one"), addresses({"127.0.0.1", "192.0.2.1", "2001:db8::1"}));
  ASSERT_NE(file.find("two.example"), nullptr);
  EXPECT_EQ(*file.find("two.example"), addresses({"192.0.2.1"}));
  EXPECT_EQ(file.find("three"), nullptr);
  EXPECT_EQ(file.names(), 3U);
}

TEST(HostsFile, SkipsMalformedLinesAndNames) {
  const auto file = HostsFile::parse(
      "one 192.0.2.1\n192.0.2 two\n192.0.2.1\n192.0.2.1 a..b 7 three\n#192.0.2.1 "
      "four\n\n192.0.2.1");
  EXPECT_EQ(file.names(), 1U);
  EXPECT_NE(file.find("three"), nullptr);
  EXPECT_EQ(HostsFile::parse("").names(), 0U);
}

}  // namespace
}  // namespace weir::dns::system_dns_config_test
