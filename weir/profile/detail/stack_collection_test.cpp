#include "weir/profile/detail/stack_collection.hpp"

#include <gtest/gtest.h>

namespace weir::profile::stack_collection_test {
namespace {

using Addresses = std::vector<std::uintptr_t>;

void add(StackCollection& stacks, const Addresses& frames, std::string_view route = {},
         std::uint64_t weight = 1) {
  loop::CpuSample sample;
  sample.weight = weight;
  sample.frames = frames;
  stacks.add(sample, route);
}

TEST(StackCollection, AddsUpSamplesOfOneStack) {
  StackCollection stacks;
  add(stacks, {100, 201}, "GET /a", 2);
  add(stacks, {100, 201}, "GET /a", 3);
  add(stacks, {100, 201}, "GET /b");
  ASSERT_EQ(stacks.stacks().size(), 2u);
  EXPECT_EQ(stacks.stacks().begin()->second, 5u);
}

TEST(StackCollection, MovesReturnAddressesIntoTheirFunctions) {
  StackCollection stacks;
  add(stacks, {100, 201, 301});
  EXPECT_EQ(stacks.stacks().begin()->first.addresses, (Addresses{100, 200, 300}));
  EXPECT_EQ(stacks.addresses(), (Addresses{100, 200, 300}));
}

TEST(StackCollection, ListsEachAddressOnce) {
  StackCollection stacks;
  loop::CpuSample sample;
  const Addresses frames{300, 101, 301};
  sample.frames = frames;
  sample.weight = 1;
  sample.activity = 50;
  stacks.add(sample, {});
  EXPECT_EQ(stacks.addresses(), (Addresses{50, 100, 300}));
}

TEST(StackCollection, KeepsOnlyTheWantedRoute) {
  for (const std::string_view wanted : {"/a/{id}", "GET /a/{id}"}) {
    StackCollection stacks(wanted);
    add(stacks, {1}, "GET /a/{id}");
    add(stacks, {2}, "GET /a/{id}/b");
    add(stacks, {3}, "POST /b/a/{id}");
    add(stacks, {4}, "");
    EXPECT_EQ(stacks.addresses(), Addresses{1}) << wanted;
  }
  StackCollection posts("/a");
  add(posts, {1}, "GET /a");
  add(posts, {2}, "POST /a");
  EXPECT_EQ(posts.addresses(), (Addresses{1, 2})) << "a pattern without a method means all methods";
}

TEST(StackCollection, IgnoresSamplesWithoutAStack) {
  StackCollection stacks;
  add(stacks, {});
  EXPECT_TRUE(stacks.stacks().empty());
}

TEST(StackCollection, KeepsThreadsWithoutALoopApart) {
  StackCollection stacks;
  const Addresses frames{1, 2};
  loop::CpuSample sample{.core = loop::CpuSample::no_core, .weight = 1, .frames = frames};
  for (const std::string_view thread : {"weir-pool", "weir-disk", "weir-pool"}) {
    sample.thread_name = thread;
    stacks.add(sample, "GET /a");
  }
  ASSERT_EQ(stacks.stacks().size(), 2u);
  EXPECT_EQ(stacks.stacks().begin()->first.thread, "weir-disk");
  EXPECT_EQ(stacks.stacks().rbegin()->second, 2u);
}

TEST(StackCollection, FreesItsStacksInSteps) {
  StackCollection stacks;
  for (std::uintptr_t number = 1; number <= 1000; ++number) add(stacks, {number});
  unsigned steps = 1;
  while (stacks.free_some()) ++steps;
  EXPECT_EQ(steps, 16u) << "64 at once";
  EXPECT_TRUE(stacks.stacks().empty());
  EXPECT_FALSE(stacks.free_some());
}

TEST(StackCollection, DropsStacksBeyondItsMemory) {
  StackCollection stacks;
  const std::size_t large = StackCollection::addresses_max / 4;
  Addresses frames(large, 1000);
  for (std::uintptr_t number = 1; number <= 4; ++number) {
    frames[0] = number;
    add(stacks, frames);
  }
  add(stacks, {7}, "", 3);
  EXPECT_EQ(stacks.stacks().size(), 4u);
  EXPECT_EQ(stacks.dropped(), 3u);
  add(stacks, frames);
  EXPECT_EQ(stacks.dropped(), 3u) << "a known stack needs no memory";
}

}  // namespace
}  // namespace weir::profile::stack_collection_test
