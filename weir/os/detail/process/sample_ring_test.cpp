#include "weir/os/detail/process/sample_ring.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace weir::os::sample_ring_test {
namespace {

using Words = std::vector<SampleRing::Word>;

constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

void push(SampleRing& ring, const Words& head, const Words& tail) {
  ring.push(head.data(), head.size(), tail.data(), tail.size());
}
std::vector<Words> drained(SampleRing& ring, std::size_t most = all) {
  std::vector<Words> records;
  const std::size_t count = ring.drain(most, [&](std::span<const SampleRing::Word> record) {
    records.emplace_back(record.begin(), record.end());
  });
  EXPECT_EQ(count, records.size());
  return records;
}

TEST(SampleRing, PassesRecordsInOrder) {
  SampleRing ring(16);
  push(ring, {1, 2}, {3});
  push(ring, {4}, {});
  EXPECT_EQ(drained(ring), (std::vector<Words>{{1, 2, 3}, {4}}));
  EXPECT_EQ(drained(ring), std::vector<Words>{});
}

TEST(SampleRing, StopsAfterTheRequestedNumberOfRecords) {
  SampleRing ring(16);
  for (const SampleRing::Word number : Words{1, 2, 3}) push(ring, {number}, {});
  EXPECT_EQ(drained(ring, 0), std::vector<Words>{});
  EXPECT_EQ(drained(ring, 2), (std::vector<Words>{{1}, {2}}));
  EXPECT_EQ(drained(ring, 2), (std::vector<Words>{{3}}));
}

TEST(SampleRing, DropsAndCountsWhatDoesNotFit) {
  SampleRing ring(8);
  push(ring, {1, 2, 3}, {4, 5, 6});  // seven words with the size
  push(ring, {7}, {});
  push(ring, Words(8), {});  // never fits
  EXPECT_EQ(ring.dropped(), 2u);
  EXPECT_EQ(drained(ring), (std::vector<Words>{{1, 2, 3, 4, 5, 6}}));
  push(ring, {8}, {});
  EXPECT_EQ(drained(ring), (std::vector<Words>{{8}})) << "there is room again";
}

TEST(SampleRing, KeepsRecordsAcrossItsEnd) {
  SampleRing ring(8);
  for (SampleRing::Word number = 0; number < 100; ++number) {
    push(ring, {number}, {number + 1, number + 2});
    ASSERT_EQ(drained(ring), (std::vector<Words>{{number, number + 1, number + 2}}));
  }
  EXPECT_EQ(ring.dropped(), 0u);
}

TEST(SampleRing, LosesNothingUncountedBetweenTwoThreads) {
  SampleRing ring(64);
  constexpr SampleRing::Word count = 20'000;
  std::thread writer([&] {
    for (SampleRing::Word number = 0; number < count; ++number) push(ring, {number}, {number, 1});
  });
  SampleRing::Word received = 0;
  SampleRing::Word last = 0;
  const auto take = [&](std::span<const SampleRing::Word> record) {
    ASSERT_EQ(record.size(), 3u);
    EXPECT_EQ(record[0], record[1]);
    EXPECT_TRUE(received == 0 || record[0] > last);
    last = record[0];
    ++received;
  };
  while (received + ring.dropped() < count) ring.drain(all, take);
  writer.join();
  ring.drain(all, take);
  EXPECT_EQ(received + ring.dropped(), count);
}

}  // namespace
}  // namespace weir::os::sample_ring_test
