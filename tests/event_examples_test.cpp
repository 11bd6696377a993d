// Tests that the examples of typed events print what they promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process.hpp"

namespace weir::tests::event_examples_test {
namespace {

/// Returns the line of `text` that begins with `words`, or an empty string.
std::string line_of(const std::string& text, const std::string& words) {
  const auto start = ("\n" + text).find("\n" + words);
  if (start == std::string::npos) return {};
  return text.substr(start, text.find('\n', start) - start);
}

/// Returns all numbers in `line`.
std::vector<long> numbers_in(std::string_view line) {
  std::vector<long> numbers;
  constexpr std::string_view digits = "0123456789";
  for (auto at = line.find_first_of(digits); at != line.npos;) {
    const auto end = std::min(line.find_first_not_of(digits, at), line.size());
    numbers.push_back(std::stol(std::string(line.substr(at, end - at))));
    at = line.find_first_of(digits, end);
  }
  return numbers;
}

TEST(ExampleEventStatistics, CountsHandledEvents) {
  Process process = Process::example("event_statistics", {"5000"});
  ASSERT_EQ(process.wait_for_exit(), 0) << process.errors();
  const std::string output = process.output();
  struct Expected {
    std::string type;
    long count;
  };
  for (const auto& [type, count] :
       {Expected{"Order", 4500}, Expected{"Shipped", 4500}, Expected{"ClosingTime", 1}}) {
    SCOPED_TRACE(output);
    const auto numbers = numbers_in(line_of(output, type + ": "));
    // The number before the last one is the 99 of "p99".
    ASSERT_EQ(numbers.size(), 6U) << type;
    EXPECT_EQ(numbers[0], count) << type;
    const long minimum = numbers[1], average = numbers[2], maximum = numbers[3], p99 = numbers[5];
    EXPECT_LE(minimum, average);
    EXPECT_LE(average, maximum);
    EXPECT_LE(minimum, p99);
    EXPECT_LE(p99, maximum);
  }
  EXPECT_EQ(line_of(output, "vetoed: "), "vetoed: 500") << output;
}

}  // namespace
}  // namespace weir::tests::event_examples_test
