// Tests the topics of a subscriber table.
#include "weir/event/detail/subscriber_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace weir::detail::subscriber_table_test {
namespace {

TEST(SubscriberTable, NumbersTheTypesInTheOrderOfTheirFirstUse) {
  SubscriberTable table;
  const std::vector<EventType> types(1000, EventType{"type", nullptr, 16});
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      ASSERT_EQ(table.index_of(types[i]), i);
      ASSERT_EQ(&table.topic(i).type, &types[i]);
      ASSERT_EQ(table.topic(i).index, i);
    }
  }
}

TEST(SubscriberTable, HoldsAtMost65536Types) {
  constexpr std::size_t most = 65'536;
  SubscriberTable table;
  const std::vector<EventType> types(most + 1, EventType{"type", nullptr, 16});
  for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(table.index_of(types[i]), i);
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(static_cast<void>(table.index_of(types[most])), std::length_error);
  }
  for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(table.index_of(types[i]), i);
}

TEST(SubscriberTable, FindsItsTopicsAtEveryAddress) {
  // Types at distances that share many bits of their addresses.
  for (const std::size_t distance : {1U, 2U, 8U, 64U, 512U}) {
    SubscriberTable table;
    const std::vector<EventType> types(200 * distance, EventType{"type", nullptr, 16});
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < 200; ++i) ASSERT_EQ(table.index_of(types[i * distance]), i);
    }
  }
}

}  // namespace
}  // namespace weir::detail::subscriber_table_test
