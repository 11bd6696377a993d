#include "weir/net/hosts_file.hpp"

#include <gtest/gtest.h>

#include "weir/net/dns/detail/host_name.hpp"

namespace weir::names {
namespace {

std::vector<Endpoint> addresses(std::initializer_list<std::string_view> texts) {
  std::vector<Endpoint> addresses;
  for (const std::string_view text : texts) addresses.push_back(parse_ip_address(text, 0).value());
  return addresses;
}

TEST(HostsFile, HasAllNamesOfALineAndAllLinesOfAName) {
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

TEST(HostsFile, WhatCannotBeUnderstoodIsLeftOut) {
  const auto file = HostsFile::parse(
      "one 192.0.2.1\n192.0.2 two\n192.0.2.1\n192.0.2.1 a..b 7 three\n#192.0.2.1 "
      "four\n\n192.0.2.1");
  EXPECT_EQ(file.names(), 1U);
  EXPECT_NE(file.find("three"), nullptr);
  EXPECT_EQ(HostsFile::parse("").names(), 0U);
}

}  // namespace
}  // namespace weir::names
