// Tests of the adaptive radix tree: single corner cases, then random and adversarial comparisons
// with std::map. WEIR_TEST_SEED repeats a random run.
#include "weir/base/detail/radix_tree.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::radix_tree_test {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

template <class V>
std::vector<std::string> keys_of(const RadixTree<V>& tree) {
  std::vector<std::string> keys;
  tree.walk([&](std::string_view key, const V&) { keys.emplace_back(key); });
  return keys;
}

TEST(RadixTree, AnEmptyTreeFindsNothing) {
  RadixTree<int> tree;
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.find(""), nullptr);
  EXPECT_EQ(tree.find("a"), nullptr);
  EXPECT_FALSE(tree.longest_prefix("abc"));
  EXPECT_FALSE(tree.remove(""));
  EXPECT_FALSE(tree.remove("a"));
  EXPECT_TRUE(keys_of(tree).empty());
  tree.walk_from("a", [](std::string_view, int) { FAIL(); });
  tree.walk_prefix("", [](std::string_view, int) { FAIL(); });
  EXPECT_EQ(tree.memory_bytes(), 0u);
}

TEST(RadixTree, AcceptsTheEmptyKeyNulBytesAndPrefixes) {
  const std::vector<std::string> keys = {"",     "\0"s,  "\0\0"s, "\0a"s,    "a",
                                         "a\0"s, "ab",   "abc",   "abc\xff", "abd",
                                         "b",    "\x7f", "\x80",  "\xff",    "\xff\xff"};
  RadixTree<std::size_t> tree;
  for (std::size_t index = 0; index < keys.size(); ++index) {
    const auto [value, added] = tree.insert(keys[index], index);
    EXPECT_TRUE(added);
    EXPECT_EQ(*value, index);
  }
  for (std::size_t index = 0; index < keys.size(); ++index) {
    ASSERT_NE(tree.find(keys[index]), nullptr) << index;
    EXPECT_EQ(*tree.find(keys[index]), index);
  }
  EXPECT_EQ(tree.find("abcd"), nullptr);
  EXPECT_EQ(tree.find("\0\0\0"sv), nullptr);
  auto sorted = keys;
  std::ranges::sort(sorted);  // std::string compares as unsigned bytes
  EXPECT_EQ(keys_of(tree), sorted);
}

TEST(RadixTree, InsertKeepsTheFirstValueAndDoesNotTouchTheArguments) {
  RadixTree<std::unique_ptr<int>> tree;
  tree.insert("key", std::make_unique<int>(1));
  auto second = std::make_unique<int>(2);
  const auto [value, added] = tree.insert("key", std::move(second));
  EXPECT_FALSE(added);
  EXPECT_EQ(**value, 1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(tree.size(), 1u);
}

TEST(RadixTree, TakesAndMovesMoveOnlyValues) {
  RadixTree<std::unique_ptr<int>> tree;
  tree.insert("one", std::make_unique<int>(1));
  tree.insert("two", std::make_unique<int>(2));
  std::unique_ptr<int>* one = tree.find("one");
  RadixTree<std::unique_ptr<int>> other = std::move(tree);
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.memory_bytes(), 0u);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(other.find("one"), one) << "moving the tree moves no value";
  tree.insert("three", std::make_unique<int>(3));
  EXPECT_EQ(tree.size(), 1u);
  other = std::move(tree);
  EXPECT_EQ(keys_of(other), std::vector<std::string>{"three"});
  auto taken = other.take("three");
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(**taken, 3);
  EXPECT_FALSE(other.take("three").has_value());
  EXPECT_EQ(other.memory_bytes(), 0u);
}

TEST(RadixTree, AMovedTreeTakesItsNodesWithIt) {
  RadixTree<int> tree;
  for (const char* const key : {"a", "b", "c", "d", "e", "f1", "f2"}) tree.insert(key, 1);
  const RadixStats stats{.node4 = 1, .node16 = 1};
  EXPECT_EQ(tree.stats(), stats);
  RadixTree<int> other = std::move(tree);
  EXPECT_EQ(tree.stats(), RadixStats{});
  EXPECT_EQ(other.stats(), stats);
  RadixTree<int> third;
  third.insert("x", 1);
  third.insert("xy", 1);
  third = std::move(other);
  EXPECT_EQ(third.stats(), stats) << "its own nodes are freed";
  EXPECT_EQ(other.stats(), RadixStats{});
  EXPECT_EQ(third.size(), 7U);
}

TEST(RadixTree, KeepsTheAlignmentOfAnyValue) {
  struct alignas(64) Line {
    char bytes[64];
  };
  struct Empty {};
  RadixTree<Line> lines;
  RadixTree<char> bytes;
  RadixTree<Empty> empties;
  for (int i = 0; i < 100; ++i) {
    const std::string key(static_cast<std::size_t>(i), 'k');
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lines.insert(key).value) % 64, 0u);
    *bytes.insert(key, 'x').value = static_cast<char>(i);
    empties.insert(key);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(*bytes.find(std::string(static_cast<std::size_t>(i), 'k')), static_cast<char>(i));
  }
  EXPECT_EQ(empties.size(), 100u);
}

TEST(RadixTree, AThrowingConstructorLeavesTheTreeUnchanged) {
  struct Thrower {
    explicit Thrower(bool now) {
      if (now) throw std::runtime_error("now");
    }
  };
  RadixTree<Thrower> tree;
  tree.insert("a", false);
  const std::size_t before = tree.memory_bytes();
  EXPECT_THROW(tree.insert("b", true), std::runtime_error);
  EXPECT_EQ(tree.size(), 1u);
  EXPECT_FALSE(tree.contains("b"));
  EXPECT_EQ(tree.memory_bytes(), before);
}

TEST(RadixTree, DestroysEachValueOnce) {
  struct Counted {
    Counted(int& count, bool bad) : alive(&count) {
      if (bad) throw std::runtime_error("bad");
      ++*alive;
    }
    Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
    Counted& operator=(Counted&&) = delete;
    ~Counted() { --*alive; }
    int* alive;
  };
  int alive = 0;
  {
    RadixTree<Counted> tree;
    EXPECT_THROW(tree.insert("a", alive, true), std::runtime_error);
    EXPECT_EQ(alive, 0) << "a value that was not constructed is not destroyed";
    for (const char* key : {"a", "b", "bc", "d"}) tree.insert(key, alive, false);
    tree.insert("a", alive, false);
    EXPECT_EQ(alive, 4);
    EXPECT_TRUE(tree.remove("b"));
    EXPECT_EQ(alive, 3);
    {
      const auto taken = tree.take("bc");
      EXPECT_TRUE(taken.has_value());
      EXPECT_EQ(alive, 3) << "the value that was moved from is destroyed";
    }
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(RadixTree, LongestPrefixReturnsTheLongestMatchingKey) {
  RadixTree<int> tree;
  const std::string longer = std::string(100, 'a') + "-b-" + std::string(100, 'c');
  tree.insert("a", 1);
  tree.insert("aaaa", 4);
  tree.insert(longer, 5);
  tree.insert(longer + "x", 6);
  EXPECT_FALSE(tree.longest_prefix(""));
  EXPECT_FALSE(tree.longest_prefix("b"));
  EXPECT_EQ(*tree.longest_prefix("a").value, 1);
  EXPECT_EQ(*tree.longest_prefix("aaa").value, 1);
  const RadixTree<int>& constant = tree;
  EXPECT_FALSE(constant.longest_prefix("b"));
  EXPECT_EQ(constant.longest_prefix("aaab").key, "a");
  EXPECT_EQ(constant.longest_prefix("aaab").value, tree.find("a"));
  EXPECT_EQ(tree.longest_prefix("aaab").key, "a");
  EXPECT_EQ(*tree.longest_prefix(longer + "y").value, 5);
  EXPECT_EQ(*tree.longest_prefix(longer + "xyz").value, 6);
  std::string wrong = longer + "x";
  wrong[101] = '?';  // no node branches on this byte
  EXPECT_EQ(*tree.longest_prefix(wrong).value, 4);
  wrong[2] = '?';
  EXPECT_EQ(*tree.longest_prefix(wrong).value, 1);
  wrong[0] = '?';
  EXPECT_FALSE(tree.longest_prefix(wrong));
  tree.insert("", 0);
  EXPECT_EQ(*tree.longest_prefix(wrong).value, 0);
}

TEST(RadixTree, NodesGrowAndShrinkAtEachSize) {
  RadixTree<int> tree;
  const auto key = [](int byte) { return "prefix" + std::string(1, static_cast<char>(byte)); };
  const auto expect = [&](RadixStats stats) {
    EXPECT_EQ(tree.stats(), stats) << "with " << tree.size() << " keys";
  };
  std::vector<int> bytes(256);
  for (int byte = 0; byte < 256; ++byte) bytes[static_cast<std::size_t>(byte)] = byte;
  std::ranges::shuffle(bytes, std::mt19937(1));
  for (int byte : bytes) {
    tree.insert(key(byte), byte);
    const std::size_t size = tree.size();
    if (size == 1) expect({});
    if (size == 2 || size == 4) expect({.node4 = 1});
    if (size == 5 || size == 16) expect({.node16 = 1});
    if (size == 17 || size == 48) expect({.node48 = 1});
    if (size == 49 || size == 256) expect({.node256 = 1});
    for (int other : bytes) {
      const int* value = tree.find(key(other));
      const bool expected = std::ranges::find(bytes, other) <= std::ranges::find(bytes, byte);
      ASSERT_EQ(value != nullptr && *value == other, expected);
    }
  }
  const std::size_t full = tree.memory_bytes();
  EXPECT_GT(full, 256u * 8);
  std::ranges::shuffle(bytes, std::mt19937(2));
  for (int byte : bytes) {
    ASSERT_TRUE(tree.remove(key(byte)));
    const std::size_t size = tree.size();
    if (size == 37) expect({.node256 = 1});
    if (size == 36 || size == 13) expect({.node48 = 1});
    if (size == 12 || size == 4) expect({.node16 = 1});
    if (size == 3 || size == 2) expect({.node4 = 1});
    if (size <= 1) expect({});
  }
  EXPECT_EQ(tree.memory_bytes(), 0u);
}

TEST(RadixTree, ValuesStayWhereTheyAreUntilTheirKeyIsRemoved) {
  RadixTree<int> tree;
  std::map<std::string, const int*> values;
  const auto expect_unmoved = [&] {
    for (const auto& [key, value] : values) ASSERT_EQ(tree.find(key), value);
  };
  for (const char* const prefix : {"", "a", "prefix"}) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string key = prefix + std::string(1, static_cast<char>(byte));
      values.emplace(key, tree.insert(key, byte).value);
    }
    expect_unmoved();
  }
  while (values.size() > 1) {
    ASSERT_TRUE(tree.remove(values.begin()->first));
    values.erase(values.begin());
    if (values.size() % 50 == 1) expect_unmoved();
  }
  expect_unmoved();
}

TEST(RadixTree, AKeyMayEndWhereOthersBranch) {
  RadixTree<int> tree;
  tree.insert("abc", 1);
  tree.insert("abd", 2);
  EXPECT_TRUE(tree.insert("ab", 3).added);
  EXPECT_EQ(tree.stats(), RadixStats{.node4 = 1});
  ASSERT_TRUE(tree.contains("ab"));
  EXPECT_EQ(*tree.find("ab"), 3);
  EXPECT_EQ(keys_of(tree), (std::vector<std::string>{"ab", "abc", "abd"}));
  EXPECT_TRUE(tree.remove("abd"));
  EXPECT_EQ(keys_of(tree), (std::vector<std::string>{"ab", "abc"}));
  tree.insert("abd", 2);
  EXPECT_TRUE(tree.remove("ab"));
  EXPECT_EQ(keys_of(tree), (std::vector<std::string>{"abc", "abd"}));
}

TEST(RadixTree, ANodeWithATerminalMergesWhenEitherEntryIsRemoved) {
  RadixTree<int> tree;
  tree.insert("ab", 1);
  tree.insert("abcd", 2);
  EXPECT_EQ(tree.stats(), RadixStats{.node4 = 1});
  EXPECT_TRUE(tree.remove("ab"));
  EXPECT_EQ(tree.stats(), RadixStats{});
  EXPECT_EQ(keys_of(tree), std::vector<std::string>{"abcd"});
  tree.insert("ab", 1);
  EXPECT_TRUE(tree.remove("abcd"));
  EXPECT_EQ(tree.stats(), RadixStats{});
  EXPECT_EQ(*tree.find("ab"), 1);
}

TEST(RadixTree, WalksStartAndStopOnRequest) {
  RadixTree<int> tree;
  for (int i = 0; i < 1000; ++i) tree.insert(std::to_string(i), i);
  int visits = 0;
  tree.walk([&](std::string_view, int) { return ++visits < 10; });
  EXPECT_EQ(visits, 10);
  std::vector<std::string> found;
  tree.walk_prefix("99", [&](std::string_view key, int) { found.emplace_back(key); });
  EXPECT_EQ(found, (std::vector<std::string>{"99", "990", "991", "992", "993", "994", "995", "996",
                                             "997", "998", "999"}));
  found.clear();
  tree.walk_from("996x", [&](std::string_view key, int) { found.emplace_back(key); });
  EXPECT_EQ(found, (std::vector<std::string>{"997", "998", "999"}));
  tree.walk([](std::string_view, int& value) { value = -value; });
  EXPECT_EQ(*tree.find("7"), -7);
}

TEST(RadixTree, EveryWalkStopsAtItsFirstKey) {
  RadixTree<int> tree;
  for (const char* key : {"", "a", "ab", "abc", "abd", "b", "c"}) tree.insert(key, 0);
  std::vector<std::string> visited;
  const auto stop = [&](std::string_view key, int) {
    visited.emplace_back(key);
    return false;
  };
  const RadixTree<int>& constant = tree;
  tree.walk(stop);
  constant.walk(stop);
  EXPECT_EQ(visited, (std::vector<std::string>{"", ""}));
  for (const char* key : {"", "a", "ab", "abc", "abd", "b", "c"}) {
    SCOPED_TRACE(key);
    visited.clear();
    tree.walk_from(key, stop);
    tree.walk_prefix(key, stop);
    EXPECT_EQ(visited, (std::vector<std::string>{key, key}));
  }
  visited.clear();
  tree.walk_from("aa", stop);
  tree.walk_from("abca", stop);
  EXPECT_EQ(visited, (std::vector<std::string>{"ab", "abd"}));
}

TEST(RadixTree, WalkFromVisitsAllKeysThatAreNotLess) {
  RadixTree<int> tree;
  std::vector<std::string> keys{""};
  for (const int size : {3, 16, 48, 256}) {  // the children of a node of each size
    const std::string prefix = std::to_string(size) + "/";
    keys.push_back(prefix);
    for (int byte = 0; byte < size; ++byte) keys.push_back(prefix + static_cast<char>(byte));
  }
  for (const std::string& key : keys) tree.insert(key, 0);
  std::ranges::sort(keys);
  for (std::size_t at = 0; at < keys.size(); ++at) {
    for (const std::string& start : {keys[at], keys[at] + '\0'}) {
      std::vector<std::string> visited;
      tree.walk_from(start, [&](std::string_view key, int) { visited.emplace_back(key); });
      const auto first = std::ranges::lower_bound(keys, start);
      ASSERT_EQ(visited, std::vector<std::string>(first, keys.end())) << at;
    }
  }
}

TEST(RadixTree, ALargeTreeFreesItsSlabs) {
  RadixTree<int> tree;
  const auto key = [](int i) { return std::to_string(0x9e3779b97f4a7c15 * unsigned(i)); };
  constexpr int count = 300'000;
  for (int i = 0; i < count; ++i) ASSERT_TRUE(tree.insert(key(i), i).added);
  const std::size_t full = tree.memory_bytes();
  EXPECT_GT(full, 4u << 20);
  for (int i = 0; i < count; ++i) ASSERT_EQ(*tree.find(key(i)), i);
  RadixTree<int> moved = std::move(tree);
  EXPECT_EQ(tree.memory_bytes(), 0u);
  for (int i = 1000; i < count; ++i) ASSERT_TRUE(moved.remove(key(i)));
  EXPECT_LT(moved.memory_bytes(), full / 2);
  for (int i = 1000; i < count; ++i) moved.insert(key(i), -i);  // reuses slots
  for (int i = 0; i < count; ++i) ASSERT_EQ(*moved.find(key(i)), i < 1000 ? i : -i);
  EXPECT_LE(moved.memory_bytes(), full + (4u << 20));
  for (int i = 0; i < count; ++i) ASSERT_TRUE(moved.remove(key(i)));
  EXPECT_EQ(moved.memory_bytes(), 0u);
}

// A path of thousands of nodes must not use the thread's stack. These tests run on 256 KiB of
// stack.
void* deep_paths(void*) {
  constexpr std::size_t depth = 6000;
  RadixTree<std::size_t> tree;
  const std::string all(depth, 'a');
  const std::string_view text = all;
  for (std::size_t size = 0; size <= depth; ++size) tree.insert(text.substr(0, size), size);
  std::size_t next = 0;
  tree.walk([&](std::string_view key, std::size_t value) {
    EXPECT_EQ(key.size(), next);
    EXPECT_EQ(value, next++);
  });
  EXPECT_EQ(next, depth + 1);
  EXPECT_EQ(tree.longest_prefix(all + "b").key.size(), depth);
  EXPECT_EQ(tree.stats().node4, depth);
  for (std::size_t size = 0; size <= depth; size += 2) tree.remove(text.substr(0, size));
  EXPECT_EQ(tree.size(), depth / 2);
  EXPECT_EQ(tree.stats().node4, depth / 2 - 1);
  tree.clear();
  EXPECT_EQ(tree.memory_bytes(), 0u);
  for (std::size_t size = 0; size <= depth; ++size) tree.insert(text.substr(0, size), size);
  return nullptr;
}

TEST(RadixTree, DeepPathsNeedNoStack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, deep_paths, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST(RadixTree, MegabyteKeysCostOnlyTheirLength) {
  std::string key(1 << 20, '\0');
  RadixTree<int> tree;
  for (int i = 0; i < 16; ++i) {
    key[static_cast<std::size_t>(i) << 16] = '\1';
    tree.insert(key, i);
  }
  EXPECT_EQ(tree.size(), 16u);
  EXPECT_LT(tree.memory_bytes(), 17u << 20);
  EXPECT_EQ(*tree.find(key), 15);
  key.back() = '?';
  EXPECT_EQ(tree.find(key), nullptr);
  EXPECT_FALSE(tree.longest_prefix(key));
}

// --- comparison with std::map ---

using Model = std::map<std::string, std::uint64_t, std::less<>>;
using Random = std::mt19937_64;

std::uint64_t seed() {
  const char* text = std::getenv("WEIR_TEST_SEED");
  static const std::uint64_t value =
      text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  return value;
}

std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

std::string random_bytes(Random& random, std::size_t size, std::size_t alphabet) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(below(random, alphabet));
  return bytes;
}

/// Kinds of key sets, from simple to malicious.
const std::map<std::string, std::function<std::string(Random&)>> generators = {
    {"few letters", [](Random& r) { return random_bytes(r, below(r, 8), 3); }},
    {"all bytes", [](Random& r) { return random_bytes(r, below(r, 4), 256); }},
    {"one dense level", [](Random& r) { return "dense" + random_bytes(r, 1, 256); }},
    {"two dense levels", [](Random& r) { return random_bytes(r, 2, 60); }},
    {"decimal hashes", [](Random& r) { return std::to_string(r() % 5000 * 0x9e3779b97f4a7c15); }},
    {"long shared prefixes",
     [](Random& r) {
       return std::string(50 * below(r, 4), 'p') + random_bytes(r, below(r, 3), 4) +
              std::string(50 * below(r, 3), 's') + random_bytes(r, below(r, 2), 2);
     }},
    {"prefixes of each other", [](Random& r) { return std::string(below(r, 600), '\xff'); }},
    {"one byte differs deep inside",
     [](Random& r) {
       std::string key(300, 'x');
       key[below(r, 300)] = static_cast<char>(below(r, 256));
       return key;
     }},
};

void expect_same_walk(const RadixTree<std::uint64_t>& tree, const Model& model) {
  auto expected = model.begin();
  tree.walk([&](std::string_view key, std::uint64_t value) {
    ASSERT_NE(expected, model.end());
    ASSERT_EQ(key, expected->first);
    ASSERT_EQ(value, expected->second);
    ++expected;
  });
  ASSERT_EQ(expected, model.end());
}

void expect_same_searches(const RadixTree<std::uint64_t>& tree, const Model& model,
                          const std::string& key) {
  const std::uint64_t* found = tree.find(key);
  const auto expected = model.find(key);
  ASSERT_EQ(found != nullptr, expected != model.end());
  if (found != nullptr) {
    ASSERT_EQ(*found, expected->second);
  }

  const auto longest = tree.longest_prefix(key);
  auto prefix = model.end();
  for (std::size_t size = key.size() + 1; size-- > 0 && prefix == model.end();) {
    prefix = model.find(std::string_view(key).substr(0, size));
  }
  ASSERT_EQ(static_cast<bool>(longest), prefix != model.end());
  if (longest) {
    ASSERT_EQ(longest.key, prefix->first);
  }

  auto bound = model.lower_bound(key);
  int steps = 0;
  tree.walk_from(key, [&](std::string_view next, std::uint64_t) {
    EXPECT_TRUE(bound != model.end() && next == bound->first);
    ++bound;
    return ++steps < 5;
  });
  ASSERT_TRUE(steps == 5 || bound == model.end());

  const std::string start = key.substr(0, key.size() / 2);
  bound = model.lower_bound(start);
  tree.walk_prefix(start, [&](std::string_view next, std::uint64_t) {
    EXPECT_TRUE(bound != model.end() && next == bound->first);
    ++bound;
  });
  ASSERT_TRUE(bound == model.end() || !bound->first.starts_with(start));
}

void churn(Random& random, const std::function<std::string(Random&)>& generate) {
  RadixTree<std::uint64_t> tree;
  Model model;
  for (int phase = 0; phase < 6; ++phase) {
    const std::size_t insert_of_8 = phase % 2 == 0 ? 6 : 2;
    for (int step = 0; step < 600; ++step) {
      const std::string key = generate(random);
      if (below(random, 8) < insert_of_8) {
        const std::uint64_t value = random();
        const auto inserted = tree.insert(key, value);
        const auto expected = model.try_emplace(key, value);
        ASSERT_EQ(inserted.added, expected.second);
        ASSERT_EQ(*inserted.value, expected.first->second);
      } else {
        ASSERT_EQ(tree.remove(key), model.erase(key) == 1);
      }
      ASSERT_EQ(tree.size(), model.size());
      ASSERT_NO_FATAL_FAILURE(expect_same_searches(tree, model, generate(random)));
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_walk(tree, model));
  }
  std::vector<std::string> left;
  for (const auto& entry : model) left.push_back(entry.first);
  std::ranges::shuffle(left, random);
  for (const std::string& key : left) ASSERT_TRUE(tree.remove(key));
  ASSERT_EQ(tree.memory_bytes(), 0u);
  ASSERT_EQ(tree.stats(), RadixStats{});
}

TEST(RadixTree, BehavesLikeAMapUnderChurn) {
  RecordProperty("seed", std::to_string(seed()));
  for (const auto& [name, generate] : generators) {
    SCOPED_TRACE("keys: " + name + ", WEIR_TEST_SEED=" + std::to_string(seed()));
    Random random(seed());
    ASSERT_NO_FATAL_FAILURE(churn(random, generate));
  }
}

// The shape of a tree depends only on its keys, except for nodes that have not shrunk yet. No
// number of insertions and removals may leave more nodes than branching points.
TEST(RadixTree, ChurnLeavesNoExcessNodes) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Random random(seed());
  for (const auto& [name, generate] : generators) {
    SCOPED_TRACE(name);
    RadixTree<int> churned;
    for (int step = 0; step < 5000; ++step) {
      const std::string key = generate(random);
      if (below(random, 2) == 0) {
        churned.insert(key, 0);
      } else {
        churned.remove(key);
      }
    }
    RadixTree<int> fresh;
    churned.walk([&](std::string_view key, int) { fresh.insert(key, 0); });
    const auto total = [](const RadixStats& c) {
      return c.node4 + c.node16 + c.node48 + c.node256;
    };
    EXPECT_EQ(total(churned.stats()), total(fresh.stats()));
    EXPECT_LE(churned.memory_bytes(), 4 * fresh.memory_bytes());
  }
}

}  // namespace
}  // namespace weir::radix_tree_test
