#include "weir/base/buffer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace weir::buffer_test {
namespace {

void put(Buffer& buffer, std::string_view text) {
  ASSERT_GE(buffer.room().size(), text.size());
  std::memcpy(buffer.room().data(), text.data(), text.size());
  buffer.commit(text.size());
}

TEST(Buffer, AnEmptyBufferOwnsNoMemory) {
  const Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_FALSE(buffer.owns_memory());
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.text(), "");
}

TEST(Buffer, FillsAndConsumes) {
  Buffer buffer = Buffer::with_capacity(10);
  EXPECT_TRUE(buffer.owns_memory());
  EXPECT_EQ(buffer.room().size(), 10U);
  put(buffer, "hello");
  EXPECT_EQ(buffer.text(), "hello");
  EXPECT_EQ(buffer.room().size(), 5U);
  buffer.consume(2);
  put(buffer, "world");
  EXPECT_EQ(buffer.text(), "lloworld");
  EXPECT_TRUE(buffer.room().empty());
  const Bytes bytes = buffer;
  EXPECT_EQ(to_text(bytes), "lloworld");
  buffer.consume(8);
  EXPECT_TRUE(buffer.empty());
  buffer.clear();
  EXPECT_EQ(buffer.room().size(), 10U);
}

TEST(Buffer, MovesItsBlock) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer one = Buffer::with_capacity();
  EXPECT_EQ(one.capacity(), Buffer::default_capacity);
  put(one, "one");
  Buffer two = std::move(one);
  EXPECT_FALSE(one.owns_memory());
  EXPECT_TRUE(one.empty());
  EXPECT_EQ(two.text(), "one");
  Buffer three = Buffer::with_capacity(100);
  put(three, "three");
  three = std::move(two);
  EXPECT_EQ(three.text(), "one");
  EXPECT_EQ(pool.blocks_in_use(), 1U);
  Buffer& self = three;
  three = std::move(self);
  EXPECT_EQ(three.text(), "one");
  three = Buffer();
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

TEST(Buffer, AMovedBufferKeepsItsRangeAndTheOtherIsEmpty) {
  Buffer from = Buffer::with_capacity(100);
  put(from, "consumed");
  from.consume(3);
  Buffer to = Buffer::with_capacity(50);
  put(to, "replaced");
  to = std::move(from);
  EXPECT_EQ(to.text(), "sumed");
  EXPECT_EQ(to.capacity(), 100U);
  EXPECT_EQ(to.room().size(), 92U);
  EXPECT_EQ(from.capacity(), 0U);
  EXPECT_EQ(from.size(), 0U);
  const Buffer last(std::move(to));
  EXPECT_EQ(last.text(), "sumed");
  EXPECT_EQ(last.capacity(), 100U);
  EXPECT_EQ(to.capacity(), 0U);
  EXPECT_TRUE(to.room().empty());
}

TEST(Buffer, CountsAsABufferOfThePool) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer buffer = Buffer::with_capacity(100);
  EXPECT_EQ(pool.blocks_in_use(BlockUse::buffer), 1U);
  buffer.make_room(200);
  EXPECT_EQ(pool.blocks_in_use(BlockUse::buffer), 1U);
  EXPECT_EQ(pool.blocks_in_use(), 1U);
}

TEST(Buffer, KeepsTheFirstBytesWhenTruncated) {
  Buffer buffer = Buffer::with_capacity(20);
  put(buffer, "0123456789");
  buffer.consume(2);
  buffer.truncate(5);
  EXPECT_EQ(buffer.text(), "23456");
  EXPECT_EQ(buffer.room().size(), 13U);
  buffer.truncate(0);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.room().size(), 18U);
}

TEST(Buffer, MakesRoomOnlyIfThereIsTooLittle) {
  Buffer buffer = Buffer::with_capacity(10);
  put(buffer, "12");
  const std::byte* const before = buffer.data();
  buffer.make_room(8);
  EXPECT_EQ(buffer.data(), before);
  EXPECT_EQ(buffer.capacity(), 10U);
  buffer.make_room(9);
  EXPECT_EQ(buffer.capacity(), std::size_t{Buffer::default_capacity});
  EXPECT_EQ(buffer.text(), "12");
}

TEST(Buffer, MakesRoomForTheLargestOfDefaultDoubledAndNeeded) {
  struct {
    std::uint32_t capacity;
    std::size_t used;
    std::size_t count;
    std::size_t expected;
  } const cases[] = {
      {0, 0, 1, 16'384},           {10, 1, 10, 16'384},
      {8'192, 8'192, 1, 16'384},   {8'193, 8'193, 1, 16'386},
      {20'000, 20'000, 1, 40'000}, {10, 10, 16'374, 16'384},
      {10, 10, 16'375, 16'385},    {20'000, 20'000, 20'001, 40'001},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(std::to_string(each.used) + " and " + std::to_string(each.count));
    Buffer buffer = each.capacity == 0 ? Buffer() : Buffer::with_capacity(each.capacity);
    const std::string text(each.used, 'x');
    if (!text.empty()) put(buffer, text);
    buffer.make_room(each.count);
    EXPECT_EQ(buffer.capacity(), each.expected);
    EXPECT_EQ(buffer.room().size(), each.expected - each.used);
    EXPECT_EQ(buffer.text(), text);
  }
}

TEST(Buffer, MovesOnlyTheBytesThatWereNotConsumed) {
  Buffer buffer = Buffer::with_capacity(10);
  put(buffer, "0123456789");
  buffer.consume(7);
  buffer.make_room(1);
  EXPECT_EQ(buffer.text(), "789");
  EXPECT_EQ(buffer.room().size(), Buffer::default_capacity - 3U);
}

TEST(Buffer, NeverGrowsToTwoGibibytes) {
  constexpr std::size_t size_max = std::size_t{1} << 31;
  Buffer buffer = Buffer::with_capacity(10);
  put(buffer, "0123");
  for (const std::size_t count : {size_max - 4, size_max, std::size_t{SIZE_MAX}}) {
    EXPECT_THROW(buffer.make_room(count), std::bad_alloc) << count;
    EXPECT_EQ(buffer.text(), "0123");
    EXPECT_EQ(buffer.capacity(), 10U);
  }
}

TEST(Buffer, KeepsItsBytesIfThereIsNoMemoryForMore) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer buffer = Buffer::with_capacity(100);
  std::memcpy(buffer.room().data(), "hello", 5);
  buffer.commit(5);
  buffer.consume(1);
  const std::byte* const data = buffer.data();
  pool.fail_after(0);
  EXPECT_THROW(buffer.make_room(96), std::bad_alloc);
  EXPECT_EQ(buffer.text(), "ello");
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(buffer.room().size(), 95U);
  EXPECT_EQ(pool.blocks_in_use(), 1U);
  pool.fail_after(0);
  EXPECT_THROW(Buffer::with_capacity(1), std::bad_alloc);
  buffer.make_room(96);
  EXPECT_EQ(buffer.text(), "ello");
  EXPECT_GE(buffer.room().size(), 96U);
}

TEST(Buffer, ReturnsItsBlockFromAnotherThread) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer buffer = Buffer::with_capacity(64);
  put(buffer, "abroad");
  std::thread([taken = std::move(buffer)] { EXPECT_EQ(taken.text(), "abroad"); }).join();
  pool.collect();
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

}  // namespace
}  // namespace weir::buffer_test
