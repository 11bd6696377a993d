// Tests the queues between cores and the exporter.
#include "weir/telemetry/traces/detail/export_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/telemetry/traces/span_data.hpp"

namespace weir::telemetry::export_queue_test {
namespace {

using SpanQueue = ExportQueue<SpanData>;

std::unique_ptr<SpanData> named(std::string name) {
  auto span = std::make_unique<SpanData>();
  span->name = std::move(name);
  return span;
}

/// Takes and releases all spans, and returns their names.
std::vector<std::string> names_in(SpanQueue& queue) {
  std::vector<std::string> names;
  for (std::size_t index = 0; index <= SpanQueue::lanes; ++index) {
    const auto begin = static_cast<std::ptrdiff_t>(names.size());
    for (SpanData* span = queue.take(index); span != nullptr;) {
      names.push_back(span->name);
      queue.release(std::exchange(span, span->next));
    }
    std::reverse(names.begin() + begin, names.end());  // the queue returns the newest first
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(ExportQueue, ReturnsTheItemsOfEachCoreInTheirOrder) {
  SpanQueue queue(8, 1 << 20);
  EXPECT_EQ(queue.push(named("b1"), SpanQueue::lane_of(1)), 1U);
  EXPECT_EQ(queue.push(named("a1"), SpanQueue::lane_of(0)), 1U);
  EXPECT_EQ(queue.push(named("b2"), SpanQueue::lane_of(1)), 2U);
  EXPECT_EQ(queue.push(named("c1"), SpanQueue::no_core), 1U);
  EXPECT_EQ(queue.size(), 4U);
  EXPECT_EQ(names_in(queue), (Names{"a1", "b1", "b2", "c1"}));
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(names_in(queue), Names{});
}

TEST(ExportQueue, DropsAndCountsItemsBeyondTheirNumber) {
  SpanQueue queue(2, 1 << 20);
  for (const char* name : {"1", "2", "3", "4"}) queue.push(named(name), 0);
  EXPECT_EQ(queue.push(named("other"), 1), 1U) << "another core has its own limit";
  EXPECT_EQ(queue.dropped(), 2U);
  SpanData* const newest = queue.take(0);
  EXPECT_EQ(newest->name, "2");
  EXPECT_EQ(queue.push(named("5"), 0), 0U) << "taken items count until they are released";
  queue.release(std::exchange(newest->next, nullptr));
  EXPECT_EQ(queue.push(named("6"), 0), 2U);
  EXPECT_EQ(queue.dropped(), 3U);
  queue.release(newest);
}

TEST(ExportQueue, DropsItemsBeyondTheirBytes) {
  SpanQueue queue(100, 10'000);
  EXPECT_EQ(queue.push(named(std::string(20'000, 'x')), 0), 0U);
  for (int count = 0; count < 20; ++count) queue.push(named(std::string(1000, 'x')), 0);
  EXPECT_EQ(queue.size() + queue.dropped(), 21U);
  EXPECT_LT(queue.size(), 10U);
  EXPECT_GT(queue.size(), 5U);
  names_in(queue);
  EXPECT_EQ(queue.push(named("x"), 0), 1U);
}

TEST(ExportQueue, TakesItemsWhileThreadsAddThem) {
  constexpr std::size_t threads = 3;
  constexpr std::size_t each = 2000;
  SpanQueue queue(512, 1 << 22);
  std::vector<std::thread> producers;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    producers.emplace_back([&queue, thread] {
      for (std::size_t count = 0; count < each; ++count) queue.push(named("x"), thread % 2);
    });
  }
  std::size_t taken = 0;
  for (int round = 0; round < 1000; ++round) taken += names_in(queue).size();
  for (std::thread& thread : producers) thread.join();
  taken += names_in(queue).size();
  EXPECT_EQ(taken + queue.dropped(), threads * each);
  EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace weir::telemetry::export_queue_test
