#include "weir/net/dns/detail/name_cache.hpp"

#include <gtest/gtest.h>

namespace weir::names {
namespace {

constexpr Instant start{std::chrono::hours(1)};

NameQuestion about(std::string name, Family family = Family::ipv4) {
  return {{std::move(name), false}, family};
}

std::shared_ptr<const NameAnswer> lasting(Duration lifetime) {
  return std::make_shared<const NameAnswer>(
      NameAnswer{.error = {}, .addresses = {Endpoint::loopback(0)}, .lifetime = lifetime});
}

TEST(NameCache, KeepsAnAnswerAsLongAsItIsTrue) {
  NameCache cache(4);
  cache.keep(about("a"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start + 10s - 1ns), nullptr);
  EXPECT_EQ(cache.find(about("a", Family::ipv6), start), nullptr);
  EXPECT_EQ(cache.find({{"a", true}, Family::ipv4}, start), nullptr);
  EXPECT_EQ(cache.find(about("b"), start), nullptr);
  EXPECT_EQ(cache.find(about("a"), start + 10s), nullptr);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(NameCache, WhatIsNotToBeKeptIsNot) {
  NameCache cache(4);
  cache.keep(about("a"), lasting(0s), start);
  EXPECT_EQ(cache.size(), 0U);
  NameCache none(0);
  none.keep(about("a"), lasting(10s), start);
  EXPECT_EQ(none.size(), 0U);
}

TEST(NameCache, ForgetsWhatWasUsedLeastRecently) {
  NameCache cache(2);
  cache.keep(about("a"), lasting(10s), start);
  cache.keep(about("b"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start), nullptr);
  cache.keep(about("c"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start), nullptr);
  EXPECT_EQ(cache.find(about("b"), start), nullptr);
  EXPECT_NE(cache.find(about("c"), start), nullptr);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(NameCache, TheNewerAnswerTakesThePlaceOfTheOlder) {
  NameCache cache(2);
  cache.keep(about("a"), lasting(10s), start);
  cache.keep(about("a"), lasting(20s), start);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_NE(cache.find(about("a"), start + 15s), nullptr);
  cache.clear();
  EXPECT_EQ(cache.find(about("a"), start), nullptr);
}

}  // namespace
}  // namespace weir::names
