// Tests of HpackTable: insertion, eviction and memory, compared with a model.
#include "weir/http/detail/h2/hpack_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace weir::http::hpack_table_test {
namespace {

/// The table as a list of strings.
class Model {
 public:
  void insert(const std::string& name, const std::string& value) {
    if (size_of({name, value}) > size_max_) return fields_.clear();
    fields_.push_front({name, value});
    shrink();
  }
  void set_size_max(std::size_t size_max) {
    size_max_ = size_max;
    shrink();
  }
  void expect_equal(const HpackTable& table) const {
    ASSERT_EQ(table.count(), fields_.size());
    ASSERT_EQ(table.size(), size());
    for (std::size_t index = 0; index < fields_.size(); ++index) {
      const HeaderField field = table[static_cast<std::uint32_t>(index)];
      ASSERT_EQ(field.name, fields_[index].first);
      ASSERT_EQ(field.value, fields_[index].second);
    }
  }

 private:
  using Field = std::pair<std::string, std::string>;

  static std::size_t size_of(const Field& field) {
    return field.first.size() + field.second.size() + 32;
  }
  std::size_t size() const {
    std::size_t sum = 0;
    for (const Field& each : fields_) sum += size_of(each);
    return sum;
  }
  void shrink() {
    while (size() > size_max_) fields_.pop_back();
  }

  std::deque<Field> fields_;
  std::size_t size_max_ = 4096;
};

TEST(HpackTable, HasNoMemoryWhenItIsEmpty) {
  HpackTable table;
  EXPECT_EQ(table.memory(), 0U);
  EXPECT_EQ(table.size_max(), 4096U);
  table.insert("a", "b");
  EXPECT_EQ(table.memory(), 512U);
  table.set_size_max(34);
  EXPECT_EQ(table.count(), 1U);
  table.set_size_max(33);
  EXPECT_EQ(table.count(), 0U);
  EXPECT_EQ(table.memory(), 0U);
  EXPECT_LE(sizeof(HpackTable), 24U);
}

TEST(HpackTable, AllocatesAtMost4096Bytes) {
  for (const std::size_t value_size : {0U, 1U, 30U, 100U, 500U, 1000U, 4062U}) {
    HpackTable table;
    for (int round = 0; round < 300; ++round) {
      ASSERT_TRUE(table.insert("n", std::string(value_size, 'v')));
      ASSERT_LE(table.memory(), HpackTable::memory_max);
    }
    EXPECT_EQ(table.count(), 4096 / (33 + value_size));
  }
}

TEST(HpackTable, IsEmptiedByAFieldThatIsTooLarge) {
  HpackTable table;
  table.insert("a", "b");
  EXPECT_FALSE(table.insert("n", std::string(4064, 'v')));
  EXPECT_EQ(table.count(), 0U);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_TRUE(table.insert("n", std::string(4063, 'v')));
  EXPECT_EQ(table.size(), 4096U);
  table.set_size_max(0);
  EXPECT_FALSE(table.insert("", ""));
}

TEST(HpackTable, MovesWithItsFields) {
  HpackTable table;
  table.insert("a", "b");
  HpackTable moved(std::move(table));
  EXPECT_EQ(moved[0].value, "b");
  EXPECT_EQ(table.count(), 0U);  // NOLINT: the moved-from table is empty
  EXPECT_EQ(table.memory(), 0U);
  table.insert("c", "d");
  table = std::move(moved);
  EXPECT_EQ(table[0].name, "a");
}

TEST(HpackTable, EqualsAModelAfterRandomChanges) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 engine(seed);
    const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
    HpackTable table;
    Model model;
    const std::size_t text_max = seed % 4 == 0   ? 4200
                                 : seed % 4 == 1 ? 4
                                 : seed % 4 == 2 ? 100
                                                 : 700;
    for (int round = 0; round < 1500; ++round) {
      if (random() % 64 == 0) {
        const std::uint32_t size_max = random() % 2 == 0 ? 4096 : random() % 4097;
        table.set_size_max(size_max);
        model.set_size_max(size_max);
      }
      const std::string value(random() % (text_max + 1), static_cast<char>('a' + random() % 26));
      if (table.count() > 0 && random() % 2 == 0) {
        // The name of a field in the table, often the oldest one.
        const std::uint32_t last = table.count() - 1;
        const std::string_view name = table[random() % 2 == 0 ? last : random() % (last + 1)].name;
        const std::string copy(name);
        table.insert(name, value);
        model.insert(copy, value);
      } else {
        const std::string name(random() % (text_max / 2 + 1), static_cast<char>('A' + round % 26));
        table.insert(name, value);
        model.insert(name, value);
      }
      ASSERT_LE(table.memory(), 4096U);
      ASSERT_NO_FATAL_FAILURE(model.expect_equal(table));
    }
  }
}

}  // namespace
}  // namespace weir::http::hpack_table_test
