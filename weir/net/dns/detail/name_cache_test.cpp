#include "weir/net/dns/detail/name_cache.hpp"

#include <gtest/gtest.h>

namespace weir::dns::name_cache_test {
namespace {

constexpr Instant start{std::chrono::hours(1)};

Question about(std::string name, Family family = Family::ipv4) {
  return {{std::move(name), false}, family};
}

std::shared_ptr<const LookupResult> lasting(Duration lifetime) {
  return std::make_shared<const LookupResult>(
      LookupResult{.error = {}, .addresses = {Endpoint::loopback(0)}, .lifetime = lifetime});
}

TEST(NameCache, KeepsAResultForItsLifetime) {
  NameCache cache(4);
  cache.insert(about("a"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start + 10s - 1ns), nullptr);
  EXPECT_EQ(cache.find(about("a", Family::ipv6), start), nullptr);
  EXPECT_EQ(cache.find({{"a", true}, Family::ipv4}, start), nullptr);
  EXPECT_EQ(cache.find(about("b"), start), nullptr);
  EXPECT_EQ(cache.find(about("a"), start + 10s), nullptr);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(NameCache, DoesNotKeepResultsWithoutLifetimeOrRoom) {
  NameCache cache(4);
  cache.insert(about("a"), lasting(0s), start);
  EXPECT_EQ(cache.size(), 0U);
  NameCache none(0);
  none.insert(about("a"), lasting(10s), start);
  EXPECT_EQ(none.size(), 0U);
}

TEST(NameCache, EvictsTheLeastRecentlyUsedResult) {
  NameCache cache(2);
  cache.insert(about("a"), lasting(10s), start);
  cache.insert(about("b"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start), nullptr);
  cache.insert(about("c"), lasting(10s), start);
  EXPECT_NE(cache.find(about("a"), start), nullptr);
  EXPECT_EQ(cache.find(about("b"), start), nullptr);
  EXPECT_NE(cache.find(about("c"), start), nullptr);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(NameCache, NewerResultReplacesTheOlder) {
  NameCache cache(2);
  cache.insert(about("a"), lasting(10s), start);
  cache.insert(about("a"), lasting(20s), start);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_NE(cache.find(about("a"), start + 15s), nullptr);
  cache.clear();
  EXPECT_EQ(cache.find(about("a"), start), nullptr);
}

// The order of use forgets a result with its removal, for whatever reason it is removed.
TEST(NameCache, RemovedResultsDoNotCountForEviction) {
  NameCache cache(2);
  cache.insert(about("expired"), lasting(1s), start);
  EXPECT_EQ(cache.find(about("expired"), start + 1s), nullptr);
  cache.insert(about("a"), lasting(10s), start);
  cache.insert(about("b"), lasting(10s), start);
  cache.insert(about("a"), lasting(20s), start);
  cache.insert(about("c"), lasting(10s), start);
  EXPECT_EQ(cache.find(about("b"), start), nullptr);
  EXPECT_NE(cache.find(about("a"), start), nullptr);
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
  for (const char* const name : {"d", "e", "f"}) cache.insert(about(name), lasting(10s), start);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.find(about("d"), start), nullptr);
  EXPECT_NE(cache.find(about("e"), start), nullptr);
  EXPECT_NE(cache.find(about("f"), start), nullptr);
}

TEST(NameCache, FoundResultOutlivesTheCache) {
  std::shared_ptr<const LookupResult> found;
  {
    NameCache cache(1);
    cache.insert(about("a"), lasting(10s), start);
    found = cache.find(about("a"), start);
  }
  EXPECT_EQ(found->addresses, std::vector{Endpoint::loopback(0)});
}

}  // namespace
}  // namespace weir::dns::name_cache_test
