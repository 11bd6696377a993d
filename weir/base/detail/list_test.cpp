#include "weir/base/detail/list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace weir::detail::list_test {
namespace {

struct Item : ListNode {
  explicit Item(int is) : number(is) {}
  int number;
};

std::vector<int> numbers(const List<Item>& list) {
  std::vector<int> all;
  for (Item* each = list.front(); each != nullptr; each = list.next(*each)) {
    all.push_back(each->number);
  }
  EXPECT_EQ(all.size(), list.size());
  EXPECT_EQ(all.empty(), list.empty());
  return all;
}

TEST(List, PushesAndPopsAtBothEnds) {
  Item one(1), two(2), three(3);
  List<Item> list;
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(two);
  list.push_back(three);
  list.push_front(one);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(list.pop_front(), &one);
  EXPECT_FALSE(one.linked());
  EXPECT_TRUE(two.linked());
  EXPECT_EQ(numbers(list), (std::vector<int>{2, 3}));
}

TEST(List, InsertsAfterAnElement) {
  Item one(1), two(2), three(3), four(4);
  List<Item> list;
  list.push_back(one);
  list.insert_after(one, three);
  list.insert_after(one, two);
  list.insert_after(three, four);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3, 4}));
}

TEST(List, AnElementUnlinksItselfAndWhenDestroyed) {
  List<Item> list;
  Item first(1);
  list.push_back(first);
  {
    Item middle(2);
    list.push_back(middle);
    Item last(3);
    list.push_back(last);
    first.unlink();
    first.unlink();
    EXPECT_EQ(numbers(list), (std::vector<int>{2, 3}));
  }
  EXPECT_TRUE(list.empty());
  list.push_back(first);
  EXPECT_EQ(numbers(list), std::vector<int>{1});
}

TEST(List, SplicesAtTheEnd) {
  Item one(1), two(2), three(3);
  List<Item> list, other, none;
  list.push_back(one);
  other.push_back(two);
  other.push_back(three);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  list.splice_back(none);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3}));
  other.splice_back(list);
  EXPECT_EQ(numbers(other), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(list.empty());
}

TEST(List, SplicedElementsUnlinkThemselvesAndOthersFollow) {
  Item one(1), two(2), three(3), four(4);
  List<Item> list, other;
  list.push_back(one);
  other.push_back(two);
  other.push_back(three);
  list.splice_back(other);
  list.push_back(four);
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 2, 3, 4}));
  two.unlink();
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 3, 4}));
  three.unlink();
  EXPECT_EQ(numbers(list), (std::vector<int>{1, 4}));
  other.push_back(two);
  EXPECT_EQ(numbers(other), std::vector<int>{2});
  other.splice_back(list);
  four.unlink();
  other.push_back(three);
  EXPECT_EQ(numbers(other), (std::vector<int>{2, 1, 3}));
}

TEST(List, AClearedListUnlinksItsElements) {
  Item one(1), two(2);
  List<Item> list;
  list.push_back(one);
  list.push_back(two);
  list.clear();
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(one.linked() || two.linked());
  list.push_front(two);
  EXPECT_EQ(numbers(list), std::vector<int>{2});
}

TEST(List, ADestroyedListUnlinksItsElements) {
  Item one(1), two(2);
  {
    List<Item> list;
    list.push_back(one);
    list.push_back(two);
  }
  EXPECT_FALSE(one.linked() || two.linked());
}

TEST(List, AgreesWithADeque) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 50; ++i) items.push_back(std::make_unique<Item>(i));
  List<Item> list;
  std::deque<int> model;
  for (int step = 0; step < 5000; ++step) {
    Item& item = *items[random() % items.size()];
    if (item.linked()) {
      std::erase(model, item.number);
      item.unlink();
    } else if (random() % 2 == 0) {
      list.push_back(item);
      model.push_back(item.number);
    } else {
      list.push_front(item);
      model.push_front(item.number);
    }
    ASSERT_EQ(numbers(list), std::vector<int>(model.begin(), model.end()));
  }
}

}  // namespace
}  // namespace weir::detail::list_test
