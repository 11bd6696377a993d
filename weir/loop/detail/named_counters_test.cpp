#include "weir/loop/detail/named_counters.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::detail::named_counters_test {
namespace {

constexpr NamedCounters::Row rows[]{
    {"calls", {.name = "test.calls", .unit = "{call}", .help = "Calls.", .label = "target"}},
    {"open", {.name = "test.open", .label = "target"}, Metric::Kind::gauge},
};

class NamedCountersTest : public ::testing::Test {
 protected:
  /// Returns the values by the name and the value of the label, and checks the texts.
  std::map<std::string, std::uint64_t> values() {
    std::map<std::string, std::uint64_t> values;
    const MetricSnapshot sum = loop_->metrics().read();
    for (const Metric& each : sum.metrics()) {
      EXPECT_EQ(each.info->label, "target");
      EXPECT_TRUE(each.name.ends_with(": " + std::string(each.info->label_value))) << each.name;
      values[std::string(each.info->name) + " " + std::string(each.info->label_value)] = each.value;
    }
    return values;
  }

  MemoryPlatform platform_{MemoryPlatformOptions()};
  const std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

TEST_F(NamedCountersTest, CountsByName) {
  {
    NamedCounters counters(*loop_, rows);
    EXPECT_TRUE(values().empty());
    counters.of("a")[0].add(3);
    counters.of("b")[1].add();
    counters.of("a")[0].add();
    const std::map<std::string, std::uint64_t> expected{
        {"test.calls a", 4}, {"test.calls b", 0}, {"test.open a", 0}, {"test.open b", 1}};
    EXPECT_EQ(values(), expected);
  }
  const std::map<std::string, std::uint64_t> expected{{"test.calls a", 4}, {"test.calls b", 0}};
  EXPECT_EQ(values(), expected) << "totals stay, and gauges leave";
}

TEST_F(NamedCountersTest, BoundsItsNames) {
  NamedCounters counters(*loop_, rows);
  for (int number = 0; number < 1000; ++number) counters.of(std::to_string(number))[0].add();
  const auto all = values();
  EXPECT_EQ(all.size(), 2 * (NamedCounters::names_max + 1));
  EXPECT_EQ(all.at("test.calls 63"), 1U);
  EXPECT_EQ(all.at("test.calls (others)"), 1000 - NamedCounters::names_max);
}

}  // namespace
}  // namespace weir::detail::named_counters_test
