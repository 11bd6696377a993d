// Tests the event queue and its memory.
#include "weir/event/detail/queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "weir/base/detail/block_pool.hpp"

namespace weir::detail::queue_test {
namespace {

/// Adds a record of `bytes` bytes that all are `mark`.
void add(EventQueue& queue, std::size_t bytes, std::uint8_t mark) {
  queue.make_room(bytes);
  std::memset(queue.add(bytes), mark, bytes);
}

bool front_is(const EventQueue& queue, std::size_t bytes, std::uint8_t mark) {
  const std::vector<std::uint8_t> expected(bytes, mark);
  return std::memcmp(queue.front(), expected.data(), bytes) == 0;
}

TEST(EventQueue, AllocatesNothingBeforeTheFirstRecord) {
  BlockPool blocks;
  const ScopedBlockPool use(blocks);
  EventQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(blocks.blocks_in_use(), 0U);
}

TEST(EventQueue, ReusesOneChunkIfItIsEmptiedInTime) {
  BlockPool blocks;
  const ScopedBlockPool use(blocks);
  {
    EventQueue queue;
    for (std::size_t round = 0; round < 10'000; ++round) {
      for (std::uint8_t mark = 0; mark < 10; ++mark) add(queue, 16, mark);
      for (std::uint8_t mark = 0; mark < 10; ++mark) {
        ASSERT_TRUE(front_is(queue, 16, mark));
        queue.pop(16);
      }
      ASSERT_TRUE(queue.empty());
      ASSERT_EQ(blocks.blocks_in_use(), 1U);
    }
  }
  EXPECT_EQ(blocks.blocks_in_use(), 0U);
}

TEST(EventQueue, WorksAfterReleaseMemory) {
  BlockPool blocks;
  const ScopedBlockPool use(blocks);
  EventQueue queue;
  queue.release_memory();
  for (int round = 0; round < 2; ++round) {
    add(queue, 16, 7);
    queue.pop(16);
    EXPECT_EQ(blocks.blocks_in_use(), 1U);
    queue.release_memory();
    EXPECT_EQ(blocks.blocks_in_use(), 0U);
    EXPECT_TRUE(queue.empty());
  }
}

TEST(EventQueue, AllocatesNothingWhileItsRecordsFitInOneChunk) {
  for (const std::size_t bytes : {8U, 16U, 24U, 256U}) {
    SCOPED_TRACE(bytes);
    BlockPool blocks;
    const ScopedBlockPool use(blocks);
    {
      EventQueue queue;
      const std::size_t fitting = (EventQueue::chunk_bytes - 2 * sizeof(void*)) / bytes;
      for (std::size_t i = 0; i < fitting; ++i) add(queue, bytes, static_cast<std::uint8_t>(i));
      EXPECT_EQ(blocks.blocks_in_use(), 1U);
      add(queue, bytes, 77);
      EXPECT_EQ(blocks.blocks_in_use(), 2U);
      for (std::size_t i = 0; i < fitting; ++i) {
        ASSERT_TRUE(front_is(queue, bytes, static_cast<std::uint8_t>(i))) << i;
        queue.pop(bytes);
      }
      EXPECT_EQ(blocks.blocks_in_use(), 1U) << "the first chunk is returned";
      EXPECT_TRUE(front_is(queue, bytes, 77));
      queue.pop(bytes);
    }
    EXPECT_EQ(blocks.blocks_in_use(), 0U);
  }
}

TEST(EventQueue, AllocatesAndReleasesChunks) {
  constexpr std::size_t records = 100 * EventQueue::chunk_bytes / 16;
  BlockPool blocks;
  const ScopedBlockPool use(blocks);
  {
    EventQueue queue;
    for (std::size_t i = 0; i < records; ++i) add(queue, 16, static_cast<std::uint8_t>(i));
    EXPECT_GE(blocks.blocks_in_use(), 100U);
    EXPECT_LE(blocks.blocks_in_use(), 102U) << "a record has no overhead";
    for (std::size_t i = 0; i < records; ++i) {
      ASSERT_TRUE(front_is(queue, 16, static_cast<std::uint8_t>(i))) << i;
      queue.pop(16);
    }
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(blocks.blocks_in_use(), 1U) << "one chunk is kept";
  }
  EXPECT_EQ(blocks.blocks_in_use(), 0U);
}

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_TEST_SEED");
  return given == nullptr ? 20'261'122 : std::strtoull(given, nullptr, 10);
}

TEST(EventQueue, BehavesLikeADeque) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  std::mt19937_64 random(seed());
  struct Expected {
    std::size_t bytes;
    std::uint8_t mark;
  };
  for (int round = 0; round < 20; ++round) {
    EventQueue queue;
    std::deque<Expected> model;
    // A phase makes the queue grow or shrink on average.
    for (int phase = 0; phase < 20; ++phase) {
      const auto adds_of_ten = random() % 11;
      for (int step = 0; step < 500; ++step) {
        if (random() % 10 < adds_of_ten) {
          const std::size_t bytes = 8 * (1 + random() % (EventQueue::record_bytes_max / 8));
          const auto mark = static_cast<std::uint8_t>(random());
          add(queue, bytes, mark);
          model.push_back({bytes, mark});
        } else if (!model.empty()) {
          const auto [bytes, mark] = model.front();
          ASSERT_TRUE(front_is(queue, bytes, mark));
          queue.pop(bytes);
          model.pop_front();
        }
        ASSERT_EQ(queue.empty(), model.empty());
      }
    }
    for (const auto& [bytes, mark] : model) {
      ASSERT_TRUE(front_is(queue, bytes, mark));
      queue.pop(bytes);
    }
    ASSERT_TRUE(queue.empty());
  }
}

// --- shared events ------------------------------------------------------------------------------

TEST(SharedEvent, IsDestroyedWithItsLastReference) {
  BlockPool blocks;
  const ScopedBlockPool use(blocks);
  auto alive = std::make_shared<int>(1);
  for (const std::size_t links : {0U, 1U, 2U, 5U}) {
    auto made = SharedEvent::make(std::shared_ptr<int>(alive), links,
                                  {.priority = EventPriority::high, .source = {}});
    SharedEvent& shared = *made.release();
    EXPECT_EQ(shared.options().priority, EventPriority::high);
    EXPECT_EQ(&shared.type(), &event_type<std::shared_ptr<int>>);
    for (std::size_t each = 0; each < links; ++each) {
      EXPECT_EQ(shared.link(each).shared, &shared);
      EXPECT_EQ(shared.link(each).next, nullptr);
    }
    EXPECT_EQ(*static_cast<std::shared_ptr<int>*>(shared.value()), alive);
    shared.add_refs(2);
    for (int left = 2; left >= 0; --left) {
      EXPECT_EQ(alive.use_count(), 2);
      EXPECT_EQ(blocks.blocks_in_use(), 1U);
      shared.unref();
    }
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(blocks.blocks_in_use(), 0U);
  }
}

}  // namespace
}  // namespace weir::detail::queue_test
