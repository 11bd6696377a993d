// Tests of radix trees on a heap that runs out of memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/detail/radix_tree.hpp"

namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allocations_left = unlimited;

[[maybe_unused]] void* allocate(std::size_t bytes) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left != unlimited) --allocations_left;
  return std::malloc(bytes);
}

}  // namespace

// The thread sanitizer's operators cannot be replaced. These tests are skipped there.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#ifndef WEIR_TEST_THREAD_SANITIZED
void* operator new(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace weir::radix_tree_memory_test {
namespace {

/// Limits the allocations of this thread until the end of a C++ scope. Further ones fail.
class ScarceHeap {
 public:
  explicit ScarceHeap(std::size_t allocations) noexcept { allocations_left = allocations; }
  ~ScarceHeap() { allocations_left = unlimited; }
  ScarceHeap(const ScarceHeap&) = delete;
  ScarceHeap& operator=(const ScarceHeap&) = delete;
};

/// A value that counts the existing values.
struct Counted {
  Counted(int& count, int its_number) : alive(&count), number(its_number) { ++*alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive; }
  int* alive;
  int number;
};

class RadixTreeMemory : public testing::Test {
 protected:
  using Tree = RadixTree<Counted>;

  /// Everything that a caller can observe.
  struct Contents {
    std::vector<std::pair<std::string, int>> entries;
    std::size_t size;
    std::size_t bytes;
    RadixStats stats;
    int alive;
    bool operator==(const Contents&) const = default;
  };

  void SetUp() override {
#ifdef WEIR_TEST_THREAD_SANITIZED
    GTEST_SKIP() << "the heap cannot be replaced";
#endif
  }

  Contents contents(const Tree& tree) const {
    Contents found{{}, tree.size(), tree.memory_bytes(), tree.stats(), alive_};
    tree.walk([&](std::string_view key, const Counted& value) {
      found.entries.emplace_back(key, value.number);
    });
    return found;
  }

  /// Adds a key for each of the bytes from 0.
  void add_bytes(Tree& tree, unsigned count) {
    for (unsigned byte = 0; byte < count; ++byte) {
      tree.insert(std::string(1, static_cast<char>(byte)), alive_, static_cast<int>(byte));
    }
  }

  /// Inserts a key and returns true if there was enough memory.
  bool insert(Tree& tree, std::string_view key, std::size_t allocations) {
    const ScarceHeap heap(allocations);
    try {
      return tree.insert(key, alive_, 1000).added;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  /// Expects that an insertion needs these allocations, and that it changes nothing without them.
  void expect_insertion(Tree& tree, std::string_view key, std::size_t allocations) {
    const Contents before = contents(tree);
    for (std::size_t missing = allocations; missing > 0; --missing) {
      ASSERT_FALSE(insert(tree, key, allocations - missing)) << missing;
      EXPECT_EQ(contents(tree), before) << missing;
      EXPECT_FALSE(tree.contains(key));
    }
    ASSERT_TRUE(insert(tree, key, allocations));
    EXPECT_EQ(alive_, before.alive + 1);
    ASSERT_NE(tree.find(key), nullptr);
    EXPECT_EQ(tree.find(key)->number, 1000);
    EXPECT_EQ(tree.size(), before.size + 1);
    for (const auto& [other, number] : before.entries) {
      ASSERT_NE(tree.find(other), nullptr);
      EXPECT_EQ(tree.find(other)->number, number);
    }
  }

  int alive_ = 0;
};

TEST_F(RadixTreeMemory, InsertLeavesTheTreeUnchangedWithoutMemory) {
  Tree tree;
  expect_insertion(tree, "abc", 1);
  expect_insertion(tree, "abd", 2);   // a node above two keys
  expect_insertion(tree, "a", 2);     // a node above a node
  expect_insertion(tree, "ab", 1);    // a key that ends at a node
  expect_insertion(tree, "abcd", 2);  // a node for a key and its prefix
  expect_insertion(tree, "", 2);
  tree.clear();
  EXPECT_EQ(alive_, 0);
  EXPECT_EQ(tree.memory_bytes(), 0U);
}

TEST_F(RadixTreeMemory, AFullNodeStaysUnchangedWithoutMemoryForALargerOne) {
  for (const unsigned capacity : {4U, 16U, 48U}) {
    SCOPED_TRACE(capacity);
    Tree tree;
    add_bytes(tree, capacity);
    expect_insertion(tree, "\xff", 2);
    tree.clear();
    EXPECT_EQ(tree.memory_bytes(), 0U);
  }
  EXPECT_EQ(alive_, 0);
}

TEST_F(RadixTreeMemory, ANodeWithRoomNeedsMemoryOnlyForTheKey) {
  for (const unsigned used : {3U, 15U, 47U, 49U, 255U}) {
    SCOPED_TRACE(used);
    Tree tree;
    add_bytes(tree, used);
    expect_insertion(tree, "\xff", 1);
  }
  EXPECT_EQ(alive_, 0);
}

TEST_F(RadixTreeMemory, APresentKeyNeedsNoMemory) {
  Tree tree;
  add_bytes(tree, 5);
  const Contents before = contents(tree);
  const std::string key(1, '\3');
  bool added = true;
  {
    const ScarceHeap heap(0);
    added = tree.insert(key, alive_, 1000).added;
  }
  EXPECT_FALSE(added);
  EXPECT_EQ(contents(tree), before);
}

// A large tree takes its memory from slabs, which are found again after the failure.
TEST_F(RadixTreeMemory, ALargeTreeStaysUnchangedWithoutMemoryForASlab) {
  Tree tree;
  int number = 0;
  while (tree.memory_bytes() < std::size_t{1024} * 1024) {
    tree.insert("key " + std::to_string(number), alive_, number);
    ++number;
  }
  const std::size_t size = tree.size();
  const std::size_t bytes = tree.memory_bytes();
  const int alive = alive_;
  EXPECT_FALSE(insert(tree, "another", 0));
  EXPECT_EQ(tree.size(), size);
  EXPECT_EQ(tree.memory_bytes(), bytes);
  EXPECT_EQ(alive_, alive);
  EXPECT_TRUE(insert(tree, "another", unlimited));
  EXPECT_GT(tree.memory_bytes(), bytes + std::size_t{2000} * 1024);
  for (int each = 0; each < number; ++each) {
    ASSERT_TRUE(tree.remove("key " + std::to_string(each)));
  }
  EXPECT_TRUE(tree.remove("another"));
  EXPECT_EQ(tree.memory_bytes(), 0U);
  EXPECT_EQ(alive_, 0);
}

TEST_F(RadixTreeMemory, RemovalKeepsALargeNodeWithoutMemoryForASmallerOne) {
  struct {
    unsigned count;
    RadixStats large;
    RadixStats small;
  } const cases[] = {{5, {.node16 = 1}, {.node4 = 1}},
                     {17, {.node48 = 1}, {.node16 = 1}},
                     {49, {.node256 = 1}, {.node48 = 1}}};
  for (const auto& [count, large, small] : cases) {
    SCOPED_TRACE(count);
    Tree tree;
    add_bytes(tree, count);
    for (unsigned byte = count - 1; byte > 2; --byte) {
      const std::string key(1, static_cast<char>(byte));
      bool removed = false;
      {
        const ScarceHeap heap(0);
        removed = tree.remove(key);
      }
      ASSERT_TRUE(removed);
      EXPECT_FALSE(tree.contains(key));
      EXPECT_EQ(tree.size(), byte);
    }
    EXPECT_EQ(tree.stats(), large);
    EXPECT_EQ(alive_, 3);
    EXPECT_TRUE(tree.remove("\2"));
    EXPECT_EQ(tree.stats(), small) << "there is memory again";
    EXPECT_EQ(tree.find(std::string(1, '\0'))->number, 0);
    EXPECT_EQ(tree.find("\1")->number, 1);
    tree.clear();
    EXPECT_EQ(tree.memory_bytes(), 0U);
  }
}

// A node that stayed large is replaced by its last entry, and so the tree has no node without one.
TEST_F(RadixTreeMemory, ALargeNodeIsRemovedWithItsLastKeys) {
  for (const unsigned count : {5U, 17U, 49U}) {
    for (const bool until_the_end : {true, false}) {
      SCOPED_TRACE(testing::Message() << count << " keys, " << until_the_end);
      Tree tree;
      add_bytes(tree, count);
      for (unsigned byte = count; byte-- > 0;) {
        const std::string key(1, static_cast<char>(byte));
        const ScarceHeap heap(byte < 2 && !until_the_end ? unlimited : 0);
        ASSERT_TRUE(tree.remove(key));
      }
      EXPECT_EQ(tree.size(), 0U);
      EXPECT_EQ(tree.stats(), RadixStats{});
      EXPECT_EQ(tree.memory_bytes(), 0U);
      EXPECT_EQ(alive_, 0);
      EXPECT_TRUE(insert(tree, "key", unlimited));
      EXPECT_EQ(tree.find("key")->number, 1000);
    }
  }
}

}  // namespace
}  // namespace weir::radix_tree_memory_test
